"""Methods by name."""

import msgspec
import pytest

from acphost.errors import InvalidParamsError, MethodNotFoundError
from acphost.rpc.registry import MethodRegistry
from acphost.wire.base import HostParams


class Where(HostParams, frozen=True):
    session_id: str
    limit: int = 10


async def echo(context: str, params: Where) -> object:
    return context, params.session_id, params.limit


@pytest.fixture
def registry() -> MethodRegistry[str]:
    registry = MethodRegistry[str]()
    registry.add("session/get", Where, echo)
    return registry


async def test_a_handler_gets_its_context_and_typed_params(registry: MethodRegistry[str]) -> None:
    raw = msgspec.Raw(b'{"sessionId":"s","_meta":{"x":1}}')
    assert await registry.call("c", "session/get", raw) == ("c", "s", 10)


@pytest.mark.parametrize(
    ("params", "path"),
    [
        (b'{"sessionId":1}', "$.sessionId"),
        (b'{"sessionId":"s","limit":null}', "$.limit"),
        (b'{"sessionId":"s","nope":1}', "nope"),
        (b"{}", "sessionId"),
        (b"[]", "array"),
        (b'{"sessionId":"s","_meta":' + b"[" * 100_000 + b"]" * 100_000 + b"}", ""),
    ],
)
async def test_params_that_do_not_fit_are_refused_with_their_path(
    registry: MethodRegistry[str], params: bytes, path: str
) -> None:
    with pytest.raises(InvalidParamsError) as caught:
        await registry.call("c", "session/get", msgspec.Raw(params))
    assert path in str(caught.value)
    assert str(caught.value).startswith("session/get: ")


async def test_an_unknown_method_is_refused(registry: MethodRegistry[str]) -> None:
    with pytest.raises(MethodNotFoundError):
        await registry.call("c", "session/nope", msgspec.Raw(b"{}"))


def test_a_name_is_registered_once(registry: MethodRegistry[str]) -> None:
    with pytest.raises(ValueError, match="session/get"):
        registry.add("session/get", Where, echo)
    assert list(registry.methods()) == [("session/get", Where)]
