"""Step words that receive, branch, repeat and wait: the order of a script."""

from pathlib import Path

from acphost.demo.books import Incoming
from acphost.demo.outlet import write_atomically
from acphost.demo.script import EVERYWHERE, Step, Word, holds
from acphost.demo.stage import Stage, Verb
from acphost.demo.tokens import JsonObject, ScriptError


def merge(base: JsonObject, change: JsonObject) -> JsonObject:
    """`base` with `change` laid over it, objects within objects too; null takes a member away."""
    merged = dict(base)
    for key, value in change.items():
        below = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(below, dict):
            merged[key] = merge(below, value)
        else:
            merged[key] = value
    return merged


def _receive(stage: Stage, step: Step) -> Incoming:
    """Take the next such request and make it the one at hand."""
    incoming = stage.host.take(stage, step)
    stage.request = incoming
    stage.silent = False
    if incoming.session_id is not None:
        stage.session_id = incoming.session_id
    label = stage.option(step, "as")
    if label:
        stage.host.labels[label] = incoming
    return incoming


def init(stage: Stage, step: Step) -> None:
    """INIT: answer initialize; the given members are laid over the usual answer."""
    if stage.linear:
        _receive(stage, step)
    if step.args:
        stage.host.init = merge(stage.host.init, stage.object_of(step, step.args[0]))
    stage.answer({"result": stage.host.init})


def new(stage: Stage, step: Step) -> None:
    """NEW: answer session/new with this id and further members; then the session is at hand."""
    if stage.linear:
        _receive(stage, step)
    result: JsonObject = {}
    for token in step.args:
        if token.is_json:
            result |= stage.object_of(step, token)
        else:
            result["sessionId"] = token.text(stage.lookup)
    result = {"sessionId": stage.host.books.next_session_id()} | result
    stage.session_id = str(result["sessionId"])
    stage.answer({"result": result})


def receive(stage: Stage, step: Step) -> None:
    """PROMPT, LOAD, RESUME, CANCEL, RECV: wait for it; a block below it ends with an answer."""
    incoming = _receive(stage, step)
    if incoming.method in ("session/load", "session/resume"):
        stage.host.books.session(incoming.session_id or "")
    stage.host.run(stage, step.block)
    is_whole = bool(step.block) or step.word in ("LOAD", "RESUME")
    if is_whole and incoming.is_request and not stage.silent and not incoming.answered:
        body: JsonObject = {"stopReason": "end_turn"} if step.word == "PROMPT" else {}
        stage.answer({"result": body}, to=incoming)


def branch(stage: Stage, step: Step) -> None:
    """IF and ELSE."""
    stage.host.run(stage, step.block if holds(step.args, stage.lookup) else step.otherwise)


def repeat(stage: Stage, step: Step) -> None:
    """REPEAT: the block N times, ${I} counting from 1."""
    for turn in range(stage.number(step, step.args[0])):
        stage.values |= {"I": str(turn + 1), "I0": str(turn)}
        stage.host.run(stage, step.block)


def batch(stage: Stage, step: Step) -> None:
    """BATCH: whatever the block writes goes out in one write."""
    stage.batch = bytearray()
    try:
        stage.host.run(stage, step.block)
    finally:
        data, stage.batch = bytes(stage.batch), None
        cut = bool(step.args) and stage.text(step, 0) == "unterminated"
        stage.write(data.removesuffix(b"\n") if cut else data)


def gate(stage: Stage, step: Step) -> None:
    """GATE: wait until the file is there."""
    path = Path(stage.text(step, 0))
    stage.wait(path.exists, poll=0.004)


def mark(stage: Stage, step: Step) -> None:
    """MARK: create the file, whole at once."""
    write_atomically(stage.text(step, 0), stage.text(step, 1).encode())


def pause(stage: Stage, step: Step) -> None:
    """PAUSE: let milliseconds pass."""
    stage.pause(stage.number(step, step.args[0]))


def set_value(stage: Stage, step: Step) -> None:
    """SET and ADD: a variable of the session at hand, or of the whole process."""
    name, text = stage.text(step, 0), stage.text(step, 1)
    scope = stage.option(step, "scope")
    session = None if scope == "process" else stage.session
    values = stage.host.values if session is None else session.values
    if scope == "block":
        values = stage.values
    if step.word == "ADD":
        try:
            text = str(int(values.get(name, "0")) + int(text))
        except ValueError:
            raise ScriptError(f"{step.where}: ADD needs whole numbers") from None
    values[name] = text


