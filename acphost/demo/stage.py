"""The stage a block plays on: its session, its request, its variables, and how it waits."""

import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from acphost.demo import plain_json
from acphost.demo.books import Asked, Books, Incoming, Session
from acphost.demo.inlet import Inlet
from acphost.demo.memory import prompt_text
from acphost.demo.outlet import Outlet, Record, json_line
from acphost.demo.plain_json import NOTHING
from acphost.demo.script import Step, Word
from acphost.demo.tokens import JsonObject, ScriptError, Token


class InterruptedBlock(Exception):  # noqa: N818 - it is no error: a cancel ends a block this way
    """The block is to stop where it stands; `reason` is cancel, drop or eof."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Host(Protocol):
    """What a stage needs of the agent it belongs to."""

    changed: threading.Condition
    outlet: Outlet
    inlet: Inlet
    record: Record
    books: Books
    values: dict[str, str]
    labels: dict[str, Incoming | Asked]
    init: JsonObject
    own_names: frozenset[str]  # what the script sets itself, whatever the environment has

    def take(self, stage: "Stage", step: Step) -> Incoming: ...
    def drain(self, stage: "Stage") -> None: ...
    def run(self, stage: "Stage", steps: Sequence[Step]) -> None: ...
    def block(self, name: str, where: str) -> Sequence[Step]: ...


class Stage:
    """Where one block plays. A block is carried out by one thread; cancel comes from another."""

    def __init__(self, host: Host, session_id: str | None, request: Incoming | None) -> None:
        self.host = host
        self.session_id = session_id
        self.request = request
        self.values: dict[str, str] = {}
        self.linear = False
        self.remembering = True  # False while a step says memory=no
        self.silent = False  # NOANSWER: the request stays open at the end of the block
        self.running = True
        self.stop: str | None = None
        self.settled = False  # it has come to its end or to a wait: the next line may be read
        self.batch: bytearray | None = None

    # -- reading the script -----------------------------------------------------------------------

    def lookup(self, name: str) -> str:
        """The value of a variable; empty where nobody has set it."""
        builtin = _BUILTIN.get(name)
        if builtin is not None:
            return builtin(self)
        session = self.session
        for values in (self.values, session.values if session else {}, self.host.values):
            if name in values:
                return values[name]
        return "" if name in self.host.own_names else os.environ.get(name, "")

    @property
    def session(self) -> Session | None:
        return None if self.session_id is None else self.host.books.known(self.session_id)

    def text(self, step: Step, index: int, default: str = "") -> str:
        """An argument as text."""
        return step.args[index].text(self.lookup) if index < len(step.args) else default

    def option(self, step: Step, key: str, default: str = "") -> str:
        """An option as text."""
        return step.options[key].text(self.lookup) if key in step.options else default

    def number(self, step: Step, token: Token) -> int:
        """A count or a size: digits, with K, M for the powers of 1024."""
        text = token.text(self.lookup).upper()
        factor = {"K": 1024, "M": 1024 * 1024}.get(text[-1:], 1)
        digits = text[:-1] if factor > 1 else text
        if not digits.isdecimal():
            raise ScriptError(f"{step.where}: {text!r} is not a number")
        return int(digits) * factor

    def object_of(self, step: Step, token: Token) -> JsonObject:
        """An argument that must be a JSON object."""
        value = token.value(self.lookup)
        if not isinstance(value, dict):
            raise ScriptError(f"{step.where}: expected a JSON object, not {value!r}")
        return value

    # -- speaking ---------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Write to stdout, or to the batch that is being gathered."""
        if self.batch is None:
            self.host.outlet.write(data)
        else:
            self.batch += data

    def send(self, message: object) -> None:
        """Write one message as a line."""
        self.write(json_line(message, self.host.books.eol))

    def notify(self, method: str, params: object) -> None:
        """Send a notification."""
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def update(self, update: JsonObject, *, remember: bool = True) -> None:
        """Send one `session/update` of the session at hand."""
        session = self.session
        if session is not None and remember and self.remembering:
            session.conversation.say(update)
        self.notify("session/update", {"sessionId": self.session_id, "update": update})

    def answer(
        self, body: JsonObject, *, to: Incoming | None = None, under: object = NOTHING
    ) -> None:
        """Answer the request at hand, or another one, or under another id."""
        self.write(self.host.books.answer(to or self.target(), body, once=False, under=under))

    def target(self) -> Incoming:
        """The request an answer belongs to; in a rule for cancel that is the session's prompt."""
        if self.request is not None and self.request.is_request:
            return self.request
        session = self.session
        if session is not None and session.open:
            return session.open[0]
        raise ScriptError("there is no request to answer")

    def ask(self, method: str, params: object, under: object = NOTHING) -> Asked:
        """Send a request to the host; its answer comes to the returned object."""
        asked = self.host.books.ask(under)
        self.send({"jsonrpc": "2.0", "id": asked.id, "method": method, "params": params})
        return asked

    # -- waiting ----------------------------------------------------------------------------------

    def check(self) -> None:
        """Raise where the block has been told to stop."""
        if self.stop in ("cancel", "drop"):
            raise InterruptedBlock(self.stop)

    def wait(
        self, done: Callable[[], bool], poll: float | None = None, seconds: float | None = None
    ) -> bool:
        """Wait until `done`, or for so many seconds; says whether it is.

        Raises InterruptedBlock when the block has to stop first.
        """
        until = None if seconds is None else time.monotonic() + seconds
        with self.host.changed:
            while not done():
                if self.stop is not None:
                    raise InterruptedBlock(self.stop)
                self.settle()
                left = poll if until is None else until - time.monotonic()
                if until is not None and left is not None and left <= 0:
                    return False
                self.host.changed.wait(left)
        return True

    def pause(self, milliseconds: float) -> None:
        """Let time pass, but not beyond a cancel."""
        self.settle()
        until = time.monotonic() + milliseconds / 1000
        with self.host.changed:
            while self.stop is None and (left := until - time.monotonic()) > 0:
                self.host.changed.wait(left)
        if self.stop is not None:
            raise InterruptedBlock(self.stop)

    def settle(self) -> None:
        """Let the reader go on with the next line."""
        with self.host.changed:
            if not self.settled:
                self.settled = True
                self.host.changed.notify_all()

    def interrupt(self, reason: str) -> bool:
        """Tell the block to stop; False if it is not running any more."""
        with self.host.changed:
            if self.running:
                self.stop = self.stop or reason
                self.host.changed.notify_all()
            return self.running


