"""Lexing of fake-agent scripts: one logical line becomes tokens that may hold variables."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from acphost.demo import plain_json
from acphost.demo.plain_json import NOTHING
from acphost.errors import AcpHostError

JsonObject = dict[str, object]
Lookup = Callable[[str], str]

_VARIABLE = re.compile(r"\$\{(#?)(\w+)(?::-([^}]*))?\}|\$(SESSION|PROMPT)\b")
_OPTION = re.compile(r"[A-Za-z_]\w*=")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "e": "\x1b"}
_CLOSING = {"{": "}", "[": "]"}


class ScriptError(AcpHostError):
    """A script cannot be read or carried out; the message names file and line."""

    word = "script_error"


class _UnfinishedError(Exception):
    """The line ends inside a JSON value: the next line belongs to it."""


class Variable(NamedTuple):
    """A `${NAME}`, `${NAME:-default}` or `${#NAME}` in a text."""

    name: str
    default: str | None = None
    as_number: bool = False


class Token(NamedTuple):
    """A word, a quoted text or a JSON value, with the variables still in it.

    In `parts` a byte written as `\\xHH` above 0x7F is kept as a lone surrogate, as Python's
    `surrogateescape` does, so that one token serves as text and as bytes.
    """

    parts: tuple[str | Variable, ...] = ()
    json: object = NOTHING
    quoted: bool = False

    @property
    def is_json(self) -> bool:
        return self.json is not NOTHING

    def plain(self) -> str:
        """The text with variables left out; enough to compare with a keyword."""
        return "".join(part for part in self.parts if isinstance(part, str))

    def variables(self) -> Iterator[Variable]:
        """Every variable of the token, those inside of JSON strings included."""
        yield from (part for part in self.parts if isinstance(part, Variable))
        if self.is_json:
            yield from _variables_of(self.json)

    def text(self, lookup: Lookup) -> str:
        """The token as text, variables filled in."""
        if self.is_json:
            return plain_json.encode(fill(self.json, lookup)).decode()
        joined = "".join(_part(part, lookup) for part in self.parts)
        return "".join(chr(ord(c) - 0xDC00) if 0xDC80 <= ord(c) <= 0xDCFF else c for c in joined)

    def raw(self, lookup: Lookup) -> bytes:
        """The token as bytes: `\\xE9` is one byte, everything else is UTF-8."""
        if self.is_json:
            return plain_json.encode(fill(self.json, lookup))
        return "".join(_part(part, lookup) for part in self.parts).encode(errors="surrogateescape")

    def value(self, lookup: Lookup) -> object:
        """The token as a JSON value; bare numbers, `true`, `false`, `null` are what they seem."""
        if self.is_json:
            return fill(self.json, lookup)
        if not self.quoted and len(self.parts) == 1:
            only = self.parts[0]
            if isinstance(only, Variable):
                return fill_variable(only, lookup)
            try:
                return plain_json.decode(only)
            except ValueError:
                return only
        return self.text(lookup)


def _part(part: str | Variable, lookup: Lookup) -> str:
    return part if isinstance(part, str) else str(fill_variable(part, lookup))


def fill_variable(variable: Variable, lookup: Lookup) -> str | int | float:
    """The value of a variable, `${#NAME}` as a number (0 where it is empty)."""
    found = lookup(variable.name) or variable.default or ""
    if not variable.as_number:
        return found
    return float(found) if "." in found else int(found or 0)


def template(text: str) -> tuple[str | Variable, ...]:
    """Cut a text at its variables."""
    parts: list[str | Variable] = []
    start = 0
    for found in _VARIABLE.finditer(text):
        if found.start() > start:
            parts.append(text[start : found.start()])
        parts.append(Variable(found[2] or found[4], found[3], found[1] == "#"))
        start = found.end()
    if start < len(text):
        parts.append(text[start:])
    return tuple(parts)


def fill(value: object, lookup: Lookup) -> object:
    """A JSON value with the variables in its strings filled in."""
    match value:
        case str():
            parts = template(value)
            if len(parts) == 1 and isinstance(parts[0], Variable):
                return fill_variable(parts[0], lookup)
            return "".join(_part(part, lookup) for part in parts)
        case dict():
            return {str(fill(key, lookup)): fill(item, lookup) for key, item in value.items()}
        case list():
            return [fill(item, lookup) for item in value]
    return value


def _variables_of(value: object) -> Iterator[Variable]:
    match value:
        case str():
            yield from (part for part in template(value) if isinstance(part, Variable))
        case dict():
            for key, item in value.items():
                yield from _variables_of(key)
                yield from _variables_of(item)
        case list():
            for item in value:
                yield from _variables_of(item)


class Line(NamedTuple):
    """One logical line: how deep it stands, what it says, where it began."""

    number: int
    indent: int
    tokens: Sequence[Token]
    options: Mapping[str, Token]


def read_lines(text: str, name: str) -> Iterator[Line]:
    """Cut a script into logical lines; blank lines and comments are gone.

    Raises ScriptError with file and line.
    """
    physical = text.split("\n")
    index = 0
    while index < len(physical):
        number = index + 1
        content = physical[index].rstrip("\r")
        index += 1
        body = content.lstrip(" ")
        if not body or body.startswith("#"):
            continue
        if body.startswith("\t"):
            raise ScriptError(f"{name}:{number}: indent with spaces, not with tabs")
        while True:
            try:
                tokens, options = _Lexer(body, f"{name}:{number}").run()
                break
            except _UnfinishedError:
                if index == len(physical):
                    raise ScriptError(f"{name}:{number}: a JSON value is not closed") from None
                body += "\n" + physical[index].rstrip("\r")
                index += 1
        yield Line(number, len(content) - len(content.lstrip(" ")), tokens, options)


class _Lexer:
    """Tokens of one logical line."""

    def __init__(self, text: str, where: str) -> None:
        self._text = text
        self._at = 0
        self._where = where

    def run(self) -> tuple[list[Token], dict[str, Token]]:
        tokens: list[Token] = []
        options: dict[str, Token] = {}
        while self._skip_blanks():
            found = _OPTION.match(self._text, self._at)
            if found is None or not tokens:  # the first token is the word itself
                tokens.append(self._token())
                continue
            key = found[0][:-1]
            self._at = found.end()
            if key in options:
                raise ScriptError(f"{self._where}: {key}= is given twice")
            options[key] = self._token()
        return tokens, options

    def _skip_blanks(self) -> bool:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._at < len(self._text) and self._text[self._at] != "#"

    def _token(self) -> Token:
        if self._at < len(self._text) and self._text[self._at] in _CLOSING:
            return self._json()
        parts: list[str | Variable] = []
        quoted = False
        start = self._at
        while self._at < len(self._text) and not self._text[self._at].isspace():
            if self._text[self._at] in "\"'":
                parts += template(self._text[start : self._at])
                parts += self._quoted(self._text[self._at])
                quoted = True
                start = self._at
            else:
                self._at += 1
        parts += template(self._text[start : self._at])
        return Token(tuple(parts), quoted=quoted)

    def _quoted(self, quote: str) -> list[str | Variable]:
        self._at += 1
        parts: list[str | Variable] = []
        plain = ""
        while self._at < len(self._text) and self._text[self._at] != quote:
            if self._text[self._at] == "\\":
                parts += template(plain)
                parts.append(self._escape())  # apart, so that `\\${X}` and `\\$` stay literal
                plain = ""
            else:
                plain += self._text[self._at]
                self._at += 1
        if self._at >= len(self._text):
            raise ScriptError(f"{self._where}: a text is not closed with {quote}")
        self._at += 1
        return parts + list(template(plain))

    def _escape(self) -> str:
        code = self._text[self._at + 1 : self._at + 2]
        self._at += 2
        if code in _ESCAPES:
            return _ESCAPES[code]
        if code not in ("x", "u"):  # other backslashes stay, for the sake of patterns
            return code if code in "\\\"'$" else f"\\{code}"
        digits = self._text[self._at : self._at + (2 if code == "x" else 4)]
        self._at += len(digits)
        try:
            point = int(digits, 16)
        except ValueError:
            raise ScriptError(f"{self._where}: \\{code}{digits} is not an escape") from None
        if 0xD800 <= point <= 0xDFFF:
            raise ScriptError(
                f"{self._where}: half a surrogate pair is no character; RAW can write "
                f"the JSON escape, as \\\\{code}{digits}"
            )
        return chr(point + 0xDC00) if code == "x" and point > 0x7F else chr(point)

    def _json(self) -> Token:
        start = self._at
        closers: list[str] = []
        in_text = False
        while self._at < len(self._text):
            char = self._text[self._at]
            self._at += 1
            if in_text:
                if char == "\\":
                    self._at += 1
                in_text = char != '"'
            elif char == '"':
                in_text = True
            elif char in _CLOSING:
                closers.append(_CLOSING[char])
            elif closers and char == closers[-1]:
                closers.pop()
                if not closers:
                    return self._decoded(self._text[start : self._at])
        raise _UnfinishedError

    def _decoded(self, text: str) -> Token:
        try:
            return Token(json=plain_json.decode(text))
        except ValueError as exc:
            raise ScriptError(f"{self._where}: not JSON: {exc}") from exc
