"""Exceptions to error objects."""

from pathlib import Path

import msgspec
import structlog

from acphost.errors import InvalidParamsError, OverloadedError, QueueFullError, RemoteError
from acphost.rpc.failures import error_object
from acphost.wire.jsonrpc import ErrorObject


def data_of(error: ErrorObject) -> object:
    assert isinstance(error.data, msgspec.Raw)
    return msgspec.json.decode(error.data)


def test_our_own_error_carries_word_retryable_and_details() -> None:
    error = error_object(OverloadedError("too many", retryAfterMs=250, where=Path("/x")))
    assert (error.code, error.message) == (-32050, "too many")
    assert data_of(error) == {
        "code": "overloaded",
        "retryable": True,
        "retryAfterMs": 250,
        "where": "/x",
    }


def test_the_number_is_that_of_the_class() -> None:
    assert error_object(InvalidParamsError("m: $.x")).code == -32602
    assert data_of(error_object(QueueFullError("full"))) == {
        "code": "queue_full",
        "retryable": True,
    }


def test_an_error_of_the_other_side_passes_whole() -> None:
    error = error_object(RemoteError(-32000, "login first", b'{"authMethods": [1]}'))
    assert error == ErrorObject(-32000, "login first", msgspec.Raw(b'{"authMethods": [1]}'))
    assert error_object(RemoteError(7, "x")) == ErrorObject(7, "x")


def test_an_unexpected_exception_says_nothing_but_where_to_look() -> None:
    with structlog.testing.capture_logs() as logs:
        error = error_object(KeyError("secret"))
    assert (error.code, error.message) == (-32603, "internal error")
    [entry] = logs
    assert data_of(error) == {"code": "internal", "retryable": False, "logId": entry["log_id"]}
    assert isinstance(entry["exc_info"], KeyError)
