"""What macOS gives as bytes, read on any system."""

import struct

import pytest

from acphost.transport import macos


def told(arguments: list[bytes], environment: list[bytes], *, path: bytes = b"/bin/x") -> bytes:
    """As sysctl(3) tells it: the strings behind the environment are the system's own."""
    words = [*arguments, *environment, b"", b"executable_path=/bin/x", b"ptr_munge=1"]
    return struct.pack("i", len(arguments)) + path + b"\0" * 5 + b"\0".join(words) + b"\0"


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        ([b"x"], [b"ACPHOST_LAUNCH=launch_1", b"A=b\nc"]),
        ([b"grep", b"ACPHOST_LAUNCH=launch_1", b""], [b"HOME=/", b"EMPTY="]),
        ([b"x", b"-v"], []),
    ],
)
def test_arguments_are_told_from_the_environment(
    arguments: list[bytes], environment: list[bytes]
) -> None:
    """Who only names a launch in its arguments is no process of it, and must not be ended."""
    assert macos.parse_arguments(told(arguments, environment)) == environment


@pytest.mark.parametrize("data", [b"", b"\1", struct.pack("i", 9), told([], [])[:9]])
def test_what_is_cut_short_names_nothing(data: bytes) -> None:
    assert macos.parse_arguments(data) == []


def test_elsewhere_there_is_no_such_folder() -> None:
    assert macos.temporary_folder() is None