def _prompt_of(stage: Stage) -> str:
    return prompt_text(stage.request.params) if stage.request is not None else ""


def _json_of(value: object) -> str:
    return plain_json.encode(value).decode()


def _is_busy(stage: Stage) -> str:
    session = stage.session
    others = [p for p in session.open if p is not stage.request] if session is not None else []
    return "yes" if others else "no"


def _is_live(stage: Stage) -> str:
    return "yes" if stage.session is not None and stage.session.live else "no"


def _is_known(stage: Stage) -> str:
    return "yes" if stage.session is not None and stage.session.exists else "no"


def _uuid(_: Stage) -> str:
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def _request_id(stage: Stage) -> str:
    request = stage.request
    return _json_of(request.id) if request is not None and request.is_request else ""


#: Variables that are computed; all others are set by steps, `--set` or the environment.
_BUILTIN: dict[str, Callable[[Stage], str]] = {
    "SESSION": lambda stage: stage.session_id or "",
    "PROMPT": _prompt_of,
    "ID": _request_id,
    "METHOD": lambda stage: stage.request.method if stage.request is not None else "",
    "PARAMS": lambda stage: _json_of(stage.request.params) if stage.request is not None else "",
    "LINE": lambda stage: stage.request.line if stage.request is not None else "",
    "CWD": lambda stage: stage.session.conversation.cwd if stage.session is not None else "",
    "N": lambda stage: str(stage.session.count if stage.session is not None else 0),
    "BUSY": _is_busy,
    "KNOWN": _is_known,
    "HEX": lambda _: os.urandom(6).hex(),
    "LIVE": _is_live,
    "UUID": _uuid,
    "PID": lambda _: str(os.getpid()),
    "NS": lambda _: str(time.monotonic_ns()),
}
BUILTIN_VARIABLES = frozenset(_BUILTIN)


class Verb(NamedTuple):
    """A step word and what it does."""

    word: Word
    run: Callable[[Stage, Step], None]
