"""Repairs of JSON text that keep every byte which is not itself the damage."""

import re
from collections.abc import Iterator, Sequence

import msgspec

# A terminal escape: OSC and its kin up to their end, CSI, any other; and what stands around them.
_LEADING_ESCAPES = re.compile(
    rb"""(?: \x1b\] [^\x07\x1b]* (?: \x07 | \x1b\\ )
           | \x1b [PX^_] [^\x1b]* \x1b\\
           | \x1b\[ [0-?]* [ -/]* [@-~]
           | \x1b [ -/]* [0-Z\\^-~]
           | \xef\xbb\xbf
           | [\x00-\x20\x7f]
         )++""",
    re.VERBOSE,
)

# Possessive, and taken to the end of the line where they are not closed, so that a hostile line
# costs one pass: there is no way back into what is matched, and no second start inside it.
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_DAMAGED_TOKEN = re.compile(_STRING + rb"|-?+\bInfinity\b|\bNaN\b", re.DOTALL)
_TOKEN = re.compile(_STRING + rb"|[{}\[\]:,]|[^\s{}\[\]:,\"]++", re.DOTALL)

_SURROGATE = re.compile(
    rb"""(?P<slashes> \\(?<!\\\\)\\*+ ) (?P<first> u[dD][89a-fA-F][0-9a-fA-F]{2} )
         (?P<second> \\u[dD][c-fC-F][0-9a-fA-F]{2} )?""",
    re.VERBOSE,
)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_CONTROLS = bytes(range(0x20))

#: U+2028, U+2029 and U+0085. The others are control characters, which JSON escapes anyway.
_LINE_ENDS_TO_SOME = (
    (b"\xe2\x80\xa8", rb"\u2028"),
    (b"\xe2\x80\xa9", rb"\u2029"),
    (b"\xc2\x85", rb"\u0085"),
)

#: Each repair takes a call. A line with more of them is not worth the time of everybody else.
_MOST_REPAIRS = 100_000


def is_utf8(text: bytes) -> bool:
    """Whether `text` is valid UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def without_leading_escapes(line: bytes) -> bytes:
    """What follows the terminal escapes, control characters or byte order mark in front."""
    found = _LEADING_ESCAPES.match(line)
    return line[found.end() :] if found else line


def mend(line: bytes) -> bytes:
    """Strict JSON, if bad UTF-8, lone surrogates, bare controls or NaN were all that was wrong."""
    if not line.isascii():
        line = line.decode(errors="replace").encode()
    line = _SURROGATE.sub(_paired, line, _MOST_REPAIRS)
    controls = len(line) - len(line.translate(None, _CONTROLS))
    if (controls or b"NaN" in line or b"Infinity" in line) and controls <= _MOST_REPAIRS:
        line = _DAMAGED_TOKEN.sub(_strict_token, line, _MOST_REPAIRS)
    return line


def _paired(found: re.Match[bytes]) -> bytes:
    slashes, first, second = found.group("slashes", "first", "second")
    if len(slashes) % 2 == 0:  # they escape each other, and what follows them is text
        return slashes + first + (rb"\ufffd" if second else b"")
    if second and first[2:3] in b"89abAB":
        return found[0]
    return slashes + b"ufffd" + (rb"\ufffd" if second else b"")


def _strict_token(found: re.Match[bytes]) -> bytes:
    token = found[0]
    return _CONTROL.sub(_escaped, token) if token.startswith(b'"') else b"null"


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0])


def member(line: bytes, path: Sequence[str]) -> bytes | None:
    """The bytes of the value at `path` inside nested objects; the last of equal keys counts."""
    value: bytes | None = line
    for name in path:
        value = None if value is None else _member(value, name)
    return value


def _member(text: bytes, name: str) -> bytes | None:
    tokens = _TOKEN.finditer(text)
    first = next(tokens, None)
    if first is None or first[0] != b"{":
        return None
    found = None
    for key, start, end in _members(tokens):
        if _same_name(key, name):
            found = text[start:end]
    return found


def _members(tokens: Iterator[re.Match[bytes]]) -> Iterator[tuple[bytes, int, int]]:
    """Key, begin and end of each member of the object whose brace was just read."""
    depth = 0
    key: bytes | None = None
    start = end = -1
    for token in tokens:
        text = token[0]
        if depth == 0 and text in (b",", b"}"):
            if key is not None and start >= 0:
                yield key, start, end
            if text == b"}":
                return
            key, start = None, -1
            continue
        if text in (b"{", b"["):
            depth += 1
        elif text in (b"}", b"]"):
            depth -= 1
        if key is None:
            key = text
        elif start >= 0 or text != b":":
            start = token.start() if start < 0 else start
            end = token.end()


def _same_name(key: bytes, name: str) -> bool:
    if b"\\" not in key:
        return key[1:-1] == name.encode()
    try:
        return msgspec.json.decode(mend(key), type=str) == name
    except msgspec.DecodeError:
        return False


def for_any_line_reader(line: bytes) -> bytes:
    """The same JSON in valid UTF-8, without characters that some readers take for line ends."""
    if not is_utf8(line):
        line = line.decode(errors="replace").encode()
    for character, escape in _LINE_ENDS_TO_SOME:
        line = line.replace(character, escape)
    return line


def without_surrogates(value: object) -> object:
    """A copy to encode in which lone surrogates, as in undecodable file names, are replaced."""
    match value:
        case str():
            return value.encode(errors="replace").decode()
        case msgspec.Struct():
            # Only raw JSON is no builtin of what we send.
            return without_surrogates(msgspec.to_builtins(value, enc_hook=msgspec.json.decode))
        case dict():
            return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
        case list() | tuple() | set() | frozenset():
            return [without_surrogates(item) for item in value]
        case _:
            return value
