"""What the host knows to be secret of an agent, and texts without it (contract section 11).

What an agent says in the protocol is kept as it said it. Its stderr, its noise and its errors are
diagnostics: they stand in status, logs and lists, and a key is told there more often than not.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from acphost.wire.base import AcpStruct

MASK = "***"
#: A shorter value stands in too many texts by accident.
_SHORTEST = 6
_NAMED = re.compile(
    r"key|token|secret|passw|passphrase|credential|bearer|cookie|private|dsn|auth|(^|_)pat$",
    re.IGNORECASE,
)
#: Such a variable says where a secret is, not what.
_PLACES = re.compile(r"(file|path|sock|dir|home|url|host|id|type|method|provider)$", re.IGNORECASE)
_ISSUED = re.compile(r"(sk|pk|rk|gh[opsu]|glpat|hf|xox[abp])[-_]\S{8}|eyJ\S{16}|AKIA\S{12}")
_IN_ADDRESS = re.compile(r"\w+://[^/@\s]*:([^/@\s]+)@")


class _Pair(AcpStruct, frozen=True):
    name: str = ""
    value: str = ""


class _Server(AcpStruct, frozen=True):
    env: Sequence[_Pair] = ()
    headers: Sequence[_Pair] = ()


class Secrets:
    """Values that are to appear nowhere, and how to take them out of a text."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: list[str] = []
        self.learn(values)

    def learn(self, values: Iterable[str]) -> None:
        """From now on these are secret, too."""
        known = {*self._values, *(value for value in values if len(value) >= _SHORTEST)}
        # The longest first: one may be a part of another.
        self._values = sorted(known, key=lambda value: (-len(value), value))

    def masked(self, text: str) -> str:
        """The text without them."""
        for value in self._values:
            text = text.replace(value, MASK)
        return text

    def masked_bytes(self, data: bytes) -> bytes:
        """Bytes without them, also as they stand in JSON."""
        for value in self._values:
            plain = value.encode("utf-8", "surrogateescape")
            data = data.replace(plain, MASK.encode())
            for inside in _in_json(value):
                data = data.replace(inside, MASK.encode())
        return data


def of_environment(env: Mapping[str, str]) -> list[str]:
    """The values of an environment that look as if they were secret."""
    found = []
    for name, value in env.items():
        is_named = _NAMED.search(name) is not None and _PLACES.search(name) is None
        if is_named or _ISSUED.match(value):
            found.append(value)
        found += _IN_ADDRESS.findall(value)
    return found


def of_servers(servers: Iterable[msgspec.Raw]) -> list[str]:
    """The values of environments and headers of MCP servers; all but paths and short words."""
    found = []
    for raw in servers:
        try:
            server = msgspec.json.decode(raw, type=_Server)
        except msgspec.DecodeError:
            continue
        for pair in (*server.env, *server.headers):
            if not pair.value.startswith(("/", "~")):
                # Of `Bearer …` the word alone is as good.
                found += [pair.value, *pair.value.split()[1:]]
    return found


def _in_json(value: str) -> Iterable[bytes]:
    """How a value is written inside a JSON text, where that is not as it is."""
    try:
        inside = msgspec.json.encode(value)[1:-1]
    except UnicodeEncodeError:
        return ()
    return () if inside == value.encode() else (inside,)
