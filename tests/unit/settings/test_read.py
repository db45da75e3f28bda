"""Every kind of mistake, with the words that a person reads."""

from pathlib import Path

import pytest

from acphost.errors import ConfigError
from acphost.settings.model import ConfigFile
from tests.unit.settings.conftest import Load, Refusal, Write

COUNT = "expected an integer from 1 to 1000000"
COMMAND = 'expected a list of strings: ["program", "argument"]'
NO_PROGRAM = 'names no program, expected command = ["program", "argument"]'
FROM_ZERO = "expected a number of seconds from 0 to 86400"
ABOVE_ZERO = "expected a number of seconds above 0, at most 86400"
VARIABLE = "expected the name of an environment variable"
AGENT_ID = 'the name must be an agent id: lower-case letters, digits, "-" and "_"'
MAIN_KEYS = ", ".join(sorted(ConfigFile.__struct_fields__))

MISTAKES = {
    "[queue]\nlimt = 1": '2: queue.limt: unknown key, did you mean "limit"?',
    "[queue]\nLimit = 1": '2: queue.Limit: unknown key, did you mean "limit"?',
    "[queue.x]\ny = 1": (
        "1: queue.x: unknown key; known here: limit, on_failed, on_interrupted, on_stop"
    ),
    "[agent.x]": '1: agent: unknown key, did you mean "agents"?',
    '"a b\\n" = 1': f'1: "a b\\n": unknown key; known here: {MAIN_KEYS}',
    "[queue]\n\nlimit = '5'": f'3: queue.limit: {COUNT}, got "5"',
    "queue.limit = 0": f"1: queue.limit: {COUNT}, got 0",
    "queue.limit = true": f"1: queue.limit: {COUNT}, got true",
    "queue.limit = 1.5": f"1: queue.limit: {COUNT}, got 1.5",
    "queue = 3": "1: queue: expected a table, got 3",
    "queue.on_stop = 'x'": '1: queue.on_stop: expected one of "continue", "hold", got "x"',
    "drain.timeout = nan": f"1: drain.timeout: {FROM_ZERO}, got nan",
    "drain.timeout = inf": f"1: drain.timeout: {FROM_ZERO}, got inf",
    "permissions.timeout = 0": f"1: permissions.timeout: {ABOVE_ZERO}, got 0",
    "socket = 'x'": '1: socket: expected an absolute path, or one that starts with "~/", got "x"',
    "admins = 'me'": '1: admins: expected a list of strings, got "me"',
    "admins = ['me',\n 3]": "1: admins[1]: expected a string that is not empty, got 3",
    "[agents]\nx = []": "2: agents.x: expected a table, got an empty list",
    "[agents.x]\nruntime = 'acp'": f"1: agents.x: {NO_PROGRAM}",
    "[agents.x]\ncommand = ['']": f"1: agents.x: {NO_PROGRAM}",
    "[agents.x]\ncommand = 'x -y'": f'2: agents.x.command: {COMMAND}, got "x -y"',
    "[agents.x]\ncommand = []": f"2: agents.x.command: {COMMAND}, got an empty list",
    "agents.x.command = ['x', 1]": "1: agents.x.command[1]: expected a string, got 1",
    "[agents.hermes]\nruntime = 'codex'": (
        '2: agents.hermes.runtime: expected one of "acp", "api_chat", "chat_only", "hermes", '
        '"reasonix", got "codex"'
    ),
    "[agents.hermes]\nenv = {'A B' = 'x'}": (
        '2: agents.hermes.env."A B": the name must be the name of an environment variable'
    ),
    "agents.x.env_pass = ['A=B']": f'1: agents.x.env_pass[0]: {VARIABLE}, got "A=B"',
    "[agents.x.restart]\nlimits = 1": (
        '2: agents.x.restart.limits: unknown key, did you mean "limit"?'
    ),
    "[agents.'Big Bot']\ncommand = ['x']": f'1: agents."Big Bot": {AGENT_ID}',
    "policy.rules = 3": "1: policy.rules: expected a list of tables, got 3",
    "policy.rules = [3]": "1: policy.rules[0]: expected a table, got 3",
    "[[policy.rules]]\nname = 'a'\nanswer = 'ask'\n[[policy.rules]]\nname = 'b'\nanswer = 'yes'": (
        '6: policy.rules[1].answer: expected one of "allow_once", "ask", "reject_once", got "yes"'
    ),
    "[[policy.rules]]\nanswer = 'ask'\nname = 'a'\nkind = ['read']": (
        '4: policy.rules[0].kind: unknown key, did you mean "kinds"?'
    ),
    "[[policy.rules]]\nname = 'a'": (
        '1: policy.rules[0]: lacks "answer", expected one of "allow_once", "ask", "reject_once"'
    ),
    "[[policy.rules]]\nname = 'a'\nanswer = 'allow_once'": (
        "1: policy.rules[0]: it would allow everything: "
        "name agents, kinds, tools, paths or commands"
    ),
    "[[policy.rules]]\nname = 'timeout'\nanswer = 'ask'": (
        "1: policy.rules[0]: the name 'timeout' stands for the host's own answers, choose another"
    ),
    "\n[mcp.a]\nargs = ['x']": "2: mcp.a: expected either a command or a url",
    "[mcp.a]\ncommand = 'x'\nurl = 'y'": "1: mcp.a: expected either a command or a url",
    "[mcp.a]\ncommand = 'x'\nenv = ['A=b']": "3: mcp.a.env: expected a table, got a list",
    "agents.x.init-timeout = 1": (
        '1: agents.x.init-timeout: unknown key, did you mean "init_timeout"?'
    ),
}


