"""The agent of the bench, for the daemon and the bare loop alike: floods, or paces itself.

`flood N` is answered with N chunks as fast as the pipe takes them, `paced N MS` with N chunks MS
milliseconds apart whose text is the time of writing in nanoseconds, anything else with one chunk.
Standard library only, one thread, started twenty times over by the bench.
"""

import json
import os
import sys
import time

#: Chunks are written that many at a time, and differ within such a block.
_BLOCK = 1000


def _line(message: object) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _chunk(session_id: str, text: str) -> bytes:
    content = {"type": "text", "text": text}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    params = {"sessionId": session_id, "update": update}
    return _line({"jsonrpc": "2.0", "method": "session/update", "params": params})


def _flood(session_id: str, count: int) -> None:
    # Made of one: twenty agents begin at once, and it is not they who are measured.
    begin, end = _chunk(session_id, "@").split(b"@")
    lines = [b"%bword %03d %b" % (begin, place, end) for place in range(_BLOCK)]
    block = b"".join(lines)
    for _ in range(count // _BLOCK):
        sys.stdout.buffer.write(block)
    sys.stdout.buffer.write(b"".join(lines[: count % _BLOCK]))


def _pace(session_id: str, count: int, gap: float) -> None:
    for _ in range(count):
        sys.stdout.buffer.write(_chunk(session_id, str(time.monotonic_ns())))
        sys.stdout.buffer.flush()
        time.sleep(gap / 1000)


def _prompt(session_id: str, text: str) -> None:
    match text.split():
        case ["flood", count]:
            _flood(session_id, int(count))
        case ["paced", count, gap]:
            _pace(session_id, int(count), float(gap))
        case _:
            sys.stdout.buffer.write(_chunk(session_id, "ok"))


def _answer(method: str, params: dict[str, object]) -> object:
    match method, params:
        case "initialize", _:
            info = {"name": "bench", "version": "1"}
            return {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": info}
        case "session/new", _:
            return {"sessionId": f"bench-{os.getpid()}-{time.monotonic_ns()}"}
        case "session/prompt", {"sessionId": str(session_id), "prompt": [{"text": str(text)}]}:
            _prompt(session_id, text)
            return {"stopReason": "end_turn"}
    return {}


def main() -> None:
    """Answer requests until the end of input."""
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" in message and "method" in message:
            result = _answer(message["method"], message.get("params") or {})
            sys.stdout.buffer.write(
                _line({"jsonrpc": "2.0", "id": message["id"], "result": result})
            )
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
