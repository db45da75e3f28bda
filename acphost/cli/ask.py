"""Questions of agents, put to the person at the terminal."""

import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import anyio

from acphost.cli.render import how_to_answer, question_of
from acphost.cli.screen import Pen, one_line
from acphost.client.client import Client
from acphost.errors import AcpHostError

_SIMPLE = {
    "allow": ("allow_once", "allow_always"),
    "yes": ("allow_once", "allow_always"),
    "y": ("allow_once", "allow_always"),
    "reject": ("reject_once", "reject_always"),
    "no": ("reject_once", "reject_always"),
    "n": ("reject_once", "reject_always"),
}


class Option(NamedTuple):
    """One way to answer."""

    option_id: str
    name: str
    kind: str


def options_of(values: object) -> list[Option]:
    """The options of a question, as far as they can be chosen."""
    if not isinstance(values, list):
        return []
    return [
        Option(str(value["optionId"]), str(value.get("name") or value["optionId"]), _kind(value))
        for value in values
        if isinstance(value, dict) and value.get("optionId")
    ]


def choose(word: str, options: Sequence[Option]) -> Option | None:
    """The option that a word means: a number, an id, a name, or simply allow or reject."""
    word = word.strip()
    if word.isdecimal() and 0 < int(word) <= len(options):
        return options[int(word) - 1]
    for option in options:
        if word and word.casefold() in (option.option_id.casefold(), option.name.casefold()):
            return option
    for kind in (word, *_SIMPLE.get(word.casefold(), ())):
        for option in options:
            if option.kind == kind:
                return option
    return None


def has_terminal(pen: Pen) -> bool:
    """Whether there is a person to ask: who reads what the pen writes, and can type."""
    return sys.stdin.isatty() and pen.is_terminal


class Asker:
    """Puts one question after the other; one that is decided elsewhere meanwhile is taken back."""

    def __init__(self, client: Client, pen: Pen) -> None:
        self._client = client
        self._pen = pen
        self._has_terminal = has_terminal(pen)
        self._open: dict[str, dict[str, Any]] = {}
        self._asking: tuple[str, anyio.CancelScope] | None = None
        self._changed = anyio.Event()

    def requested(self, payload: dict[str, Any]) -> None:
        """An agent asks."""
        self._open[str(payload.get("permissionId"))] = payload
        self._tell()

    def closed(self, payload: dict[str, Any]) -> None:
        """A question was answered or withdrawn."""
        permission_id = str(payload.get("permissionId"))
        self._open.pop(permission_id, None)
        if self._asking is not None and self._asking[0] == permission_id:
            self._pen.write("\n")
            self._asking[1].cancel()

    async def run(self) -> None:
        """Ask until cancelled."""
        while True:
            while not self._open:
                await self._changed.wait()
            permission_id, payload = next(iter(self._open.items()))
            if self._has_terminal:
                await self._ask(permission_id, payload)
            else:
                self._point(payload)
            self._open.pop(permission_id, None)

    def _point(self, payload: dict[str, Any]) -> None:
        self._pen.line(f"waiting for permission: {one_line(question_of(payload), 200)}")
        self._pen.line(f"answer with: {how_to_answer(payload)}")

    async def _ask(self, permission_id: str, payload: dict[str, Any]) -> None:
        options = options_of(payload.get("options"))
        self._pen.line(f"? {one_line(question_of(payload), self._pen.columns - 2)}", "bold")
        for number, option in enumerate(options, 1):
            self._pen.line(f"  {number} {one_line(option.name, 200)}")
        with anyio.CancelScope() as scope:
            self._asking = (permission_id, scope)
            await self._answer(permission_id, options)
        self._asking = None

    async def _answer(self, permission_id: str, options: list[Option]) -> None:
        while True:
            self._pen.write(f"  choose 1-{len(options)}: ")
            line = await _read_line()
            self._pen.at_start = True  # the terminal echoed the newline
            if line is None:
                self._pen.line("no more input; the question stays open")
                return
            option = choose(line, options)
            if option is None:
                continue
            self._asking = None  # nothing to take back any more
            try:
                await self._client.respond(permission_id, option.option_id)
            except AcpHostError as exc:
                self._pen.line(f"  {exc}", "yellow")
            return

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


async def _read_line() -> str | None:
    """One line from the terminal, None at its end; nothing is read before there is one."""
    fd = sys.stdin.fileno()
    await anyio.wait_readable(fd)
    data = os.read(fd, 4096)
    return data.decode(errors="replace") if data else None


def _kind(value: dict[str, Any]) -> str:
    return str(value.get("kind") or "")
