"""The calls that are about sessions as things: named, kept, copied, found, deleted."""

from msgspec import UNSET, UnsetType

from acphost.client.asking import Asking
from acphost.wire import host, library


class LibraryCalls(Asking):
    """One method here is one method there."""

    async def rename(self, session_id: str, title: str | None) -> host.Session:
        """Give a session a title; None leaves it to the agent."""
        given = {"sessionId": session_id, "title": title}
        return await self.request("session/rename", given, host.Session, repeat=True)

    async def pin(self, session_id: str, *, pinned: bool = True) -> host.Session:
        """Keep a session whatever the rules of retention say."""
        given = {"sessionId": session_id, "pinned": pinned}
        return await self.request("session/pin", given, host.Session, repeat=True)

    async def delete_session(
        self, session_id: str, *, external: bool = False
    ) -> library.SessionDeleted:
        """Delete a session here; `external`: also where the agent keeps it."""
        given = library.SessionDeleteParams(
            session_id=session_id,
            delete_external_provider_session=external,
            confirm=session_id if external else None,
        )
        return await self.request("session/delete", given, library.SessionDeleted)

    async def discover(self, agent_id: str, cwd: str | None = None) -> library.Discovered:
        """The sessions that an agent keeps itself."""
        given = library.SessionDiscoverParams(agent_id=agent_id, cwd=cwd)
        return await self.request("session/discover", given, library.Discovered, repeat=True)

    async def adopt(
        self, agent_id: str, acp_session_id: str, cwd: str, *, start: bool = False
    ) -> host.Session:
        """A session that goes on with one the agent keeps."""
        given = library.SessionAdoptParams(
            agent_id=agent_id, acp_session_id=acp_session_id, cwd=cwd, start=start
        )
        return await self.request("session/adopt", given, host.Session, repeat=True)

    async def fork(self, session_id: str, *, title: str | UnsetType | None = UNSET) -> host.Session:
        """A session that begins with what this one has said."""
        given = library.SessionForkParams(session_id=session_id, title=title)
        return await self.request("session/fork", given, host.Session)
