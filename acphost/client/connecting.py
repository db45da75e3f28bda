"""The way in: a client of the daemon's socket, connected for the length of a block.

async with connect() as client:
    run = await client.create_run("hello", agent_id="demo", cwd="/tmp")
    async with client.subscribe(run_id=run.host_run_id) as events:
        async for event in events:
            ...
"""

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
from msgspec import UNSET, Raw

from acphost.client.client import Client, State
from acphost.client.questions import OnRequest, Questions
from acphost.transport.paths import default_socket_path
from acphost.wire.host import PROTOCOL_VERSION
from acphost.wire.params import ClientInfo, InitializeParams

#: How many seconds a client looks for a daemon that went away.
PATIENCE = 30.0


def socket_path(path: Path | str | None = None) -> Path:
    """The socket to use: the one named, `ACPHOST_SOCKET`, else the platform's place."""
    named = path or os.environ.get("ACPHOST_SOCKET")
    return Path(named).expanduser() if named else default_socket_path(os.environ)


@asynccontextmanager
async def connect(
    path: Path | str | None = None,
    *,
    name: str = "acphost.client",
    version: str | None = None,
    client_id: str | None = None,
    actor_id: str | None = None,
    capabilities: Mapping[str, object] | None = None,
    patience: float | None = PATIENCE,
    on_request: OnRequest | None = None,
    on_state: Callable[[State], None] | None = None,
) -> AsyncGenerator[Client]:
    """A client, connected and introduced, for the length of the block.

    A daemon that goes away is looked for again during `patience` seconds, for ever with None, not
    at all with 0; subscriptions and requests wait meanwhile. `capabilities` say what this client
    can do for agents, such as `{"permissions": True}`; `on_request` answers what the daemon asks,
    `on_state` is told how the connection fares.
    Raises DaemonUnreachableError if no daemon listens.
    """
    hello = InitializeParams(
        protocol_version=PROTOCOL_VERSION,
        client_info=ClientInfo(name=name, version=version),
        client_id=client_id,
        actor_id=actor_id,
        capabilities=UNSET if capabilities is None else Raw(msgspec.json.encode(capabilities)),
    )
    failure: Exception | None = None
    async with anyio.create_task_group() as tasks:
        questions = Questions(on_request, tasks)
        client = Client(socket_path(path), hello, patience, questions, on_state)
        try:
            tasks.start_soon(client.keep_connected, await client.dial())
            yield client
        except Exception as exc:  # raised below: a task group would wrap it
            failure = exc
        client.close()
        tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure
