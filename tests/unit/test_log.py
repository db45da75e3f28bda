"""The log of the program."""

import io
import json
import subprocess
import sys

import pytest
import structlog

from acphost import log
from tests.support.patience import PATIENCE


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Broken(io.StringIO):
    def write(self, _: str) -> int:
        raise BrokenPipeError


@pytest.fixture(autouse=True)
def _own_configuration() -> object:
    yield
    structlog.reset_defaults()


def test_away_from_a_terminal_each_entry_is_one_json_object() -> None:
    stream = io.StringIO()
    log.configure(stream=stream)
    with structlog.contextvars.bound_contextvars(session_id="s"):
        log.get_logger().info(
            "agent_exited", code=3, text="a\nb\u2028\udce9", what={1, 2}.__class__
        )
    [line] = stream.getvalue().splitlines()[:1]
    entry = json.loads(stream.getvalue())
    assert line.startswith('{"at":"')
    assert entry.pop("at").endswith("Z")
    assert entry == {
        "level": "info",
        "event": "agent_exited",
        "session_id": "s",
        "code": 3,
        "text": "a\nb\u2028?",
        "what": "<class 'set'>",
    }


def test_an_exception_is_told_with_its_trace() -> None:
    stream = io.StringIO()
    log.configure(stream=stream)
    log.get_logger().error("failed", exc_info=KeyError("x"))
    entry = json.loads(stream.getvalue())
    assert entry["level"] == "error"
    assert "KeyError: 'x'" in entry["exception"]


def test_on_a_terminal_an_entry_is_a_readable_line() -> None:
    stream = Terminal()
    log.configure(stream=stream, colour=False)
    log.get_logger().warning("agent_slow", agent="hermes", line="two words", n=1, empty="")
    line = stream.getvalue()
    assert line[13:] == "warning  agent_slow agent=hermes line='two words' n=1 empty=''\n"


def test_text_of_an_agent_cannot_draw_on_the_terminal() -> None:
    stream = Terminal()
    log.configure(stream=stream)
    log.get_logger().info("stderr", line="\x1b[2J\nfake")
    assert stream.getvalue().count("\n") == 1
    assert "\x1b" not in stream.getvalue()


def test_entries_below_the_level_are_left_out() -> None:
    stream = io.StringIO()
    log.configure("warning", stream=stream)
    log.get_logger().info("quiet")
    assert stream.getvalue() == ""


def test_a_log_that_cannot_be_written_harms_nobody() -> None:
    log.configure(stream=Broken())
    log.get_logger().error("lost")


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        ("import acphost.log; acphost.log.get_logger()", "structlog"),
        ("import acphost.log; acphost.log.configure()", "rich"),
    ],
)
def test_what_is_not_needed_is_not_loaded(code: str, unwanted: str) -> None:
    """It is a matter of a tenth, or of a quarter of a second at every start."""
    check = f"; import sys; sys.exit(any(m.split('.')[0] == {unwanted!r} for m in sys.modules))"
    subprocess.run([sys.executable, "-c", code + check], check=True, timeout=PATIENCE)
