"""What the source says above a field: `#:` comments, which are the descriptions of a schema."""

import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache

_CLASS = re.compile(r"^class (\w+)")
_COMMENT = re.compile(r"^    #: ?(.*)$")
_FIELD = re.compile(r"^    ([a-z_][a-z0-9_]*):")

#: Comments by class and field of one module.
Comments = dict[str, dict[str, str]]


def field_comments(struct: type) -> dict[str, str]:
    """The comment of each field that has one, by the field's name in Python.

    Where a program comes without its source nothing is described, and nothing fails.
    """
    found: dict[str, str] = {}
    for base in reversed(struct.__mro__[:-1]):
        found |= _of_module(base.__module__).get(base.__name__, {})
    return found


@cache
def _of_module(name: str) -> Comments:
    try:
        source = inspect.getsource(sys.modules[name])
    except (OSError, TypeError):
        return {}
    found: Comments = {}
    for cls, field, text in _read(source.splitlines()):
        found.setdefault(cls, {})[field] = text
    return found


def _read(lines: list[str]) -> Iterator[tuple[str, str, str]]:
    cls, words = "", list[str]()
    for line in lines:
        if begin := _CLASS.match(line):
            cls = begin[1]
        if comment := _COMMENT.match(line):
            words.append(comment[1])
            continue
        if words and (field := _FIELD.match(line)):
            yield cls, field[1], " ".join(words)
        words = []
