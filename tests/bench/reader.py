"""A subscriber that costs next to nothing: it counts events in the bytes, and parses none.

    python reader.py DESCRIPTOR count|stamps N

says `ready`, reads a connected socket until it has seen N events of text, and prints one JSON
object: when the last of them was read (monotonic nanoseconds), and with `stamps` how long each took
to come, in milliseconds, by the time of writing that is its text.
"""

import json
import re
import socket
import sys
import time

_SIZE = 1 << 20
#: As the daemon and the bare loop write them, once in each event of text.
MARK = b'"kind":"message.delta"'
_STAMP = re.compile(rb'"text":"(\d+)"')
#: Longer than a mark or a stamp: what is looked at again when the next bytes have come.
_OVERLAP = 64


def count(connection: socket.socket, wanted: int) -> dict[str, object]:
    """Read until `wanted` events have come."""
    seen, tail = 0, b""
    keep = len(MARK) - 1
    while seen < wanted:
        data = connection.recv(_SIZE)
        if not data:
            break
        # A mark that two reads share is in the seam, and nowhere else.
        seen += data.count(MARK) + (tail + data[:keep]).count(MARK)
        tail = data[-keep:] if len(data) >= keep else (tail + data)[-keep:]
    return {"seen": seen, "last": time.monotonic_ns()}


def stamps(connection: socket.socket, wanted: int) -> dict[str, object]:
    """Read `wanted` events, and note how old each is."""
    ages: list[float] = []
    rest = b""
    while len(ages) < wanted:
        data = connection.recv(_SIZE)
        now = time.monotonic_ns()
        if not data:
            break
        rest += data
        end = 0
        for stamp in _STAMP.finditer(rest):
            ages.append((now - int(stamp[1])) / 1e6)
            end = stamp.end()
        rest = rest[max(end, len(rest) - _OVERLAP) :]
    return {"seen": len(ages), "last": time.monotonic_ns(), "ages": ages}


def main(descriptor: int, mode: str, wanted: int) -> None:
    """Read one socket and tell about it."""
    with socket.socket(fileno=descriptor) as connection:
        print("ready", flush=True)
        print(json.dumps((stamps if mode == "stamps" else count)(connection, wanted)))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
