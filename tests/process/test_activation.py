"""Sockets handed over by a service manager: taken if they are right, refused with a reason."""

import ctypes
import errno
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from acphost.errors import SocketPathError
from acphost.transport import launchd
from acphost.transport.activation import adopt, adopt_from, inherited
from acphost.transport.notify import Notifier, extension, status
from tests.support.service_manager import notify_socket


@pytest.fixture
def path(short_dir: Path) -> Path:
    folder = short_dir / "run"
    folder.mkdir(mode=0o700)
    return folder / "a.sock"


@pytest.fixture
def handed(path: Path) -> Iterator[int]:
    """The descriptor of a listening socket at `path`, as systemd would have made it."""
    number = listening(path)
    yield number
    forget(number)


def listening(path: Path, *, mode: int = 0o600, listen: bool = True) -> int:
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(str(path))
    path.chmod(mode)
    if listen:
        bound.listen()
    number = bound.detach()
    os.set_inheritable(number, True)
    return number


def forget(number: int) -> None:
    if is_open(number):
        os.close(number)


def is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


# -- which descriptors ----------------------------------------------------------------------------


def test_descriptors_are_counted_from_three() -> None:
    assert inherited({"LISTEN_PID": "7", "LISTEN_FDS": "2"}, 7) == [3, 4]


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"LISTEN_FDS": "1"},
        {"LISTEN_PID": "8", "LISTEN_FDS": "1"},
        {"LISTEN_PID": "7", "LISTEN_FDS": "x"},
        {"LISTEN_PID": "7", "LISTEN_FDS": "-1"},
        {"LISTEN_PID": "7", "LISTEN_FDS": "0"},
    ],
)
def test_variables_that_are_not_for_us_are_left_alone(environ: dict[str, str]) -> None:
    assert inherited(environ, 7) == []


def test_without_a_manager_there_is_nothing_to_adopt(path: Path) -> None:
    assert adopt(path, {}) is None


# -- which sockets --------------------------------------------------------------------------------


def test_a_listening_socket_at_our_path_is_taken(path: Path, handed: int) -> None:
    """It does not reach children, and its file stays when the listener is closed."""
    listener = adopt_from([handed], path)
    assert listener.in_place()
    assert not os.get_inheritable(handed)
    assert not listener.socket.getblocking()
    listener.close()
    assert path.exists()
    assert not is_open(handed)


def test_a_directory_may_have_two_names(path: Path, handed: int, short_dir: Path) -> None:
    (short_dir / "var").symlink_to(path.parent)
    with pytest.raises(SocketPathError, match="symbolic link"):
        adopt_from([handed], short_dir / "var" / path.name)
    # The one directory that may not be a link is the last; /var/run above it may lead to /run.
    (short_dir / "up").symlink_to(short_dir)
    again = listening(path.with_name("b.sock"))
    adopt_from([again], short_dir / "up" / "run" / "b.sock").close()


def refusal(numbers: list[int], path: Path) -> str:
    with pytest.raises(SocketPathError) as caught:
        adopt_from(numbers, path)
    return str(caught.value)


def test_a_socket_at_another_path_is_refused(path: Path, handed: int) -> None:
    message = refusal([handed], path.with_name("other.sock"))
    assert str(path) in message
    assert "service install" in message
    assert not is_open(handed)


def test_what_does_not_listen_is_refused(path: Path) -> None:
    assert "does not listen" in refusal([listening(path, listen=False)], path)


def test_what_is_no_unix_stream_is_refused(path: Path) -> None:
    internet = socket.socket(socket.AF_INET).detach()
    datagrams = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).detach()
    reader, writer = os.pipe()
    message = refusal([internet, datagrams, reader, writer], path)
    assert message.count("no Unix stream") == 2
    assert message.count("is no socket") == 2


def test_a_socket_that_others_may_use_is_refused(path: Path) -> None:
    number = listening(path, mode=0o660)
    assert "SocketMode=0600" in refusal([number], path)
    assert not is_open(number)


def test_a_directory_that_others_may_enter_is_refused(path: Path, handed: int) -> None:
    path.parent.chmod(0o755)
    assert "chmod 700" in refusal([handed], path)


def test_a_socket_without_its_name_is_refused(path: Path, handed: int) -> None:
    path.unlink()
    assert "restart acphost.socket" in refusal([handed], path)


def test_the_right_one_among_several_is_found(path: Path, handed: int) -> None:
    other = listening(path.with_name("other.sock"))
    listener = adopt_from([other, handed], path)
    assert listener.socket.fileno() == handed
    assert not is_open(other)
    listener.close()


# -- launchd --------------------------------------------------------------------------------------


class Libsystem:
    """The two calls, as the C library has them."""

    def __init__(self, code: int = 0, numbers: tuple[int, ...] = ()) -> None:
        self._code = code
        self._kept = (ctypes.c_int * len(numbers))(*numbers)
        self.asked: list[bytes] = []
        self.freed = 0

    def launch_activate_socket(self, name: bytes, numbers: Any, count: Any) -> int:  # noqa: ANN401
        self.asked.append(name)
        if not self._code:
            pointer = ctypes.POINTER(ctypes.c_int)
            ctypes.cast(numbers, ctypes.POINTER(pointer))[0] = ctypes.cast(self._kept, pointer)
            ctypes.cast(count, ctypes.POINTER(ctypes.c_size_t))[0] = len(self._kept)
        return self._code

    def free(self, numbers: Any) -> None:  # noqa: ANN401
        assert numbers
        self.freed += 1


def test_launchd_hands_out_its_sockets() -> None:
    """The list it allocates is read and freed."""
    library = Libsystem(numbers=(5, 9))
    assert launchd.activated("Control", library) == [5, 9]
    assert library.asked == [b"Control"]
    assert library.freed == 1


@pytest.mark.parametrize("code", [errno.ESRCH, errno.ENOENT])
def test_not_started_by_launchd(code: int) -> None:
    assert launchd.activated("Control", Libsystem(code)) == []


def test_launchd_refuses() -> None:
    with pytest.raises(SocketPathError, match="launchd"):
        launchd.activated("Control", Libsystem(errno.EALREADY))


def test_a_system_without_launchd() -> None:
    assert launchd.activated("Control", object()) == []


# -- sd_notify ------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [lambda folder: f"@{folder}/n", lambda folder: f"{folder}/n"])
async def test_the_manager_is_told(place: Callable[[Path], str], short_dir: Path) -> None:
    """By an abstract address as well as by a path; one message with all its lines."""
    with notify_socket(place(short_dir)) as manager:
        notifier = Notifier.of({"NOTIFY_SOCKET": manager.address}, 7)
        assert notifier.watchdog is None
        await notifier.tell("READY=1", status("serving\nwell"), extension(1.5))
        message = await manager.hears("READY=1")
        assert message.splitlines()[1:] == ["STATUS=serving well", "EXTEND_TIMEOUT_USEC=1500000"]


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:1234"}])
async def test_nobody_is_told_where_nobody_listens(environ: dict[str, str]) -> None:
    notifier = Notifier.of({**environ, "WATCHDOG_USEC": "1"}, 7)
    assert not notifier.is_heard
    assert notifier.watchdog is None
    await notifier.tell("READY=1")


async def test_a_manager_that_has_gone_does_no_harm(short_dir: Path) -> None:
    await Notifier.of({"NOTIFY_SOCKET": f"{short_dir}/gone"}, 7).tell("READY=1")


@pytest.mark.parametrize(
    ("usec", "pid", "seconds"),
    [
        ("30000000", None, 30.0),
        ("30000000", "7", 30.0),
        ("30000000", "8", None),
        ("0", None, None),
        ("", None, None),
        ("soon", None, None),
    ],
)
def test_how_often_the_watchdog_wants_a_sign(
    usec: str, pid: str | None, seconds: float | None
) -> None:
    environ = {"NOTIFY_SOCKET": "/n", "WATCHDOG_USEC": usec}
    environ |= {} if pid is None else {"WATCHDOG_PID": pid}
    assert Notifier.of(environ, 7).watchdog == seconds
