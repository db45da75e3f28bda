"""Questions of agents as dialogs of this editor: one of several clients that may answer.

The daemon takes the first valid answer. The dialog of everybody else is withdrawn; an editor that
does not know how to, answers later, and is not listened to.
"""

from collections.abc import Awaitable, Callable
from functools import partial

from msgspec import Raw

from acphost.errors import AcpHostError
from acphost.frontdoor.editor import Editor
from acphost.frontdoor.members import Members, is_given, members, raw, text
from acphost.frontdoor.updates import encoded
from acphost.rpc.pending import Answer
from acphost.wire.event import Event, Kind

#: Answers a question at the daemon; what it refuses is of no interest any more.
Respond = Callable[[str, Raw], Awaitable[None]]
#: Runs something beside everything else.
Soon = Callable[[Callable[[], Awaitable[None]]], None]

ASKED = frozenset({Kind.PERMISSION_REQUESTED, Kind.ELICITATION_REQUESTED})
SETTLED = frozenset(
    {
        Kind.PERMISSION_RESOLVED,
        Kind.PERMISSION_EXPIRED,
        Kind.ELICITATION_RESOLVED,
        Kind.ELICITATION_EXPIRED,
    }
)


class Dialogs:
    """The open questions of one session, shown once the editor is to see them."""

    def __init__(
        self,
        editor: Editor,
        session_id: str,
        modes: dict[str, bool],
        *,
        choose: Callable[[str, str], Awaitable[None]],
        fill: Callable[[str, Raw], Awaitable[None]],
        soon: Soon,
    ) -> None:
        self._editor = editor
        self._session_id = session_id
        self._modes = modes
        self._choose = choose
        self._fill = fill
        self._soon = soon
        #: Asked, and not settled; the request is what `Editor.withdraw` takes.
        self._open: dict[str, tuple[str, Members]] = {}
        self._shown: dict[str, int] = {}
        #: Asked a second time after an answer that was none.
        self._repeated: set[str] = set()
        #: The agent's ids of addresses that were put to people, by ours.
        self._visited: dict[str, Raw] = {}

    def take(self, event: Event, *, is_live: bool) -> None:
        """Follow an event about a question."""
        said = members(bytes(event.payload))
        question_id = text(said.get("permissionId", said.get("elicitationId")))
        if question_id is None:
            return
        if event.kind in ASKED:
            self._open[question_id] = event.kind, said
            if is_live:
                self._show(question_id)
        else:
            self._open.pop(question_id, None)
            request_id = self._shown.pop(question_id, None)
            if request_id is not None:
                self._editor.withdraw(request_id)
            self._complete(question_id, said)

    def _complete(self, question_id: str, said: Members) -> None:
        """All is done at an address that was accepted: the editor may close what it shows."""
        agents_id = self._visited.pop(question_id, None)
        if agents_id is None:
            return
        if is_given(said.get("completed")):
            self._editor.notify("elicitation/complete", {"elicitationId": agents_id})
        else:
            self._visited[question_id] = agents_id

    def show_all(self) -> None:
        """The past is told: what is still open in it is asked now."""
        for question_id in self._open.keys() - self._shown.keys():
            self._show(question_id)

    def show_again(self, question_id: str) -> None:
        """The editor chose what was not offered: nobody else may be there to ask. Once."""
        if question_id in self._open and question_id not in self._repeated:
            self._repeated.add(question_id)
            self._show(question_id)

    def close(self) -> None:
        """The editor has left the session: nobody is asked here any more."""
        for request_id in self._shown.values():
            self._editor.withdraw(request_id)
        self._shown.clear()

    def _show(self, question_id: str) -> None:
        kind, said = self._open[question_id]
        if kind == Kind.PERMISSION_REQUESTED:
            method, params = "session/request_permission", self._permission(question_id, said)
            take = partial(self._on_choice, question_id)
        else:
            method, params = "elicitation/create", self._elicitation(said)
            take = partial(self._on_form, question_id)
            asked = members(params)
            if (text(asked.get("mode")) or "form") not in self._modes:
                return
            if "elicitationId" in asked:
                self._visited[question_id] = asked["elicitationId"]
        self._shown[question_id] = self._editor.ask(method, params, take)

    def _permission(self, question_id: str, said: Members) -> Raw:
        """The agent's own request under our name of the session."""
        request = members(said["request"]) if is_given(said.get("request")) else {}
        call = request.get("toolCall", said.get("toolCall"))
        if call is None or text(members(call).get("toolCallId")) is None:
            words = {"toolCallId": question_id, "title": "The agent asks for permission"}
            call = encoded({**members(raw(words)), **members(call or Raw(b"{}"))})
        options = request.get("options", said.get("options", Raw(b"[]")))
        own = {"sessionId": raw(self._session_id), "toolCall": call, "options": options}
        return encoded({**request, **own})

    def _elicitation(self, said: Members) -> Raw:
        """Likewise; a request that it belongs to has a number of the agent's, unknown here."""
        request = members(said["request"]) if is_given(said.get("request")) else dict(said)
        request.pop("requestId", None)
        return encoded({**request, "sessionId": raw(self._session_id)})

    def _on_choice(self, question_id: str, answer: Answer) -> None:
        self._shown.pop(question_id, None)
        if isinstance(answer, AcpHostError):
            return  # an editor that cannot ask: the others still can
        outcome = members(members(answer).get("outcome", Raw(b"{}")))
        option_id = text(outcome.get("optionId"))
        if text(outcome.get("outcome")) == "selected" and option_id is not None:
            self._soon(partial(self._choose, question_id, option_id))
        # `cancelled` is not a no: it goes with `session/cancel`, which does what is to be done.

    def _on_form(self, question_id: str, answer: Answer) -> None:
        self._shown.pop(question_id, None)
        if not isinstance(answer, AcpHostError):
            self._soon(partial(self._fill, question_id, Raw(bytes(answer))))


def form_answer(answer: Raw) -> Members:
    """What the editor answered, as the socket takes it; what is no answer is none."""
    said = members(answer)
    if text(said.get("action")) not in {"accept", "decline", "cancel"}:
        return {"action": raw("cancel")}
    return {name: said[name] for name in ("action", "content") if is_given(said.get(name))}
