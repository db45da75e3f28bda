"""What is written down about the socket is what the daemon speaks."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from acphost.schema.contract import table, words
from acphost.schema.document import document
from acphost.wire.revision import SCHEMA_REVISION
from acphost.wire.spoken import NOTIFICATIONS, QUESTIONS
from tests.support.frame_play import play
from tests.support.frames import stored, text_of
from tools.protocol import COMMAND, ROOT, generated

SCHEMA = document()
FRAMES = {name: json.loads(text) for name, text in stored().items()}
RENEW = f"run `{COMMAND}` and look at what it changed"
#: Of requests that are wrong in themselves the answer is what the frame is about.
WRONG = {"error.invalid_params", "error.method_not_found", "error.invalid_request"}
LINES = [
    pytest.param(line, id=f"{name}-{part}")
    for name, frame in FRAMES.items()
    for part, line in frame.items()
    if isinstance(line, dict) and part != "event" and not (part == "request" and name in WRONG)
]


def _problems(schema: dict[str, Any], value: object) -> list[str]:
    validator = Draft202012Validator({**schema, "$defs": SCHEMA["$defs"]})
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(value)]


def test_the_schema_is_a_json_schema_and_the_same_at_every_call() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert document() == SCHEMA


@pytest.mark.parametrize("file", generated(), ids=lambda file: file.name)
def test_what_is_checked_in_is_what_the_types_say(file: Path) -> None:
    assert file.exists(), RENEW
    assert file.read_text() == generated()[file], f"{file.relative_to(ROOT)}: {RENEW}"


def test_the_revision_told_in_initialize_is_that_of_the_schema() -> None:
    assert SCHEMA["schemaRevision"] == SCHEMA_REVISION, RENEW


def test_every_method_says_in_a_sentence_what_it_does() -> None:
    silent = [name for name, each in SCHEMA["methods"].items() if not each["description"]]
    assert not silent, f"give the handlers of {silent} a docstring"


def test_every_method_notification_question_and_error_has_a_golden_frame() -> None:
    wanted = {row.name.replace("/", ".") for row in table()} | {*NOTIFICATIONS}
    wanted |= {name.replace("/", ".") for name in QUESTIONS}
    wanted |= {f"error.{each.word}" for each in words()}
    missing = sorted(wanted - FRAMES.keys())
    assert not missing, f"give {missing} a line in tests/support/frame_play.py, then {RENEW}"


@pytest.mark.parametrize("line", LINES)
def test_every_line_fits_the_schema(line: dict[str, Any]) -> None:
    """Whoever validates a whole line against the schema as it is finds nothing wrong."""
    assert not _problems(SCHEMA, line)


@pytest.mark.parametrize("name", sorted(FRAMES))
def test_every_exchange_fits_its_method(name: str) -> None:
    frame = FRAMES[name]
    for method, each in SCHEMA["methods"].items():
        if frame.get("request", {}).get("method") == method and "result" in frame["answer"]:
            assert not _problems(each["params"], frame["request"].get("params", {}))
            assert not _problems(each["result"], frame["answer"]["result"])
    if "event" in frame:
        assert not _problems({"$ref": "#/$defs/Event"}, frame["event"])
    for line in frame.values():
        if isinstance(line, dict) and line.get("method") in SCHEMA["notifications"]:
            assert not _problems({"$ref": "#/$defs/Notification"}, line)
        if isinstance(line, dict) and "error" in line:
            assert not _problems({"$ref": "#/$defs/ErrorObject"}, line["error"])


async def test_the_golden_frames_are_what_a_daemon_says() -> None:
    """Every exchange is played again with a real daemon; nothing in it may differ."""
    told = {name: text_of(frame) for name, frame in (await play()).items()}
    kept = stored()
    assert told.keys() == kept.keys(), RENEW
    for name, text in told.items():
        assert text == kept[name], f"fixtures/socket/{name}.json: {RENEW}"
