"""Error objects of the daemon as the exceptions that a program can catch by their word."""

from collections.abc import Iterator

import msgspec

from acphost import errors
from acphost.errors import AcpHostError, HostError, RemoteError
from acphost.wire.jsonrpc import ErrorObject


class HostRemoteError(RemoteError):
    """The daemon answered with an error that this client has no class for; it is kept whole."""

    def __init__(self, remote_code: int, message: str, data: bytes | None = None) -> None:
        super().__init__(remote_code, message, data)
        described = _members(data)
        word = described.get("code")
        self.remote_word: str | None = word if isinstance(word, str) else None
        self.remote_retryable = described.get("retryable") is True


def host_error(answer: AcpHostError) -> AcpHostError:
    """The exception to raise for an answer: by word, else by number, else a HostRemoteError."""
    if not isinstance(answer, RemoteError):
        return answer
    details = _members(answer.data)
    word = details.pop("code", None)
    kind = _BY_WORD.get(word) if isinstance(word, str) else _BY_NUMBER.get(answer.remote_code)
    if kind is None:
        return HostRemoteError(answer.remote_code, str(answer), answer.data)
    details.pop("retryable", None)
    return kind(str(answer), **details)


def error_object(exc: AcpHostError) -> ErrorObject:
    """What the daemon is told when its question cannot be answered.

    `rpc.failures` does this for servers; it logs, and a client stays free of the log.
    """
    data = {"code": exc.word, "retryable": exc.retryable, **exc.details}
    return ErrorObject(exc.code, str(exc), msgspec.Raw(msgspec.json.encode(data, enc_hook=str)))


def _members(data: bytes | None) -> dict[str, object]:
    """`error.data` as a dict; empty where the peer sent something else."""
    if data is None:
        return {}
    try:
        return msgspec.json.decode(data, type=dict[str, object])
    except msgspec.DecodeError:
        return {}


def _named(parent: type[AcpHostError]) -> Iterator[type[AcpHostError]]:
    """Every class that says one thing: leaves, and parents with a word of their own."""
    for kind in parent.__subclasses__():
        if kind.__module__ == errors.__name__ and not issubclass(kind, RemoteError):
            yield from _named(kind)
            yield kind


#: Those of the contract win where a class for the machine shares their word.
_BY_WORD: dict[str, type[AcpHostError]] = {
    kind.word: kind
    for kind in (*_named(AcpHostError), *_named(HostError))
    if kind.word != AcpHostError.word
}
_BY_NUMBER: dict[int, type[AcpHostError]] = {
    kind.code: kind
    for kind in (
        errors.ParseError,
        errors.InvalidRequestError,
        errors.MethodNotFoundError,
        errors.InvalidParamsError,
    )
}
