"""Text files for a session's agent: an editor's buffer first, else the file on disk.

Only below the session's folders, unless a person has said otherwise; each read and write is an
event, without the content.
"""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import anyio
import anyio.to_thread
import msgspec

from acphost.errors import (
    AcpHostError,
    InvalidParamsError,
    PathNotGrantedError,
    PermissionDeniedError,
)
from acphost.provider.switchboard import AgentRequest
from acphost.session.deeds import Deeds
from acphost.session.gate import Answer, Deed, Gate
from acphost.settings.model import FileSettings
from acphost.wire.acp_files import (
    ReadTextFile,
    ReadTextFileResult,
    WriteTextFile,
    WriteTextFileResult,
)
from acphost.wire.event import Kind
from acphost.workspace.reading import Signature, digest_of, read_window, too_much
from acphost.workspace.roots import Place, Roots, place_of, real_path
from acphost.workspace.writing import Written, write_text

S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T")

#: Files of all sessions that are read or written at the same time.
THREADS = 4
#: Files of one session whose state at the last read is remembered.
MAX_SEEN = 1000


class Editors(Protocol):
    """Clients that know what is in a buffer before it is in the file."""

    async def read(
        self, session_id: str, path: str, line: int | None, limit: int | None
    ) -> str | None:
        """A window of the text; None: no client has the file."""

    def can_write(self, session_id: str) -> bool:
        """Whether a client has offered to write for that session."""

    async def write(self, session_id: str, path: str, content: str) -> bool:
        """Whether a client has taken and saved the text."""


class RootsOf(Protocol):
    """Which folders the session may use."""

    async def __call__(self, *, reading: bool = False) -> Roots:
        """All that may be written to, or also what may only be read."""


