"""What a line that cannot be read would be."""

import pytest
from msgspec import UNSET

from acphost.rpc.outline import outlined


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"jsonrpc":"2.0","id":5,"result":[[[', (5, False, True)),
        (b'{"error":{"id":9},"id":"4","x":[', ("4", False, True)),
        (b'{"id":null,"method":"x","params":{{', (None, True, False)),
        (b'{"params":[{"id":3}],"method":"q","id":7}', (7, True, False)),
        (b'{"id":1.5,"method":"x"}', (UNSET, True, False)),
        (b'{"id":{"a":1},"method":"x"}', (UNSET, True, False)),
        (b'{"id":5}', (5, False, False)),
        (b'[{"id":1,"result":2}]', (UNSET, False, False)),
        (b"what [is] this: {", (UNSET, False, False)),
    ],
)
def test_what_a_line_is(line: bytes, expected: tuple[object, bool, bool]) -> None:
    assert tuple(outlined(line)) == expected
