"""Between an agent and what it wants done through the host: allowed, refused, or asked about.

A question of the host goes the way of the agent's own: rules may answer it, people do, silence
does, and a cancel of the turn withdraws it.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, Protocol

import anyio
import msgspec
from msgspec import Raw

from acphost.errors import PermissionDeniedError
from acphost.ids import mint
from acphost.provider.switchboard import Asked
from acphost.session.consents import Consents
from acphost.wire.base import AcpStruct

Answer = Literal["allow", "ask"]

_OPTIONS = [
    {"optionId": "allow_once", "name": "Allow", "kind": "allow_once"},
    {"optionId": "allow_session", "name": "Allow for this session", "kind": "allow_always"},
    {"optionId": "reject_once", "name": "Do not allow", "kind": "reject_once"},
]


@dataclass(frozen=True, slots=True)
class Deed:
    """Something an agent wants done."""

    #: As tool calls are of a kind: read, edit, execute.
    kind: Literal["read", "edit", "execute"]
    title: str
    #: What consent to the very same would be called: a path, a command line.
    names: tuple[str, ...]
    raw_input: dict[str, object]
    path: str | None = None
    #: What a consent for the session is remembered by.
    scope: str = ""
    #: Of the question, where it is not a plain permission.
    question: Literal["path_access"] | None = None


@dataclass(frozen=True, slots=True)
class HostQuestion(Asked):
    """A question that the host puts to people on account of an agent; no connection waits."""

    box: list[object] = field(default_factory=list)
    answered: anyio.Event = field(default_factory=anyio.Event)

    def answer(self, result: object) -> None:
        """Somebody has answered, or nobody will."""
        self.box.append(result)
        self.answered.set()

    def refuse(self, error: Exception) -> None:
        """It could not be asked."""
        self.answer(error)


class Opener(Protocol):
    """How a question comes before people."""

    def __call__(self, asked: Asked, *, host_kind: str | None) -> str | None:
        """Open it; returns its permission id, or None if it was answered at once."""


class _Outcome(AcpStruct, frozen=True):
    outcome: str = ""
    option_id: str | None = None


class _Answered(AcpStruct, frozen=True):
    outcome: _Outcome = _Outcome()


class Gate:
    """Lets deeds of one session's agent pass, or not."""

    def __init__(
        self, consents: Consents, open_question: Opener, withdraw: Callable[[str], None]
    ) -> None:
        self._consents = consents
        self._open = open_question
        self._withdraw = withdraw
        self._for_session: set[tuple[str | None, str, str]] = set()

    def forget(self) -> None:
        """What was allowed for as long as the agent lives is not for the next one."""
        self._for_session.clear()

    def has_consent(self, kind: str, *names: str) -> bool:
        """Whether the very same was allowed in this turn, as a tool call of the agent's own."""
        return self._consents.cover(kind, *names)

    async def pass_(self, deed: Deed, configured: Answer, asked: Asked) -> None:
        """Return if the deed may be done. Raises PermissionDeniedError."""
        # What leads out of the folders needs an answer to just that question.
        is_special = deed.question is not None
        key = (deed.question, deed.kind, deed.scope)
        if (configured == "allow" and not is_special) or key in self._for_session:
            return
        if not is_special and self.has_consent(deed.kind, *deed.names):
            return
        option = await self._ask(deed, asked.params)
        if option == "allow_session":
            self._for_session.add(key)
        elif option != "allow_once":
            raise PermissionDeniedError(f"not allowed: {deed.title}")

    async def _ask(self, deed: Deed, params: Raw) -> str | None:
        question = HostQuestion(mint("ask"), "session/request_permission", _request(deed, params))
        permission_id = self._open(question, host_kind=deed.question or "permission")
        try:
            await question.answered.wait()
        except BaseException:
            if permission_id is not None:
                self._withdraw(permission_id)
            raise
        return chosen_option(question.box[0])


def chosen_option(answer: object) -> str | None:
    """What a question of the host was answered with. Raises what kept it from being asked."""
    if isinstance(answer, Exception):
        raise answer
    outcome = msgspec.convert(answer, _Answered).outcome
    return outcome.option_id if outcome.outcome == "selected" else None


class _Scoped(AcpStruct, frozen=True):
    session_id: str = ""


def _request(deed: Deed, params: Raw) -> Raw:
    """The question as an agent would have put it."""
    call: dict[str, object] = {
        "toolCallId": mint("call"),
        "title": deed.title,
        "kind": deed.kind,
        "status": "pending",
        "rawInput": deed.raw_input,
    }
    if deed.path is not None:
        call["locations"] = [{"path": deed.path}]
    session_id = msgspec.json.decode(params, type=_Scoped).session_id
    asked = {"sessionId": session_id, "toolCall": call, "options": _OPTIONS}
    return Raw(msgspec.json.encode(asked))
