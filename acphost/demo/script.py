"""Scripts as a tree: linear steps, rules and settings, checked before anything runs."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from acphost.demo.tokens import Line, Lookup, ScriptError, Token, read_lines

#: What a rule may be written for, besides any method name with a slash in it.
EVENTS = {
    "init": "initialize",
    "authenticate": "authenticate",
    "logout": "logout",
    "new": "session/new",
    "load": "session/load",
    "resume": "session/resume",
    "list": "session/list",
    "close": "session/close",
    "prompt": "session/prompt",
    "cancel": "session/cancel",
    "garbage": "garbage",  # a line that is no JSON object
    "eof": "eof",  # stdin ended
    "term": "term",  # SIGTERM came
}
#: Options that every step takes.
EVERYWHERE = frozenset({"session", "memory"})
OPERATORS = ("=", "!=", "~")


class Word(NamedTuple):
    """What the reader of scripts knows of a step word."""

    name: str
    usage: str
    summary: str
    least: int = 0
    most: int | None = 0
    options: frozenset[str] | None = frozenset()  # None: any, they are fields of a message
    block: bool = False
    receives: str = ""  # the method it waits for in the linear part ("*": named by its argument)
    sets: frozenset[str] = frozenset()  # variables it gives a value
    setting: bool = False  # stands at the left margin and holds from the start


class Step:
    """One step as written."""

    def __init__(
        self, word: str, args: Sequence[Token], options: Mapping[str, Token], where: str
    ) -> None:
        self.word = word
        self.args = args
        self.options = options
        self.where = where
        self.block: list[Step] = []
        self.otherwise: list[Step] = []


class Match(NamedTuple):
    """A text that must occur (whatever its case), or a regular expression that must be found."""

    text: str = ""
    pattern: re.Pattern[str] | None = None

    def groups(self, subject: str) -> dict[str, str] | None:
        """The groups by number and by name in capitals; None where it does not match."""
        if self.pattern is None:
            return {} if self.text.casefold() in subject.casefold() else None
        found = self.pattern.search(subject)
        if found is None:
            return None
        named = {name.upper(): text or "" for name, text in found.groupdict().items()}
        return {str(n + 1): text or "" for n, text in enumerate(found.groups())} | named


class Rule:
    """`ON event …`: a block for whatever of that kind the linear part does not take."""

    def __init__(
        self, event: str, match: Match, guard: Sequence[Token], flags: set[str], nth: int | None,
        where: str,
    ) -> None:  # fmt: skip
        self.event = event
        self.match = match
        self.guard = guard
        self.once = "ONCE" in flags
        self.keep = "KEEP" in flags
        self.deaf = "DEAF" in flags
        self.nth = nth
        self.block: list[Step] = []
        self.where = where
        self.used = False


class Script:
    """A whole script."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.steps: list[Step] = []
        self.rules: list[Rule] = []
        self.settings: list[Step] = []
        self.blocks: dict[str, list[Step]] = {}

    def every_step(self) -> Iterator[Step]:
        """All steps, wherever they stand."""
        yield from walk(self.steps)
        for block in [*(rule.block for rule in self.rules), *self.blocks.values()]:
            yield from walk(block)

    def own_names(self) -> frozenset[str]:
        """The variables that its steps set."""
        steps = list(self.every_step())
        names = {step.args[0].plain() for step in steps if step.word in ("SET", "ADD")}
        return frozenset(names.union(*(step.options for step in steps if step.word == "DO")))


def holds(condition: Sequence[Token], lookup: Lookup) -> bool:
    """Judge `A = B`, `A != B` or `A ~ PATTERN`."""
    left, operator, right = (token.text(lookup) for token in condition)
    if operator == "~":
        return re.search(right, left) is not None
    return (left == right) == (operator == "=")


def parse_match(token: Token | None, where: str) -> Match:
    """Read `"text"` or `~"pattern"`; nothing at all matches everything."""
    text = "" if token is None else token.plain()
    if not text.startswith("~"):
        return Match(text=text)
    try:
        return Match(pattern=re.compile(text[1:]))
    except re.error as exc:
        raise ScriptError(f"{where}: {text[1:]!r} is no regular expression: {exc}") from exc


def walk(steps: Sequence[Step]) -> Iterator[Step]:
    """Every step of a tree, in the order written."""
    for step in steps:
        yield step
        yield from walk(step.block)
        yield from walk(step.otherwise)


def parse_script(text: str, path: str, words: Mapping[str, Word]) -> Script:
    """Read a script.

    Raises ScriptError, which names file, line and the cure.
    """
    return _Parser(list(read_lines(text, path)), path, words).run()


