"""How deep JSON may be nested that comes in: what is taken must be readable by whoever gets it.

Readers give up at very different depths: Python 3.11 at a thousand, less what is on its stack,
3.13 at ten thousand, others in between. An event wraps what an agent said a few levels deeper.
"""

import re
import sys
from array import array
from itertools import accumulate

#: Levels of a line; no agent is known to need more than a dozen.
MAX_DEPTH = 512
#: Each level takes two bytes at least: a line of no more bytes than this is not too deep.
SHALLOW = 2 * MAX_DEPTH
#: For lines of whoever keeps to that: a client trusts its daemon.
UNLIMITED = sys.maxsize

_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
#: An opening bracket is a step up and a closing one a step down, as signed bytes.
_STEPS = bytes({91: 1, 123: 1, 93: 255, 125: 255}.get(byte, byte) for byte in range(256))
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def is_too_deep(line: bytes, most: int = MAX_DEPTH) -> bool:
    """Whether valid JSON is nested deeper than that; quick for all that can not be."""
    if len(line) <= 2 * most or line.count(b"[") + line.count(b"{") <= most:
        return False
    steps = _STRING.sub(b"", line).translate(_STEPS, _NO_BRACKETS)
    return max(accumulate(array("b", steps)), default=0) > most
