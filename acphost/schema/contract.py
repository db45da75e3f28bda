"""What the socket takes, returns and says, collected from the tables that the daemon runs by."""

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from acphost import errors
from acphost.errors import AcpHostError
from acphost.server.access import Access
from acphost.server.host import Host
from acphost.server.method import Method
from acphost.server.methods import Methods

#: Any request may be answered by one of these.
ALWAYS: tuple[type[AcpHostError], ...] = (
    errors.InvalidParamsError,
    errors.MethodNotFoundError,
    errors.NotInitializedError,
    errors.OverloadedError,
    errors.AcpHostError,
)

#: What a member of the params may bring with it, wherever it stands.
BY_MEMBER: dict[str, tuple[type[AcpHostError], ...]] = {
    "session_id": (errors.SessionNotFoundError,),
    "host_run_id": (errors.RunNotFoundError,),
    "agent_id": (errors.AgentNotFoundError,),
    "permission_id": (errors.PermissionNotFoundError,),
    "elicitation_id": (errors.PermissionNotFoundError,),
    "store_id": (errors.CursorForeignError,),
    "after_seq": (errors.CursorMalformedError, errors.CursorFutureError),
    "after_offset": (errors.CursorMalformedError, errors.CursorFutureError),
}

#: Where something new is written, the store must have room and the daemon must not be leaving.
WRITES: tuple[type[AcpHostError], ...] = (
    errors.StorageFullError,
    errors.StorageError,
    errors.ShuttingDownError,
)

#: What is a method's own, beside the above.
BY_METHOD: dict[str, tuple[type[AcpHostError], ...]] = {
    "initialize": (errors.UnsupportedVersionError,),
    "session/create": WRITES,
    "session/configure": (
        errors.AgentNotFoundError,
        errors.AgentRefusedError,
        errors.AgentUnavailableError,
        errors.ConflictError,
        *WRITES,
    ),
    "run/create": (
        errors.ConflictError,
        errors.QueueFullError,
        errors.TooLargeError,
        errors.UnsupportedContentError,
        *WRITES,
    ),
    "run/cancel": WRITES,
    "run/resume": (errors.ConflictError, errors.QueueFullError, *WRITES),
    "run/dismiss": (errors.ConflictError, *WRITES),
    "queue/hold": WRITES,
    "queue/release": WRITES,
    "permission/respond": (errors.AlreadyResolvedError, *WRITES),
    "runtime/start": (errors.AgentUnavailableError, errors.AuthRequiredError, *WRITES),
    "agent/authenticate": (
        errors.AgentUnavailableError,
        errors.AgentRefusedError,
        errors.ShuttingDownError,
    ),
    "agent/logout": (
        errors.AgentUnavailableError,
        errors.AgentRefusedError,
        errors.ShuttingDownError,
    ),
    "session/rename": WRITES,
    "session/pin": WRITES,
    "session/delete": (errors.ConfirmationRequiredError, *WRITES),
    "session/discover": (errors.AgentUnavailableError, errors.ShuttingDownError),
    "session/adopt": WRITES,
    "session/fork": WRITES,
    "elicitation/respond": (errors.AlreadyResolvedError, *WRITES),
    "runtime/reset": (errors.AgentUnavailableError, *WRITES),
    "events/subscribe": (errors.SessionNotFoundError, errors.RunNotFoundError),
    "host/backup": (errors.StorageError, errors.ConflictError),
}


@dataclass(frozen=True, slots=True)
class Taken:
    """A method as plugin authors need to know it."""

    name: str
    description: str
    access: Access
    params: type[msgspec.Struct]
    #: As the handler's signature says.
    result: Any
    errors: tuple[type[AcpHostError], ...]


@dataclass(frozen=True, slots=True)
class Word:
    """An error as clients match on it."""

    word: str
    code: int
    retryable: bool
    description: str


def methods() -> list[Taken]:
    """Every method, in the order of the daemon's table."""
    return [_taken(row) for row in table()]


def table() -> Sequence[Method]:
    """The daemon's own table; to read it no daemon is needed."""
    return Methods(cast("Host", _Nobody())).table()


class _Nobody:
    """Stands where the table would reach the daemon: nothing in a table of methods is called."""

    def __getattr__(self, _: str) -> "_Nobody":
        return self

    def __call__(self, *_: object, **__: object) -> "_Nobody":
        return self


def _taken(row: Method) -> Taken:
    return Taken(
        name=row.name,
        description=_description(row),
        access=row.access,
        params=row.params,
        result=inspect.get_annotations(row.handler)["return"],
        errors=tuple(dict.fromkeys(_errors(row))),
    )


def _description(row: Method) -> str:
    """The handler's first line, else what the params say of the method they are made for."""
    mention = f"`{row.name}`"
    for text in (inspect.getdoc(row.handler), inspect.getdoc(row.params)):
        line = (text or "").split("\n\n")[0].replace("\n", " ").strip()
        if line.startswith(mention):
            line = line.removeprefix(mention).lstrip(":,. ")
        elif text is not None and text == inspect.getdoc(row.params):
            continue
        if line:
            return line[0].upper() + line[1:]
    return ""


def _errors(row: Method) -> Iterator[type[AcpHostError]]:
    is_list = row.name.endswith("/list")
    for field in msgspec.structs.fields(row.params):
        if field.required or not is_list:  # a filter that fits nothing gives an empty list
            yield from BY_MEMBER.get(field.name, ())
    if row.access is Access.ADMIN:
        yield errors.PermissionDeniedError
    yield from BY_METHOD.get(row.name, ())


def words() -> list[Word]:
    """Every error that the socket can answer with, by code and word."""
    found = {
        (cls.word, cls.code): Word(cls.word, cls.code, cls.retryable, _first_line(cls))
        for cls in _descendants(AcpHostError)
        if _crosses_the_socket(cls)
    }
    found[AcpHostError.word, AcpHostError.code] = Word(
        AcpHostError.word, AcpHostError.code, AcpHostError.retryable,
        "A mistake of the daemon's own; `logId` finds it in its log.",
    )  # fmt: skip
    return sorted(found.values(), key=lambda each: (each.code != -32050, -each.code, each.word))


def _descendants(cls: type[AcpHostError]) -> Iterator[type[AcpHostError]]:
    for child in cls.__subclasses__():
        yield child
        yield from _descendants(child)


def _crosses_the_socket(cls: type[AcpHostError]) -> bool:
    ours = cls.__module__ == errors.__name__ and "word" in vars(cls)
    of_the_socket = issubclass(cls, errors.HostError | errors.ProtocolError)
    return ours and of_the_socket


def _first_line(cls: type) -> str:
    return " ".join((inspect.getdoc(cls) or "").split("\n\n")[0].split())
