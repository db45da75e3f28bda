"""The prompts of this editor in one session: each request stays open until its run is over."""

from dataclasses import dataclass, field

import anyio

from acphost.errors import AcpHostError
from acphost.frontdoor.editor import Reply
from acphost.frontdoor.members import members, text
from acphost.frontdoor.outcomes import Outcome
from acphost.wire.event import Event


@dataclass(slots=True)
class Prompt:
    """One `session/prompt`, from the request to its answer."""

    request_id: str
    reply: Reply
    run_id: str | None = None
    #: Set when the daemon has accepted it, or refused.
    known: anyio.Event = field(default_factory=anyio.Event)


class Prompts:
    """Knows which runs are ours: by the request ids that were minted here."""

    def __init__(self) -> None:
        self._open: dict[str, Prompt] = {}
        #: Also those that are over: what was said in them is not told to this editor twice.
        self._own_runs: set[str] = set()

    def add(self, prompt: Prompt) -> None:
        """A prompt is on its way to the daemon."""
        self._open[prompt.request_id] = prompt

    def drop(self, prompt: Prompt) -> None:
        """It was not accepted."""
        self._open.pop(prompt.request_id, None)
        prompt.known.set()

    def created(self, event: Event) -> None:
        """A run was made: perhaps of a prompt of ours."""
        request_id = text(members(event.payload).get("requestId"))
        prompt = self._open.get(request_id or "")
        if prompt is not None and event.host_run_id is not None:
            self.accepted(prompt, event.host_run_id)

    def accepted(self, prompt: Prompt, run_id: str) -> None:
        """The daemon answered: this is its run."""
        prompt.run_id = run_id
        prompt.known.set()
        self._own_runs.add(run_id)

    def is_own(self, run_id: str | None) -> bool:
        """Whether the editor has shown that prompt itself."""
        return run_id in self._own_runs

    def ended(self, run_id: str | None, outcome: Outcome) -> bool:
        """Answer the prompt of a run that is over; False if it is none of ours."""
        for prompt in self._open.values():
            if prompt.run_id == run_id and run_id is not None:
                del self._open[prompt.request_id]
                if outcome.error is not None:
                    prompt.reply.refuse(outcome.error)
                else:
                    prompt.reply.give(outcome.result)
                return True
        return False

    def fail_all(self, reason: AcpHostError) -> None:
        """Nobody will say how they end."""
        for prompt in self._open.values():
            prompt.reply.fail(reason)
        self._open.clear()

    @property
    def open(self) -> list[Prompt]:
        """Those that are not answered, oldest first."""
        return list(self._open.values())
