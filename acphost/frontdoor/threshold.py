"""The first answer, given before the event loop and everything behind it is loaded.

An editor waits for `initialize` each time it starts. The answer depends on nothing but this
program, so nothing is loaded for it that is not needed to read a line and write one.
"""

from collections.abc import Callable

from msgspec import Raw

from acphost.errors import AcpHostError, InvalidRequestError, ProtocolError
from acphost.frontdoor.failures import failure_frame
from acphost.frontdoor.offer import greeting
from acphost.frontdoor.stdio import Stdio
from acphost.rpc.codec import Repaired, decode_message, deserves_answer, encode_success
from acphost.rpc.framing import LineFramer
from acphost.wire.jsonrpc import Request

#: Of one line from the editor; whole files come in one.
MAX_LINE = 1 << 28


def greet(
    stdio: Stdio, framer: LineFramer, version: str, check: Callable[[], AcpHostError | None]
) -> tuple[Raw, list[bytes]] | None:
    """Answer until the editor has introduced itself; returns what it said and the lines behind it.

    None if it went away before. `check` tells why nothing can be served, where that is so.
    """
    while chunk := stdio.read_now():
        lines = framer.feed(chunk)
        for number, line in enumerate(lines, 1):
            told = _take(stdio, line, version, check)
            if told is not None:
                return told, lines[number:]
    return None


def _take(
    stdio: Stdio, line: bytes, version: str, check: Callable[[], AcpHostError | None]
) -> Raw | None:
    try:
        decoded = decode_message(line)
    except ProtocolError as exc:
        if deserves_answer(line):
            stdio.write_now(failure_frame(None, exc))
        return None
    message = decoded.message if isinstance(decoded, Repaired) else decoded
    if not isinstance(message, Request):
        return None
    if message.method != "initialize":
        early = InvalidRequestError(f"{message.method} came before `initialize`")
        stdio.write_now(failure_frame(message.id, early))
        return None
    problem = check()
    if problem is not None:
        stdio.write_now(failure_frame(message.id, problem))
        return None
    stdio.write_now(encode_success(message.id, greeting(version)))
    return message.params
