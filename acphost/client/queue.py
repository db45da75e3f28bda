"""The calls about what waits in a session."""

from collections.abc import Sequence

from acphost.client.asking import Asking, Listing, raws
from acphost.wire import host, queue
from acphost.wire.params import SessionParams


class QueueCalls(Asking):
    """One method here is one method there."""

    async def queue_list(self, session_id: str) -> Listing[host.QueuedRun]:
        """What waits in a session."""
        given = queue.QueueListParams(session_id=session_id)
        return await self.page("queue/list", given, host.QueuedRun)

    async def queue_hold(self, session_id: str, reason: str | None = None) -> host.Session:
        """Let nothing start until released."""
        given = queue.QueueHoldParams(session_id=session_id, reason=reason)
        return await self.request("queue/hold", given, host.Session, repeat=True)

    async def queue_edit(
        self, run_id: str, prompt: str | Sequence[object], *, expected_rev: int
    ) -> host.QueuedRun:
        """Give a run that waits another prompt; `expected_rev` is its `rev` as it was seen."""
        given = queue.QueueEditParams(
            host_run_id=run_id,
            expected_rev=expected_rev,
            text=prompt if isinstance(prompt, str) else None,
            prompt=None if isinstance(prompt, str) else raws(prompt),
        )
        return await self.request("queue/edit", given, host.QueuedRun, repeat=True)

    async def queue_move(self, run_id: str, position: int, *, expected_rev: int) -> host.QueuedRun:
        """Give a run that waits another place; `expected_rev` is its `rev` as it was seen."""
        given = queue.QueueMoveParams(
            host_run_id=run_id, expected_rev=expected_rev, position=position
        )
        return await self.request("queue/move", given, host.QueuedRun, repeat=True)

    async def queue_release(self, session_id: str) -> host.Session:
        """Let the queue go on."""
        given = SessionParams(session_id=session_id)
        return await self.request("queue/release", given, host.Session, repeat=True)
