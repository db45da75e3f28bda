"""The socket's methods in one table, area by area, and the way a request takes to its handler.

Handlers translate and delegate; what they return is committed truth (the session layer awaits it).
"""

import msgspec
from msgspec import Raw, UnsetType

from acphost.errors import (
    InvalidRequestError,
    NotInitializedError,
    UnsupportedVersionError,
)
from acphost.ids import mint
from acphost.rpc.registry import MethodRegistry
from acphost.server.access import Access, authorise, role_of
from acphost.server.areas.agents import AgentMethods
from acphost.server.areas.decisions import DecisionMethods
from acphost.server.areas.events import EventMethods
from acphost.server.areas.host import HostMethods
from acphost.server.areas.queue import QueueMethods
from acphost.server.areas.runs import RunMethods
from acphost.server.areas.runtime import RuntimeMethods
from acphost.server.areas.sessions import SessionMethods
from acphost.server.areas.workshop import WorkshopMethods
from acphost.server.connection import ClientConnection, Identity
from acphost.server.host import Host
from acphost.server.method import Method
from acphost.wire import params as p
from acphost.wire.daemon import InitializeResult
from acphost.wire.host import PROTOCOL_VERSION
from acphost.wire.revision import SCHEMA_REVISION

CAPABILITIES = {
    "subscriptions": True,
    "queue": True,
    "permissions": True,
    "elicitation": True,
    "fs": True,
}


class _Offers(msgspec.Struct):
    """Of a client's capabilities what concerns files."""

    fs: dict[str, object] = {}


class Methods:
    """Answers what clients ask."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._table = (
            Method("initialize", p.InitializeParams, Access.ANY, self._initialize),
            *HostMethods(host).rows(),
            *AgentMethods(host).rows(),
            *SessionMethods(host).rows(),
            *RunMethods(host).rows(),
            *QueueMethods(host).rows(),
            *EventMethods(host).rows(),
            *DecisionMethods(host).rows(),
            *RuntimeMethods(host).rows(),
            *WorkshopMethods(host).rows(),
        )
        self._registry: MethodRegistry[ClientConnection] = MethodRegistry()
        self._access: dict[str, Access] = {}
        for method in self._table:
            self._registry.add(method.name, method.params, method.handler)
            self._access[method.name] = method.access

    def table(self) -> tuple[Method, ...]:
        """Every method of the socket."""
        return self._table

    async def call(self, connection: ClientConnection, method: str, params: Raw) -> object:
        """Dispatch one request: handshake first, then access, then the handler."""
        if method != "initialize":
            if connection.identity is None:
                raise NotInitializedError(f"{method} came before `initialize`")
            self._host.check_ready(method)
            authorise(connection.identity.role, method, self._access.get(method, Access.ANY))
        return await self._registry.call(connection, method, params)

    async def _initialize(
        self, client: ClientConnection, params: p.InitializeParams
    ) -> InitializeResult:
        """Introduces a client: the first request of every connection."""
        if client.identity is not None:
            raise InvalidRequestError("this connection is introduced; `initialize` comes once")
        offered = params.protocol_versions or [params.protocol_version or 0]
        if PROTOCOL_VERSION not in offered:
            raise UnsupportedVersionError(
                f"this daemon speaks protocol version {PROTOCOL_VERSION}",
                supported=[PROTOCOL_VERSION],
            )
        actor_id = params.actor_id or f"uid:{client.peer_uid}"
        identity = Identity(
            client_id=params.client_id or mint("client"),
            actor_id=actor_id,
            client_name=params.client_info.name if params.client_info else "unknown",
            role=role_of(actor_id, self._host.admins),
            answers_permissions=_says_yes(params.capabilities, "permissions"),
            files=_file_offers(params.capabilities),
        )
        client.introduce(identity)
        return InitializeResult(
            protocol_version=PROTOCOL_VERSION,
            schema_revision=SCHEMA_REVISION,
            host_info=self._host.info,
            store_id=self._host.store_id,
            client_id=identity.client_id,
            actor_id=actor_id,
            role=identity.role,
            capabilities=CAPABILITIES,
            limits=self._host.limits,
        )


def _says_yes(capabilities: Raw | UnsetType, name: str) -> bool:
    """Whether a client offers something: `true`, or an object for it."""
    if not isinstance(capabilities, Raw):
        return False
    try:
        value = msgspec.json.decode(capabilities, type=dict[str, object]).get(name)
    except msgspec.DecodeError:
        return False
    return value is not None and value is not False


def _file_offers(capabilities: Raw | UnsetType) -> frozenset[str]:
    """What a client says it can do with files: `fs {readTextFile, writeTextFile}`."""
    if not isinstance(capabilities, Raw):
        return frozenset()
    try:
        offered = msgspec.json.decode(capabilities, type=_Offers).fs
    except msgspec.DecodeError:
        return frozenset()
    return frozenset(name for name, value in offered.items() if value is True)