class FileDesk:
    """Answers `fs/read_text_file` and `fs/write_text_file`."""

    def __init__(
        self,
        session_id: str,
        editors: Editors,
        gate: Gate,
        deeds: Deeds,
        *,
        settings: Callable[[], FileSettings],
        roots: RootsOf,
        on_written: Callable[[Written], None],
        keep_out: Path,
    ) -> None:
        self._keep_out = keep_out
        self._session_id = session_id
        self._editors = editors
        self._gate = gate
        self._deeds = deeds
        self._settings = settings
        self._roots = roots
        self._on_written = on_written
        self._threads = anyio.CapacityLimiter(THREADS)
        self._writing = anyio.Lock()
        self._seen: dict[str, Signature] = {}

    # -- reading ----------------------------------------------------------------------------------

    async def read(self, asked: AgentRequest) -> ReadTextFileResult:
        """A window of a text file. Raises AcpHostError, as it is to be answered."""
        params = params_of(ReadTextFile, asked)
        told: dict[str, object] = {
            "method": asked.method, "path": params.path, "line": params.line,
            "limit": params.limit,
        }  # fmt: skip
        try:
            text, source = await self._read(params, asked)
        except AcpHostError as exc:
            self._deeds.note(Kind.EVIDENCE, {**told, "error": str(exc)}, evidence="file_read")
            raise
        told |= {"from": source, "bytes": len(text.encode("utf-8", "surrogatepass"))}
        self._deeds.note(Kind.EVIDENCE, told, evidence="file_read")
        return ReadTextFileResult(content=text)

    async def _read(self, params: ReadTextFile, asked: AgentRequest) -> tuple[str, str]:
        settings = self._settings()
        place = await self._admit("read", params.path, settings.read, asked)
        named = _named(params.path)
        text = await self._editors.read(self._session_id, named, params.line, params.limit)
        if text is not None:
            if len(text.encode()) > settings.max_read_bytes:
                raise too_much(params.path, settings.max_read_bytes)
            return text, "editor"
        window = await self._in_thread(
            lambda: read_window(
                place, line=params.line, limit=params.limit, max_bytes=settings.max_read_bytes
            )
        )
        self._note_seen(place.path, window.signature)
        return window.text, "disk"

    # -- writing ----------------------------------------------------------------------------------

    async def write(self, asked: AgentRequest) -> WriteTextFileResult:
        """Put a text into a file, whole. Raises AcpHostError, as it is to be answered."""
        params = params_of(WriteTextFile, asked)
        try:
            await self._write(params, asked)
        except AcpHostError as exc:
            self._deeds.note(
                Kind.EVIDENCE,
                {"method": asked.method, "path": params.path, "error": str(exc)},
                evidence="file_write",
            )
            raise
        return WriteTextFileResult()

    async def _write(self, params: WriteTextFile, asked: AgentRequest) -> None:
        place = await self._admit("edit", params.path, self._settings().write, asked)
        async with self._writing:
            # Half done is worse than done: from here on nobody takes it back.
            with anyio.CancelScope(shield=True):
                written, by_editor = await self._put(place, params)
        self._on_written(written)
        self._deeds.note(
            Kind.DOCUMENT_CHANGED,
            {
                "documentId": None,
                "relativePath": place.relative,
                "revision": None,
                "fileVersion": f"sha256:{written.after}",
                "changedBlocks": None,
                "by": "fs",
                "path": written.path,
                "change": "created" if written.before is None else "modified",
                "bytes": written.size,
                "through": "editor" if by_editor else "disk",
            },
            **({"conflict": "external-change-conflict"} if written.was_stale else {}),
        )

    async def _put(self, place: Place, params: WriteTextFile) -> tuple[Written, bool]:
        if self._editors.can_write(self._session_id):
            before = await self._in_thread(lambda: digest_of(place))
            named = _named(params.path)
            if await self._editors.write(self._session_id, named, params.content):
                self._seen.pop(place.path, None)
                data = params.content.encode("utf-8", "surrogatepass")
                after = hashlib.sha256(data).hexdigest()
                return Written(place.path, before, after, len(data), None), True
        seen = self._seen.get(place.path)
        written = await self._in_thread(lambda: write_text(place, params.content, seen=seen))
        if written.signature is not None:
            self._note_seen(place.path, written.signature)
        return written, False

    # -- where ------------------------------------------------------------------------------------

    async def _admit(
        self, kind: Literal["read", "edit"], path: str, configured: Answer, asked: AgentRequest
    ) -> Place:
        """The place of a path, if that may be done there.

        Raises InvalidParamsError, PathNotGrantedError, PermissionDeniedError.
        """
        word = "Read" if kind == "read" else "Write"
        await self._in_thread(lambda: self._refuse_our_own(path))
        roots = await self._roots(reading=kind == "read")
        try:
            place = await self._in_thread(lambda: roots.locate(path))
        except PathNotGrantedError:
            real = await self._in_thread(lambda: real_path(path))
            if self._gate.has_consent(kind, path, real):
                # Somebody was shown this very file, and has said yes.
                return place_of(real)
            if self._settings().outside == "refuse":
                raise
        else:
            deed = Deed(
                kind=kind, title=f"{word} {place.relative or place.path}",
                names=(place.path, place.relative), raw_input={"path": place.path},
                path=place.path, scope=place.root,
            )  # fmt: skip
            await self._gate.pass_(deed, configured, asked)
            return place
        place = place_of(real)
        deed = Deed(
            kind=kind, title=f"{word} {place.path}, outside of the session's folders",
            names=(place.path,), raw_input={"path": place.path},
            path=place.path, scope=place.root, question="path_access",
        )  # fmt: skip
        await self._gate.pass_(deed, "ask", asked)
        return place

    def _refuse_our_own(self, path: str) -> None:
        """The daemon's store and secrets are no agent's business, wherever its folders are.

        To open and close the store in here would end the locks that protect it.
        """
        if Path(real_path(path)).is_relative_to(self._keep_out.resolve()):
            raise PermissionDeniedError(f"{path} belongs to the daemon; no agent may use it")

    def _note_seen(self, path: str, signature: Signature) -> None:
        self._seen.pop(path, None)
        self._seen[path] = signature
        if len(self._seen) > MAX_SEEN:
            del self._seen[next(iter(self._seen))]

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await anyio.to_thread.run_sync(work, limiter=self._threads)


def _named(path: str) -> str:
    """A path as the agent spells it, so as an editor is likely to."""
    return os.path.normpath(path)


def params_of(kind: type[S], asked: AgentRequest) -> S:
    """The params of a request. Raises InvalidParamsError, naming the path of what is wrong."""
    try:
        return msgspec.json.decode(asked.params, type=kind)
    except (msgspec.DecodeError, RecursionError) as exc:
        raise InvalidParamsError(f"{asked.method}: {exc}") from exc