def do(stage: Stage, step: Step) -> None:
    """DO: play a defined block, with the options as variables."""
    stage.values |= {
        key: token.text(stage.lookup)
        for key, token in step.options.items()
        if key not in EVERYWHERE
    }
    stage.host.run(stage, stage.host.block(stage.text(step, 0), step.where))


def choose_session(stage: Stage, step: Step) -> None:
    """SESSION: speak for another session from here on."""
    stage.session_id = stage.text(step, 0)


def expect(stage: Stage, step: Step) -> None:
    """EXPECT: a violation goes to the record and ends the process with 3."""
    if not holds(step.args, stage.lookup):
        seen = " ".join(token.text(stage.lookup) for token in step.args)
        raise ViolationError(f"{step.where}: expected {seen}")


class ViolationError(ScriptError):
    """The host did what the script says it must not do."""


def note(stage: Stage, step: Step) -> None:
    """NOTE: a line of one's own in the record."""
    stage.host.record.write(note=stage.text(step, 0))


def _receiver(name: str, usage: str, summary: str, method: str, least: int = 0) -> Verb:
    options = frozenset({"as"})
    return Verb(Word(name, usage, summary, least, 1, options, block=True, receives=method), receive)


_AS = frozenset({"as"})
FLOW = (
    Verb(
        Word(
            "INIT", "INIT [JSON]", "take initialize and answer it", 0, 1, _AS, False, "initialize"
        ),
        init,
    ),
    Verb(
        Word(
            "NEW",
            "NEW [ID] [JSON]",
            "take session/new and answer it",
            0,
            2,
            _AS,
            False,
            "session/new",
        ),
        new,
    ),
    _receiver("LOAD", "LOAD [ID]", "take session/load; answers {} after its block", "session/load"),
    _receiver("RESUME", "RESUME [ID]", "take session/resume, likewise", "session/resume"),
    _receiver(
        "PROMPT",
        'PROMPT ["text" | ~"pattern"] [as=L]',
        "take a prompt; without a block it stays open until END",
        "session/prompt",
    ),
    _receiver(
        "CANCEL", "CANCEL", "take session/cancel, which then does nothing else", "session/cancel"
    ),
    _receiver(
        "RECV", "RECV METHOD [as=L]", "take anything else; without a block it stays open", "*", 1
    ),
    Verb(Word("IF", "IF A =|!=|~ B", "do the block if it holds", 3, 3, block=True), branch),
    Verb(Word("ELSE", "ELSE", "… and this one if not", block=True), branch),
    Verb(
        Word(
            "REPEAT",
            "REPEAT N",
            "do the block N times, ${I} counts",
            1,
            1,
            block=True,
            sets=frozenset({"I", "I0"}),
        ),
        repeat,
    ),
    Verb(
        Word(
            "BATCH", "BATCH [unterminated]", "write what the block writes at once", 0, 1, block=True
        ),
        batch,
    ),
    Verb(Word("GATE", "GATE FILE", "wait until the file exists", 1, 1), gate),
    Verb(Word("MARK", "MARK FILE [TEXT]", "create the file", 1, 2), mark),
    Verb(Word("PAUSE", "PAUSE MS", "let time pass, not beyond a cancel", 1, 1), pause),
    Verb(
        Word(
            "SET",
            "SET NAME TEXT [scope=process|block]",
            "set a variable (of the session)",
            2,
            2,
            frozenset({"scope"}),
        ),
        set_value,
    ),
    Verb(
        Word("ADD", "ADD NAME N [scope=process]", "add to a variable", 2, 2, frozenset({"scope"})),
        set_value,
    ),
    Verb(Word("SESSION", "SESSION ID", "speak for another session", 1, 1), choose_session),
    Verb(Word("DO", "DO NAME [VARIABLE=TEXT …]", "play what DEFINE NAME holds", 1, 1, None), do),
    Verb(Word("NOTE", "NOTE TEXT", "a line of your own in the record", 1, 1), note),
    Verb(
        Word(
            "EXPECT",
            "EXPECT A =|!=|~ B, or at the margin: EXPECT one-prompt|one-load|running-cancel|"
            "mcp-arrays",
            "else a violation: recorded, exit 3",
            1,
            3,
            setting=True,
        ),
        expect,
    ),
)