@pytest.mark.parametrize(("text", "expected"), MISTAKES.items())
def test_a_mistake_names_file_line_key_and_what_was_expected(
    write: Write, refusal: Refusal, text: str, expected: str
) -> None:
    write("config.toml", text)
    assert refusal() == f"@/config.toml:{expected}"


def test_a_value_under_env_is_never_shown(write: Write, refusal: Refusal) -> None:
    write("config.toml", "[agents.hermes]\nenv = { TOKEN = 271828 }\n")
    assert refusal() == (
        "@/config.toml:2: agents.hermes.env.TOKEN: "
        "expected a string, got a value of another type (int)"
    )


# What tomllib calls the fault differs between versions of Python, where it is does not.
BROKEN = {
    "[queue]\nlimit 5\n": (":2:7: ", False),
    "a = 1\na = 2\n": (":2:6: ", False),
    "[queue]\nlimit =": (":2: ", True),
    '[agents.x]\ncommand = ["her': (":2: ", True),
    "[agents.x]\ncommand = [\n  'x',\n\n": (":3: ", True),
}


@pytest.mark.parametrize(("text", "found"), BROKEN.items())
def test_a_broken_or_half_written_file_tells_where(
    write: Write, refusal: Refusal, text: str, found: tuple[str, bool]
) -> None:
    write("config.toml", text)
    place, ends_early = found
    message = refusal()
    assert message.startswith(f"@/config.toml{place}not valid TOML: ")
    assert message.endswith("; the file ends too early") == ends_early


def test_a_file_nested_without_end_is_refused(write: Write, refusal: Refusal) -> None:
    write("config.toml", "a = " + "[" * 100_000)
    assert refusal() == "@/config.toml: not valid TOML: nested too deeply"


def test_a_file_that_is_not_text_is_refused(folder: Path, refusal: Refusal) -> None:
    (folder / "config.toml").write_bytes(b"[queue]\n# \xff\n")
    assert refusal() == "@/config.toml:2: not UTF-8 text"


def test_a_file_that_cannot_be_read_is_not_a_missing_one(folder: Path, refusal: Refusal) -> None:
    (folder / "config.toml").symlink_to(folder / "gone")
    assert refusal() == "@/config.toml: cannot be read: No such file or directory"


def test_an_agents_file_holds_agents_only(write: Write, refusal: Refusal) -> None:
    write("agents.d/a.toml", "[queue]\nlimit = 1\n")
    assert refusal() == "@/agents.d/a.toml:1: queue: belongs in config.toml"


def test_all_mistakes_of_all_files_are_told_together(write: Write, load: Load) -> None:
    first = write("config.toml", "[queue]\nlimit = 0\nlimt = 1\n")
    second = write("agents.d/a.toml", "")
    second.write_bytes(b"\xff")
    with pytest.raises(ConfigError) as caught:
        load()
    mistakes = [
        {
            "file": str(first),
            "key": "queue.limit",
            "text": "expected an integer from 1 to 1000000, got 0",
            "line": 2,
            "column": None,
        },
        {
            "file": str(first),
            "key": "queue.limt",
            "text": 'unknown key, did you mean "limit"?',
            "line": 3,
            "column": None,
        },
        {
            "file": str(second),
            "key": "",
            "text": "not UTF-8 text",
            "line": 1,
            "column": None,
        },
    ]
    assert caught.value.details == {"mistakes": mistakes}
    assert str(caught.value).splitlines() == [
        f"{first}:2: queue.limit: expected an integer from 1 to 1000000, got 0",
        f'{first}:3: queue.limt: unknown key, did you mean "limit"?',
        f"{second}:1: not UTF-8 text",
    ]
