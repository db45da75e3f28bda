"""Real sockets in a real directory."""

import asyncio
import errno
import os
import resource
import socket
import stat
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from acphost.errors import ConnectionLostError, DaemonUnreachableError, SocketPathError
from acphost.transport import dial, unix
from acphost.transport.dial import MAX_PATH
from acphost.transport.paths import default_socket_path
from acphost.transport.unix import SocketStream
from tests.support.patience import PATIENCE

Handler = Callable[[SocketStream], Awaitable[None]]


@pytest.fixture
def path(short_dir: Path) -> Path:
    return short_dir / "run" / "a.sock"


@asynccontextmanager
async def serving(path: Path, handler: Handler) -> AsyncIterator[None]:
    with anyio.fail_after(PATIENCE):
        listener = unix.bind(path)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(unix.accept_loop, listener, handler)
            yield
            tasks.cancel_scope.cancel()
        listener.close()


async def echo(stream: SocketStream) -> None:
    while data := await stream.receive():
        await stream.send(data)


async def read_to_end(stream: SocketStream) -> bytes:
    text = b""
    while data := await stream.receive():
        text += data
    return text


def stale_socket(path: Path) -> None:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


def plain_file(path: Path) -> None:
    path.write_text("precious")


def open_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))


# -- the file -------------------------------------------------------------------------------------


def test_the_socket_is_private_from_the_first_instant(path: Path) -> None:
    """Whatever the umask: `bind` makes the file with the mode it will keep."""
    before = os.umask(0)
    try:
        listener = unix.bind(path)
    finally:
        restored = os.umask(before)
    assert restored == 0, "the umask of the process is put back"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert listener.in_place()
    listener.close()
    assert not path.exists()
    listener.close()


def test_the_socket_of_a_dead_daemon_is_replaced(path: Path) -> None:
    stale_socket(path)
    listener = unix.bind(path)
    assert listener.in_place()
    listener.close()


def refusal(path: Path) -> str:
    with pytest.raises(SocketPathError) as caught:
        unix.bind(path)
    return str(caught.value)


def test_a_listening_socket_is_left_alone_even_if_nobody_accepts(path: Path) -> None:
    first = unix.bind(path)
    assert str(os.getpid()) in refusal(path)
    assert first.in_place()
    first.close()


def test_a_full_backlog_does_not_mean_stale(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(3)]
    with socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(path))
        busy.listen(0)
        for each in waiting:
            each.setblocking(False)
            each.connect_ex(str(path))
        assert os.strerror(errno.EAGAIN) in refusal(path)
        for each in waiting:
            each.close()
    assert path.exists()


