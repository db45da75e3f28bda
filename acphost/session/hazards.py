"""What lies in a folder and is obeyed by an agent unasked: people are asked first."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import msgspec
from msgspec import Raw

from acphost.errors import PermissionDeniedError
from acphost.ids import mint
from acphost.journal.rows import RunRow
from acphost.provider.traits import Hazard, Traits
from acphost.session.gate import HostQuestion, Opener, chosen_option
from acphost.session.keepsakes import TRUSTED, keep, kept
from acphost.session.scribe import Scribe
from acphost.session.state import SessionState

_OPTIONS = [
    {"optionId": "trust", "name": "Work there all the same", "kind": "allow_always"},
    {"optionId": "reject", "name": "Do not start the agent", "kind": "reject_once"},
]


class Hazards:
    """Asks once in a session, and again when what was looked at has changed."""

    def __init__(
        self,
        state: SessionState,
        scribe: Scribe,
        traits: Traits,
        open_question: Opener,
        withdraw: Callable[[str], None],
    ) -> None:
        self._state = state
        self._row = state.row
        self._scribe = scribe
        self._traits = traits
        self._open = open_question
        self._withdraw = withdraw

    async def pass_(self, run: RunRow | None) -> bool:
        """Whether to start the agent in the session's folder; False: the run is over meanwhile.

        Raises PermissionDeniedError.
        """
        hazard = await anyio.to_thread.run_sync(self._traits.hazard_of, self._row.cwd)
        if hazard is None:
            return True
        digest = await anyio.to_thread.run_sync(_digest, hazard.path)
        if kept(self._row.settings, TRUSTED, str) == digest:
            return True
        answer = await self._ask(hazard, run)
        if answer is None:
            return False
        if chosen_option(answer) != "trust":
            raise PermissionDeniedError(f"the agent was not started: {hazard.message}")
        self._row.settings = keep(self._row.settings, TRUSTED, digest)
        self._scribe.write([])
        return True

    async def _ask(self, hazard: Hazard, run: RunRow | None) -> object:
        """The answer; None if nobody needs it any more."""
        question = HostQuestion(mint("ask"), "session/request_permission", _request(hazard))
        permission_id = self._open(question, host_kind="confirm")
        try:
            async with anyio.create_task_group() as tasks:
                if run is not None:
                    tasks.start_soon(self._until_over, run, tasks.cancel_scope)
                await question.answered.wait()
                tasks.cancel_scope.cancel()
        finally:
            if permission_id is not None and not question.box:
                self._withdraw(permission_id)
        return question.box[0] if question.box else None

    async def _until_over(self, run: RunRow, scope: anyio.CancelScope) -> None:
        await self._state.until_over(run.run_id)
        scope.cancel()


def _request(hazard: Hazard) -> Raw:
    call = {
        "toolCallId": mint("call"),
        "title": hazard.message,
        "kind": "other",
        "status": "pending",
        "locations": [{"path": hazard.path}],
    }
    return Raw(msgspec.json.encode({"toolCall": call, "options": _OPTIONS}))


def _digest(path: str) -> str:
    """Of what was looked at; one that cannot be read is another one each time."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""
