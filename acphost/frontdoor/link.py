"""The way to the daemon: found, started where it does not run, found again when it went away."""

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import anyio

from acphost.client.client import Client, State
from acphost.client.connecting import connect
from acphost.client.questions import OnRequest
from acphost.errors import AcpHostError, ConnectionLostError, DaemonUnreachableError

#: So long a daemon is waited for that went away in mid-session, and may be on its way back.
PATIENCE = 30.0
#: After so long without one a new one is started: it was not a restart.
START_AFTER = 3.0

#: Has the daemon started unless it runs; returns where it listens. Raises AcpHostError.
Starter = Callable[[], Awaitable[Path]]


class Link:
    """One client after the other; each lives until its daemon stays away for good."""

    def __init__(
        self,
        path: Path | None,
        starter: Starter | None,
        *,
        capabilities: Mapping[str, object],
        on_request: OnRequest,
        is_needed: Callable[[], bool],
        name: str,
        version: str,
    ) -> None:
        self._path = path
        self._starter = starter
        self._capabilities = capabilities
        self._on_request = on_request
        self._is_needed = is_needed
        self._name = name
        self._version = version
        self._client: Client | None = None
        self._client_id: str | None = None
        self._failure: AcpHostError | None = None
        self._is_trying = False
        self._wanted = anyio.Event()
        self._changed = anyio.Event()
        self._is_lost = anyio.Event()
        #: Somebody asked for the client since its connection was lost.
        self._is_asked = False

    async def client(self) -> Client:
        """A client of the daemon; makes a new attempt where the last one failed.

        Raises DaemonUnreachableError and what else keeps the daemon from being reached.
        """
        if self._client is None and not self._is_trying:
            self._is_trying, self._failure = True, None
            self._wanted.set()
        while self._client is None:
            if self._failure is not None:
                raise self._failure
            await self._changed.wait()
        self._is_asked |= not self._client.is_connected
        return self._client

    async def next_client(self) -> Client:
        """A client as soon as there is one, however long that takes; asks for nothing itself."""
        while self._client is None:
            await self._changed.wait()
        return self._client

    # -- the work ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """Connect whenever somebody wants it, until cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted = anyio.Event()
            try:
                await self._serve()
            except AcpHostError as exc:
                self._failure = exc
            self._client, self._is_trying = None, False
            self._tell()

    async def _serve(self) -> None:
        """One client, from its first connection to its last."""
        try:
            await self._connected()
        except DaemonUnreachableError:
            if self._starter is None:
                raise
            self._path = await self._starter()
            await self._connected()

    async def _connected(self) -> None:
        gave_up = anyio.Event()

        def on_state(state: State) -> None:
            if state is State.GAVE_UP:
                gave_up.set()
            elif state is State.LOST:
                self._is_lost.set()

        async with (
            connect(
                self._path,
                name=self._name,
                version=self._version,
                client_id=self._client_id,
                capabilities=self._capabilities,
                patience=PATIENCE,
                on_request=self._on_request,
                on_state=on_state,
            ) as client,
            anyio.create_task_group() as tasks,
        ):
            self._client_id = client.info.client_id
            self._client, self._is_trying = client, False
            self._tell()
            tasks.start_soon(self._revive, client)
            await gave_up.wait()
            self._client = None
            tasks.cancel_scope.cancel()
        raise ConnectionLostError("the daemon went away and did not come back")

    async def _revive(self, client: Client) -> None:
        """A daemon that does not come back by itself is started, like one that never ran.

        Only where somebody waits for it: one that a person has stopped stays so until then.
        """
        while self._starter is not None:
            self._is_lost, self._is_asked = anyio.Event(), False
            await self._is_lost.wait()
            await anyio.sleep(START_AFTER)
            while not (  # noqa: ASYNC110 - looked at so rarely that it needs no event of its own
                client.is_connected or self._is_asked or self._is_needed()
            ):
                await anyio.sleep(START_AFTER)
            if not client.is_connected:
                try:
                    await self._starter()
                except AcpHostError:
                    continue  # the client tells when its own patience ends

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()