def test_what_is_no_socket_is_never_removed(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.write_text("precious")
    assert "no socket" in refusal(path)
    assert path.read_text() == "precious"

    path.unlink()
    path.symlink_to(path.parent / "elsewhere")
    assert "symbolic link" in refusal(path)
    assert path.is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to somebody else")
def test_what_belongs_to_somebody_else_is_refused(path: Path) -> None:
    stale_socket(path)
    os.chown(path, 12345, 12345)
    assert "12345" in refusal(path)
    path.unlink()
    os.chown(path.parent, 12345, 12345)
    assert "12345" in refusal(path)


def test_a_directory_open_to_others_is_refused_with_the_cure(path: Path) -> None:
    path.parent.mkdir()
    path.parent.chmod(0o750)
    assert f"chmod 700 {path.parent}" in refusal(path)
    path.parent.chmod(0o700)
    path.parent.parent.chmod(0o777)
    assert "chmod go-w" in refusal(path)


def test_a_symbolic_link_to_a_directory_is_refused(path: Path) -> None:
    target = path.parent.parent / "target"
    target.mkdir(mode=0o700)
    path.parent.symlink_to(target)
    assert "symbolic link" in refusal(path)


def test_on_exit_the_file_of_a_successor_stays(path: Path) -> None:
    first = unix.bind(path)
    path.unlink()
    assert not first.in_place()
    second = unix.bind(path)
    first.close()
    assert second.in_place()
    second.close()


def test_the_longest_path_works_and_one_byte_more_is_refused(short_dir: Path) -> None:
    """In bytes: the name is made of two-byte characters."""
    room = MAX_PATH - len(os.fsencode(short_dir)) - 1
    name = "é" * (room // 2) + "x" * (room % 2)
    unix.bind(short_dir / name).close()
    message = refusal(short_dir / f"{name}x")
    assert str(MAX_PATH + 1) in message
    assert "--socket" in message


@pytest.mark.parametrize("letter", ["h", "é"])
@pytest.mark.parametrize("length", [60, 80, 95, 103, 104, 107, 108, 140])
async def test_client_and_daemon_agree_however_long_the_way_is(
    short_dir: Path, length: int, letter: str
) -> None:
    """In bytes: one finds the other, or both give the same reason."""
    letters, rest = divmod(length - len(os.fsencode(short_dir)) - 1, len(letter.encode()))
    home = short_dir / (letter * letters + "x" * rest)
    assert len(os.fsencode(home)) == length
    home.mkdir(mode=0o700)
    for path in (home / "s", default_socket_path({"XDG_RUNTIME_DIR": str(home)})):
        refused: list[str] = []
        listener = None
        try:
            listener = unix.bind(path)
        except SocketPathError as exc:
            refused.append(str(exc))
        try:
            with await dial.connect(path) as stream:
                assert stream.peer_uid == os.geteuid()
        except SocketPathError as exc:
            refused.append(str(exc))
        if listener is not None:
            assert refused == []
            listener.close()
        else:
            assert len(os.fsencode(path)) > MAX_PATH
            assert refused[0] == refused[1]
            assert "ACPHOST_SOCKET" in refused[0]


def test_between_bind_and_listen_nobody_else_can_connect_either(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The socket is looked at when it has a name and does not listen yet."""
    seen: list[int] = []
    really = os.umask

    def umask(mask: int) -> int:
        if path.exists():
            seen.append(stat.S_IMODE(path.stat().st_mode))
            with socket.socket(socket.AF_UNIX) as early, pytest.raises(ConnectionRefusedError):
                early.connect(str(path))
        return really(mask)

    before = really(0)
    monkeypatch.setattr(os, "umask", umask)
    try:
        unix.bind(path).close()
    finally:
        monkeypatch.undo()
        os.umask(before)
    assert seen == [0o600]


# -- connections ----------------------------------------------------------------------------------


async def test_what_is_sent_comes_back(path: Path) -> None:
    async with serving(path, echo):
        with await dial.connect(path) as stream:
            assert stream.peer_uid == os.geteuid()
            assert stream.try_send(memoryview(b"hello")) == 5
            assert await stream.receive() == b"hello"
            stream.end_sending()
            assert await stream.receive() == b"", "closed since the handler ended"


async def test_a_large_message_arrives_whole(path: Path) -> None:
    data = os.urandom(3_000_000)
    async with serving(path, echo):
        with await dial.connect(path) as stream:

            async def send() -> None:
                await stream.send(data)
                stream.end_sending()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send)
                assert await read_to_end(stream) == data


async def test_sending_to_who_does_not_read_takes_nothing_and_never_blocks(path: Path) -> None:
    results: list[bool] = []

    async def flood(stream: SocketStream) -> None:
        while stream.try_send(b"x" * 65536):
            pass
        results.append(True)
        await stream.writable()
        results.append(stream.try_send(b"x") == 1)

    async with serving(path, flood):
        with await dial.connect(path) as stream:
            await read_to_end(stream)
    assert results == [True, True]


async def test_a_peer_that_went_away_is_a_lost_connection(path: Path) -> None:
    gone = anyio.Event()

    async def leave(stream: SocketStream) -> None:
        stream.close()
        gone.set()

    async with serving(path, leave):
        with await dial.connect(path) as stream:
            await gone.wait()
            with pytest.raises(ConnectionLostError):
                stream.try_send(b"x")
            assert await stream.receive() == b""
        with pytest.raises(ConnectionLostError):
            stream.try_send(b"x")
        with pytest.raises(ConnectionLostError):
            await stream.writable()


async def test_closing_wakes_who_waits(path: Path) -> None:
    got: list[bytes] = []
    async with serving(path, echo):
        stream = await dial.connect(path)

        async def receive() -> None:
            got.append(await stream.receive())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(receive)
            await anyio.wait_all_tasks_blocked()
            stream.close()
    assert got == [b""]


async def test_a_send_that_is_cancelled_half_way_closes_the_connection(path: Path) -> None:
    async def never_read(_: SocketStream) -> None:
        await anyio.sleep_forever()

    async with serving(path, never_read):
        with await dial.connect(path) as stream:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stream.send, b"x" * 10_000_000)
                await anyio.wait_all_tasks_blocked()
                tasks.cancel_scope.cancel()
            with pytest.raises(ConnectionLostError):
                stream.try_send(b"next")


async def test_a_handler_that_fails_ends_only_its_own_connection(path: Path) -> None:
    async def fail_on_request(stream: SocketStream) -> None:
        while data := await stream.receive():
            if data == b"fail":
                raise ZeroDivisionError
            await stream.send(data)

    async with serving(path, fail_on_request):
        with await dial.connect(path) as good, await dial.connect(path) as bad:
            await bad.send(b"fail")
            assert await bad.receive() == b""
            await good.send(b"still here")
            assert await good.receive() == b"still here"


async def test_a_listener_that_was_closed_before_anybody_waited_ends_in_order(path: Path) -> None:
    """As where a daemon is told to stop in the moment in which it opens its socket."""
    listener = unix.bind(path)
    listener.close()
    with anyio.fail_after(PATIENCE):
        await unix.accept_loop(listener, echo)


async def test_a_listener_that_is_closed_while_somebody_knocks_ends_in_order(path: Path) -> None:
    """The connection was announced, and before it was accepted the listener was closed."""
    listener, loop = unix.bind(path), asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX) as client, listener.socket.dup() as bound:
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(unix.accept_loop, listener, echo)
                await anyio.wait_all_tasks_blocked()
                # In the turn of the loop behind that which finds the listener readable, too.
                loop.add_reader(bound, lambda: loop.call_soon(listener.close))
                client.connect(str(path))
        loop.remove_reader(bound)


async def test_more_connections_than_descriptors_do_not_stop_the_listener(
    path: Path,
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with serving(path, echo):
        good = await dial.connect(path)
        crowd = [socket.socket(socket.AF_UNIX) for _ in range(60)]
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_descriptors() + 10, hard))
        try:
            for each in crowd:
                each.setblocking(False)
                each.connect(str(path))
            await good.send(b"one")
            assert await good.receive() == b"one"
            for each in crowd:
                each.close()
            with await dial.connect(path) as late:
                await late.send(b"two")
                assert await late.receive() == b"two"
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        good.close()


def nothing(path: Path) -> None:
    path.unlink(missing_ok=True)


@pytest.mark.parametrize("what", [nothing, stale_socket, plain_file])
async def test_where_no_daemon_is_the_reason_is_told(
    path: Path, what: Callable[[Path], None]
) -> None:
    path.parent.mkdir()
    what(path)
    with pytest.raises(DaemonUnreachableError) as caught:
        await dial.connect(path)
    assert str(path) in str(caught.value)


async def test_a_client_is_told_about_a_path_that_no_socket_can_have() -> None:
    with pytest.raises(SocketPathError):
        await dial.connect(Path("/" + "x" * MAX_PATH))


async def test_a_full_backlog_is_waited_for(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    with anyio.fail_after(PATIENCE), socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen(0)
        streams = [await dial.connect(path)]

        async def one_more() -> None:
            streams.append(await dial.connect(path))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one_more)
            tasks.start_soon(one_more)
            for _ in range(3):
                await anyio.wait_readable(listening)
                listening.accept()[0].close()
        assert len(streams) == 3
        for stream in streams:
            stream.close()
