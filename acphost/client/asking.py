"""What all calls of the socket stand on: a request, and a page of a list."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

import msgspec

from acphost.client.params import Params
from acphost.wire.host import Page

T = TypeVar("T")


class Listing(NamedTuple, Generic[T]):
    """One page of a list; `next_cursor` asks for the next one."""

    items: list[T]
    next_cursor: str | None


class Asking(ABC):
    """Who can ask the daemon."""

    @abstractmethod
    async def request(
        self, method: str, params: Params, result: type[T], *, repeat: bool = False
    ) -> T:
        """Call a method and decode its result; `repeat`: it does no harm twice."""

    async def page(self, method: str, given: Params, item: type[T]) -> Listing[T]:
        """One page of a list; it is asked for again where the connection was lost."""
        page = await self.request(method, given, Page, repeat=True)
        return Listing(decoded(page.items, item), page.next_cursor)


def raws(values: Sequence[object]) -> list[msgspec.Raw]:
    """Values as JSON that is passed on as it is."""
    return [msgspec.Raw(msgspec.json.encode(value)) for value in values]


def decoded(items: Sequence[msgspec.Raw], kind: type[T]) -> list[T]:
    """Items of a page by their type."""
    return [msgspec.json.decode(item, type=kind) for item in items]
