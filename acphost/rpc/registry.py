"""Methods by name, with typed params and an async handler each."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Generic, TypeVar

import msgspec

from acphost.errors import InvalidParamsError, MethodNotFoundError

C = TypeVar("C")
P = TypeVar("P")


class MethodRegistry(Generic[C]):
    """C is what every handler is given beside its params, the connection for instance."""

    def __init__(self) -> None:
        self._invoke: dict[str, Callable[[C, msgspec.Raw], Awaitable[object]]] = {}
        self._params: dict[str, type] = {}

    def add(self, name: str, params: type[P], handler: Callable[[C, P], Awaitable[object]]) -> None:
        """Answer `name` with `handler`. Raises ValueError if the name is taken."""
        if name in self._invoke:
            raise ValueError(f"method {name!r} is registered twice")
        decoder = msgspec.json.Decoder(params)

        async def invoke(context: C, raw: msgspec.Raw) -> object:
            try:
                decoded = decoder.decode(raw)
            except (msgspec.DecodeError, RecursionError) as exc:
                raise InvalidParamsError(f"{name}: {exc}") from exc
            return await handler(context, decoded)

        self._invoke[name] = invoke
        self._params[name] = params

    async def call(self, context: C, name: str, params: msgspec.Raw) -> object:
        """The handler's result.

        Raises MethodNotFoundError, InvalidParamsError naming the path, or what the handler raises.
        """
        invoke = self._invoke.get(name)
        if invoke is None:
            raise MethodNotFoundError(f"unknown method {name!r}")
        return await invoke(context, params)

    def methods(self) -> Iterator[tuple[str, type]]:
        """Every method with the type of its params, in order of registration."""
        return iter(self._params.items())
