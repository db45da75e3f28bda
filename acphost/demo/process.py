"""Step words about the process itself: raw bytes, floods, streams, children, death."""

import os
import signal
import sys
import time

from acphost.demo.memory import text_chunk
from acphost.demo.outlet import json_line
from acphost.demo.script import Step, Word
from acphost.demo.stage import Stage, Verb
from acphost.demo.tokens import ScriptError

_BLOCK = 1000
_RAW_BLOCK = 256 * 1024


def raw(stage: Stage, step: Step) -> None:
    """RAW: bytes to stdout as they are."""
    data = step.args[0].raw(stage.lookup)
    times = stage.number(step, step.options["times"]) if "times" in step.options else 1
    if times > 1:
        stage.settle()
    per_write = max(1, _RAW_BLOCK // max(1, len(data)))
    while times > 0:
        stage.check()
        stage.write(data * min(times, per_write))
        times -= per_write


def err(stage: Stage, step: Step) -> None:
    """ERR: bytes to stderr as they are."""
    data = step.args[0].raw(stage.lookup)
    times = stage.number(step, step.options["times"]) if "times" in step.options else 1
    if times > 1:
        stage.settle()
    for _ in range(times):
        view = memoryview(data)
        while view:
            view = view[os.write(2, view) :]


def _chunk(stage: Stage, text: str) -> bytes:
    params = {
        "sessionId": stage.session_id,
        "update": text_chunk("agent_message_chunk", text),
    }
    return json_line(
        {"jsonrpc": "2.0", "method": "session/update", "params": params}, stage.host.books.eol
    )


def flood(stage: Stage, step: Step) -> None:
    """FLOOD: N chunks as fast as the pipe takes them; they are not remembered."""
    stage.settle()
    count = stage.number(step, step.args[0])
    lines = [_chunk(stage, f"tok{i:03d} ") for i in range(_BLOCK)]
    block = b"".join(lines)
    for _ in range(count // _BLOCK):
        stage.check()
        stage.write(block)
    stage.write(b"".join(lines[: count % _BLOCK]))


def paced(stage: Stage, step: Step) -> None:
    """PACED: N chunks MS milliseconds apart, each saying in ns when it was written."""
    try:
        gap = float(stage.text(step, 1))
    except ValueError:
        raise ScriptError(f"{step.where}: {stage.text(step, 1)!r} is not a number") from None
    for _ in range(stage.number(step, step.args[0])):
        stage.write(_chunk(stage, str(time.monotonic_ns())))
        stage.pause(gap)


def big(stage: Stage, step: Step) -> None:
    """BIG: one message chunk whose text has N characters."""
    stage.settle()
    size = stage.number(step, step.args[0])
    stage.write(_chunk(stage, stage.text(step, 1, "x") * size))


def leave(stage: Stage, step: Step) -> None:
    """EXIT: end the process at once."""
    os._exit(stage.number(step, step.args[0]))


def kill(stage: Stage, step: Step) -> None:
    """KILL: send this process a signal."""
    name = stage.text(step, 0, "KILL").upper()
    number = getattr(signal, name if name.startswith("SIG") else f"SIG{name}", None)
    if not isinstance(number, signal.Signals):
        raise ScriptError(f"{step.where}: {name!r} is not a signal")
    os.kill(os.getpid(), number)


def close(stage: Stage, step: Step) -> None:
    """CLOSE: close one of the three standard streams and run on."""
    match stage.text(step, 0):
        case "stdout":
            stage.host.outlet.close()
        case "stdin":
            stage.host.inlet.close()
        case "stderr":
            os.close(2)
        case other:
            raise ScriptError(f"{step.where}: {other!r} is none of stdin, stdout, stderr")


#: Lives until it is killed, or ten minutes, so that a failing test leaves nothing for good.
_CHILD = """
import os, signal, sys
if "ignore-term" in sys.argv:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
signal.alarm(600)
draft = sys.argv[1] + ".draft"
with open(draft, "w") as file:
    file.write(str(os.getpid()))
os.rename(draft, sys.argv[1])
while True:
    signal.pause()
"""


def spawn(stage: Stage, step: Step) -> None:
    """SPAWN: a child that does nothing but live; its pid goes to the file."""
    flags = {token.text(stage.lookup) for token in step.args[1:]}
    unknown = flags - {"setsid", "ignore-term", "hold"}
    if unknown:
        raise ScriptError(f"{step.where}: {min(unknown)!r} is none of setsid, ignore-term, hold")
    import subprocess  # noqa: PLC0415  few scripts do this

    keep = None if "hold" in flags else subprocess.DEVNULL
    subprocess.Popen(  # noqa: S603 - our own interpreter and our own lines
        [sys.executable, "-S", "-c", _CHILD, stage.text(step, 0), *sorted(flags)],
        stdin=subprocess.DEVNULL,
        stdout=keep,
        stderr=keep,
        start_new_session="setsid" in flags,
    )


def freeze(stage: Stage, _: Step) -> None:
    """FREEZE: a deadlock of the whole process; only a signal ends it."""
    stage.host.inlet.allow(allowed=False)
    stage.host.outlet.freeze()


def reading(stage: Stage, step: Step) -> None:
    """STOPREADING and READ: leave stdin alone, take it up again."""
    stage.host.inlet.allow(allowed=step.word == "READ")


def stay(stage: Stage, _: Step) -> None:
    """STAY: wait for ever."""
    stage.wait(lambda: False)


def drain(stage: Stage, _: Step) -> None:
    """DRAIN: wait for the other blocks to come to their end."""
    stage.host.drain(stage)


def setting(stage: Stage, step: Step) -> None:
    """Settings are carried out before the script starts; as a step there is nothing to do."""


_TIMES = frozenset({"times"})
PROCESS = (
    Verb(
        Word("RAW", 'RAW "bytes" [times=N]', "bytes to stdout, \\xHH is one byte", 1, 1, _TIMES),
        raw,
    ),
    Verb(Word("ERR", 'ERR "bytes" [times=N]', "bytes to stderr", 1, 1, _TIMES), err),
    Verb(Word("FLOOD", "FLOOD N", "N chunks at full speed", 1, 1), flood),
    Verb(Word("PACED", "PACED N MS", "N chunks, MS apart, saying when (ns)", 2, 2), paced),
    Verb(Word("BIG", "BIG SIZE [TEXT]", "one chunk of SIZE (K, M) times TEXT", 1, 2), big),
    Verb(Word("EXIT", "EXIT CODE", "end at once", 1, 1), leave),
    Verb(Word("KILL", "KILL [SIGNAL]", "signal oneself", 0, 1), kill),
    Verb(Word("CLOSE", "CLOSE stdin|stdout|stderr", "close a stream and run on", 1, 1), close),
    Verb(
        Word(
            "SPAWN",
            "SPAWN PIDFILE [setsid] [ignore-term] [hold]",
            "start an idle child; hold: it keeps our stdout and stderr",
            1,
            4,
        ),
        spawn,
    ),
    Verb(Word("FREEZE", "FREEZE", "a deadlock: nothing read, nothing written"), freeze),
    Verb(Word("STOPREADING", "STOPREADING", "leave stdin alone"), reading),
    Verb(Word("READ", "READ", "read stdin again"), reading),
    Verb(Word("STAY", "STAY", "wait for ever (below ON eof: survive the end of stdin)"), stay),
    Verb(Word("DRAIN", "DRAIN", "wait for the other blocks"), drain),
    Verb(
        Word("IGNORE", "IGNORE TERM|INT|HUP …", "ignore signals", 1, None, setting=True),
        setting,
    ),
    Verb(
        Word("ALLOW", "ALLOW unknown-sessions", "take prompts for any session", 1, 1, setting=True),
        setting,
    ),
    Verb(Word("FIRSTID", "FIRSTID N", "the id of our first request", 1, 1, setting=True), setting),
    Verb(Word("EOL", "EOL lf|crlf", "how our lines end", 1, 1, setting=True), setting),
    Verb(Word("WORDS", "WORDS FILE.py", "more step words: its VERBS", 1, 1, setting=True), setting),
)
