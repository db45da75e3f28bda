"""Which line of a TOML file a key stands on: tomllib does not tell, people want to know.

A scanner, not a second parser: it is given text that tomllib has accepted, or does its best.
"""

import re
import tomllib

KeyPath = tuple[str, ...]

_TOKEN = re.compile(
    r"""
      (?P<comment> \#[^\n]* )
    | (?P<string>
          \"\"\" (?: \\. | [^\\] )*? \"{3,5}     # the shortest that closes; \" may end the text
        | '''    .*? '{3,5}
        | \"     (?: \\. | [^\"\\\n] )* \"
        | '      [^'\n]* '
      )
    | (?P<word> [A-Za-z0-9_-]+ )
    | (?P<mark> [\[\]{}=,\n] )
    """,
    re.VERBOSE | re.DOTALL,
)


def key_lines(text: str) -> dict[KeyPath, int]:
    """Map the path of every table and key in `text` to the line where it first stands."""
    scanner = _Scanner()
    line, seen = 1, 0
    for token in _TOKEN.finditer(text):
        line += text.count("\n", seen, token.start())
        seen = token.start()
        match token.lastgroup:
            case "word" | "string":
                scanner.word(token.group())
            case "mark":
                scanner.mark(token.group(), line)
    scanner.mark("\n", line)
    return scanner.lines


class _Scanner:
    """Follows tables, inline tables and arrays; words count as a key only once `=` comes."""

    def __init__(self) -> None:
        self.lines: dict[KeyPath, int] = {}
        self._table: KeyPath = ()
        self._words: list[str] = []
        self._value: KeyPath = ()
        #: For each open bracket of a value: the path that keys inside it belong to.
        self._open: list[KeyPath] = []
        self._in_header = False
        self._is_list = False
        #: How many tables of each list there were.
        self._items: dict[KeyPath, int] = {}
        self._at_start = True

    def word(self, text: str) -> None:
        self._words.append(text)
        self._at_start = False

    def mark(self, mark: str, line: int) -> None:
        match mark:
            case "\n" if not self._open:
                self._end_of_line(line)
                return
            case "[" if self._at_start or (self._in_header and not self._words):
                self._is_list = self._in_header
                self._in_header = True
            case "]" if self._in_header:
                pass
            case "=":
                self._value = (*self._base(), *self._take_words())
                self._record(self._value, line)
            case "[" | "{":
                self._open.append(self._value)
                self._words.clear()
            case "]" | "}" if self._open:
                self._value = self._open.pop()
                self._words.clear()
            case ",":
                self._value = self._base()
                self._words.clear()
        if mark != "\n":
            self._at_start = False

    def _base(self) -> KeyPath:
        return self._open[-1] if self._open else self._table

    def _end_of_line(self, line: int) -> None:
        if self._in_header:
            self._table = self._take_words()
            self._record(self._table, line)
            if self._is_list:
                number = self._items.get(self._table, 0)
                self._items[self._table] = number + 1
                self._table = (*self._table, f"[{number}]")
                self._record(self._table, line)
        self._words.clear()
        self._in_header = self._is_list = False
        self._at_start = True

    def _record(self, path: KeyPath, line: int) -> None:
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _take_words(self) -> KeyPath:
        taken = tuple(_plain(word) for word in self._words)
        self._words.clear()
        return taken


def _plain(word: str) -> str:
    """A key without its quotes and escapes."""
    if word[0] not in "\"'":
        return word
    try:
        return str(tomllib.loads(f"key = {word}")["key"])
    except tomllib.TOMLDecodeError:
        return word
