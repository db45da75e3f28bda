"""One daemon per state directory."""

import os
import stat
from pathlib import Path

import pytest

from acphost.errors import AlreadyRunningError, StateFolderError
from acphost.transport.lock import LOCK_NAME, StateLock, lock_holder, starting_daemon


def test_the_second_is_told_who_was_first(tmp_path: Path) -> None:
    state = tmp_path / "a" / "state"
    lock = StateLock.acquire(state)
    with pytest.raises(AlreadyRunningError) as caught:
        StateLock.acquire(state)
    assert caught.value.details["pid"] == os.getpid()
    assert str(os.getpid()) in str(caught.value)
    assert lock_holder(state) == os.getpid()
    lock.release()


def test_it_can_be_taken_again_once_it_is_free(tmp_path: Path) -> None:
    state = tmp_path / "state"
    first = StateLock.acquire(state)
    first.release()
    first.release()
    assert lock_holder(state) is None
    StateLock.acquire(state).release()


def test_a_pid_left_behind_by_a_crash_means_nothing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    StateLock.acquire(state).release()
    (state / LOCK_NAME).write_text("1\n")
    assert lock_holder(state) is None
    StateLock.acquire(state).release()


def test_nobody_holds_what_does_not_exist(tmp_path: Path) -> None:
    assert lock_holder(tmp_path / "state") is None


def test_directory_and_file_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        lock = StateLock.acquire(tmp_path / "a" / "state")
    finally:
        os.umask(before)
    for path, mode in ((tmp_path / "a", 0o700), (tmp_path / "a/state", 0o700)):
        assert stat.S_IMODE(path.stat().st_mode) == mode
    assert stat.S_IMODE((tmp_path / "a/state" / LOCK_NAME).stat().st_mode) == 0o600
    lock.release()


def test_a_directory_others_can_enter_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    state.chmod(0o755)
    with pytest.raises(StateFolderError) as caught:
        StateLock.acquire(state)
    assert f"chmod 700 {state}" in str(caught.value)


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.write_text("")
    for path in (state, state / "below"):
        with pytest.raises(StateFolderError):
            StateLock.acquire(path)


def test_a_lock_file_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (state / LOCK_NAME).symlink_to(victim)
    with pytest.raises(StateFolderError):
        StateLock.acquire(state)
    assert victim.read_text() == "precious"

    (state / LOCK_NAME).unlink()
    os.mkfifo(state / LOCK_NAME)
    with pytest.raises(StateFolderError):
        StateLock.acquire(state)


def test_until_it_serves_clients_the_holder_is_starting(tmp_path: Path) -> None:
    """The place of the socket in the file tells it; the pid can be read all the same."""
    state = tmp_path / "state"
    assert starting_daemon(state) is None
    lock = StateLock.acquire(state)
    assert starting_daemon(state) == os.getpid()
    lock.announce(Path("/run/s"))
    assert starting_daemon(state) is None
    assert lock_holder(state) == os.getpid()
    lock.release()
    again = StateLock.acquire(state)
    assert starting_daemon(state) == os.getpid()
    again.release()