class _Parser:
    def __init__(self, lines: list[Line], path: str, words: Mapping[str, Word]) -> None:
        self._lines = lines
        self._at = 0
        self._path = path
        self._words = words

    def run(self) -> Script:
        script = Script(self._path)
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.indent:
                raise ScriptError(f"{self._where(line)}: nothing above this line takes a block")
            if line.tokens[0].plain().upper() == "ON":
                script.rules.append(self._rule(line))
                continue
            if line.tokens[0].plain().upper() == "DEFINE":
                self._define(line, script)
                continue
            step = self._step(script.steps, linear=True)
            if step.word != "ELSE":
                (script.settings if self._is_setting(step) else script.steps).append(step)
        return script

    def _define(self, line: Line, script: Script) -> None:
        self._at += 1
        if len(line.tokens) != 2:
            raise ScriptError(f"{self._where(line)}: written as DEFINE NAME")
        script.blocks[line.tokens[1].plain()] = self._block(line, linear=False)

    def _is_setting(self, step: Step) -> bool:
        """`EXPECT name` holds from the start, `EXPECT A = B` is a step like any other."""
        return self._words[step.word].setting and not (step.word == "EXPECT" and len(step.args) > 1)

    def _where(self, line: Line) -> str:
        return f"{self._path}:{line.number}"

    def _block(self, parent: Line, *, linear: bool) -> list[Step]:
        """The lines below `parent` that stand deeper."""
        steps: list[Step] = []
        depth: int | None = None
        while self._at < len(self._lines) and self._lines[self._at].indent > parent.indent:
            line = self._lines[self._at]
            depth = line.indent if depth is None else depth
            if line.indent != depth:
                raise ScriptError(f"{self._where(line)}: indented unlike the lines around it")
            step = self._step(steps, linear=linear)
            if self._is_setting(step):
                raise ScriptError(f"{step.where}: {step.word} stands at the left margin only")
            if step.word != "ELSE":
                steps.append(step)
        return steps

    def _step(self, before: list[Step], *, linear: bool) -> Step:
        line = self._lines[self._at]
        self._at += 1
        where = self._where(line)
        name = line.tokens[0].plain().upper()
        word = self._words.get(name)
        if word is None:
            raise ScriptError(
                f"{where}: {line.tokens[0].plain()!r} is not a step word (see --help)"
            )
        step = Step(name, line.tokens[1:], line.options, where)
        _check_arguments(word, step)
        if word.receives and not linear and name not in ("INIT", "NEW"):
            raise ScriptError(f"{where}: {name} receives, so it cannot stand below ON")
        step.block = self._block(line, linear=linear)
        if step.block and not word.block:
            raise ScriptError(f"{step.block[0].where}: {name} takes no block")
        if name == "ELSE":
            if not before or before[-1].word != "IF" or before[-1].otherwise:
                raise ScriptError(f"{where}: ELSE without IF")
            before[-1].otherwise = step.block
        return step

    def _rule(self, line: Line) -> Rule:
        self._at += 1
        where = self._where(line)
        tokens = list(line.tokens[1:])
        if not tokens:
            raise ScriptError(f"{where}: ON needs an event: {', '.join(EVENTS)} or a method")
        name = tokens.pop(0).plain()
        if name not in EVENTS and "/" not in name:
            raise ScriptError(f"{where}: no event is called {name!r}: {', '.join(EVENTS)}")
        match = tokens.pop(0) if tokens and _is_match(tokens[0]) else None
        guard: Sequence[Token] = ()
        flags: set[str] = set()
        while tokens:
            flag = tokens.pop(0).plain().upper()
            if flag == "IF":
                guard, tokens = tokens, []
                _check_condition(guard, where)
            elif flag in ("ONCE", "KEEP", "DEAF"):
                flags.add(flag)
            else:
                raise ScriptError(f"{where}: {flag!r} after ON is none of ONCE, KEEP, DEAF, IF")
        unknown = set(line.options) - {"nth"}
        if unknown:
            raise ScriptError(f"{where}: ON has no option {min(unknown)}=")
        nth = line.options.get("nth")
        if nth is not None and not nth.plain().isdecimal():
            raise ScriptError(f"{where}: nth= is a number")
        times = None if nth is None else int(nth.plain())
        rule = Rule(EVENTS.get(name, name), parse_match(match, where), guard, flags, times, where)
        rule.block = self._block(line, linear=False)
        return rule


def _is_match(token: Token) -> bool:
    return token.quoted or token.plain().startswith("~")


def _check_condition(tokens: Sequence[Token], where: str) -> None:
    if len(tokens) != 3 or tokens[1].plain() not in OPERATORS:
        raise ScriptError(f"{where}: a condition is A = B, A != B or A ~ PATTERN")


def _check_arguments(word: Word, step: Step) -> None:
    count = len(step.args)
    if count < word.least or (word.most is not None and count > word.most):
        raise ScriptError(f"{step.where}: written as {word.usage}")
    if word.name == "IF" or (word.name == "EXPECT" and count > 1):
        _check_condition(step.args, step.where)
    if word.options is not None:
        for key in step.options:
            if key not in word.options and key not in EVERYWHERE:
                raise ScriptError(f"{step.where}: {word.name} has no option {key}=")
