"""Editors among the clients: they know what is in a buffer before it is in the file."""

from collections.abc import Iterator

import anyio
import msgspec

from acphost.errors import AcpHostError
from acphost.log import get_logger
from acphost.server.connection import Attendance, ClientConnection
from acphost.wire.acp_files import ReadTextFileResult
from acphost.wire.spoken import READ_TEXT_FILE, WRITE_TEXT_FILE

log = get_logger()

#: How long an editor may take; then the file on disk has to do.
PATIENCE = 2.0


class ClientEditors:
    """The clients of a session that offered to read or write files for it.

    The one that did something with the session last is asked first. The requests are those of
    ACP's `fs` methods, with the session's id of the host.
    """

    def __init__(self, attendance: Attendance) -> None:
        self._attendance = attendance

    async def read(
        self, session_id: str, path: str, line: int | None, limit: int | None
    ) -> str | None:
        """A window of the text as an editor has it; None: the file on disk is all there is."""
        params: dict[str, object] = {"sessionId": session_id, "path": path}
        if line is not None:
            params["line"] = line
        if limit is not None:
            params["limit"] = limit
        with anyio.move_on_after(PATIENCE):
            for editor in self._of(session_id, "readTextFile"):
                result = await _ask(editor, READ_TEXT_FILE, params)
                if result is None:
                    continue
                try:
                    return msgspec.json.decode(result, type=ReadTextFileResult).content
                except msgspec.DecodeError as exc:
                    log.info("editor_answer_unusable", method=READ_TEXT_FILE, reason=str(exc))
        return None

    def can_write(self, session_id: str) -> bool:
        """Whether an editor has offered to write for that session."""
        return any(self._of(session_id, "writeTextFile"))

    async def write(self, session_id: str, path: str, content: str) -> bool:
        """Whether an editor has taken the text into its buffer and saved it."""
        params = {"sessionId": session_id, "path": path, "content": content}
        with anyio.move_on_after(PATIENCE):
            for editor in self._of(session_id, "writeTextFile"):
                if await _ask(editor, WRITE_TEXT_FILE, params) is not None:
                    return True
        return False

    def _of(self, session_id: str, offer: str) -> Iterator[ClientConnection]:
        found = [
            connection
            for connection in self._attendance.connections
            if connection.identity is not None
            and offer in connection.identity.files
            and session_id in connection.followed
        ]
        found.sort(key=lambda connection: connection.followed[session_id], reverse=True)
        yield from found


async def _ask(editor: ClientConnection, method: str, params: object) -> msgspec.Raw | None:
    """What the editor answers; None if it does not have the file, or is not to be had."""
    try:
        return await editor.reverse.ask(method, params, patience=PATIENCE)
    except (AcpHostError, TimeoutError) as exc:
        log.debug("editor_declined", method=method, reason=str(exc))
        return None
