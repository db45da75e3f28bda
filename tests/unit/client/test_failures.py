"""Error objects become the exceptions a program can catch."""

import msgspec
import pytest

from acphost import errors
from acphost.client.failures import HostRemoteError, error_object, host_error
from acphost.errors import AcpHostError, ConnectionLostError, RemoteError


@pytest.mark.parametrize(
    "kind",
    [
        errors.NotInitializedError,
        errors.UnsupportedVersionError,
        errors.AuthRequiredError,
        errors.SessionNotFoundError,
        errors.RunNotFoundError,
        errors.AgentNotFoundError,
        errors.PermissionNotFoundError,
        errors.AgentUnavailableError,
        errors.ConflictError,
        errors.QueueFullError,
        errors.PermissionDeniedError,
        errors.TooLargeError,
        errors.UnsupportedContentError,
        errors.StorageFullError,
        errors.StorageError,
        errors.ShuttingDownError,
        errors.OverloadedError,
        errors.AlreadyResolvedError,
        errors.CursorMalformedError,
        errors.CursorForeignError,
        errors.CursorFutureError,
        errors.InvalidParamsError,
        errors.MethodNotFoundError,
    ],
)
def test_an_error_of_the_host_is_raised_as_its_own_class_again(kind: type[AcpHostError]) -> None:
    told = error_object(kind("cannot do that", optionId="a"))
    assert isinstance(told.data, msgspec.Raw)
    raised = host_error(RemoteError(told.code, told.message, bytes(told.data)))
    assert type(raised) is kind
    assert str(raised) == "cannot do that"
    assert raised.details == {"optionId": "a"}


def test_a_word_nobody_knows_is_kept_whole() -> None:
    data = b'{"code":"cursor_expired","retryable":true,"earliest":"7"}'
    raised = host_error(RemoteError(-32050, "gone", data))
    assert isinstance(raised, HostRemoteError)
    assert (raised.remote_code, raised.remote_word, raised.remote_retryable, raised.data) == (
        -32050,
        "cursor_expired",
        True,
        data,
    )


def test_an_error_without_a_word_is_known_by_its_number() -> None:
    assert type(host_error(RemoteError(-32601, "no such method"))) is errors.MethodNotFoundError


@pytest.mark.parametrize("data", [None, b"[1]", b'"text"', b"{"])
def test_data_that_is_no_object_does_no_harm(data: bytes | None) -> None:
    raised = host_error(RemoteError(-1, "odd", data))
    assert isinstance(raised, HostRemoteError)
    assert raised.remote_word is None


def test_our_own_errors_pass_as_they_are() -> None:
    lost = ConnectionLostError("gone")
    assert host_error(lost) is lost
