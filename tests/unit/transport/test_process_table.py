"""What the system says about processes."""

import os
import time
from pathlib import Path

import pytest

from acphost.transport import process_table
from acphost.transport.process_table import Entry, parse_stat


def test_this_process_is_described() -> None:
    found = process_table.entry(os.getpid())
    assert found is not None
    assert found._replace(birth="") == Entry(
        pid=os.getpid(),
        parent=os.getppid(),
        group=os.getpgid(0),
        session=os.getsid(0),
        uid=os.geteuid(),
        is_dead=False,
        birth="",
    )
    assert found in list(process_table.entries())


def test_its_age_is_known() -> None:
    """From its birth on, by the system's own count: its parent was there before."""
    ages = []
    for pid in (os.getpid(), os.getppid()):
        found = process_table.entry(pid)
        assert found is not None
        ages.append(process_table.age_ms(found))
    assert 0 <= ages[0] <= ages[1]


@pytest.mark.parametrize(
    ("birth", "age"),
    [("Mon Jan 5 10:11:12 2026", 2500), ("Mon Jan 5 10:12:12 2026", 0), ("", 0), ("x y", 0)],
)
def test_an_age_is_read_from_the_words_of_ps(birth: str, age: int) -> None:
    """One that cannot be, of a clock that was put back, is none."""
    assert process_table.age_by_words(birth, 1_767_607_874.5) == age


def test_no_process_has_no_description() -> None:
    assert process_table.entry(2**22 + 1) is None


def test_the_boot_has_a_name() -> None:
    assert process_table.boot_id() == process_table.boot_id() != ""


@pytest.mark.parametrize("name", ["sh", "a) Z 1 2 3", "(", ") ) )", "x y", "\udcff"])
def test_a_program_cannot_choose_what_is_read_by_its_name(name: str) -> None:
    numbers = " ".join(str(n) for n in range(7, 30))
    text = os.fsencode(f"41 ({name}) S 1 40 39 0 -1 {numbers}")
    assert parse_stat(text, 1000) == Entry(41, 1, 40, 39, 1000, is_dead=False, birth="20")


def test_the_dead_are_known() -> None:
    text = b"41 (sh) %b 1 40 39 " + b"0 " * 30
    for state in (b"Z", b"X"):
        assert parse_stat(text % state, 0).is_dead
    for state in (b"S", b"R", b"D", b"T", b"t", b"I"):
        assert not parse_stat(text % state, 0).is_dead


@pytest.mark.skipif(not Path("/bin/ps").exists(), reason="ps: there is none on this machine")
def test_ps_is_asked_for_what_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same process by `ps` and by the kernel; its birth is the same wherever the machine is."""
    births = set()
    for zone in ("UTC", "Asia/Tokyo", "America/Los_Angeles"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        (found,) = process_table.listed("-p", str(os.getpid()))
        births.add(found.birth)
        known = process_table.entry(os.getpid())
        assert known is not None
        assert found._replace(birth="", session=0) == known._replace(birth="", session=0)
    monkeypatch.undo()
    time.tzset()
    assert len(births) == 1
    assert os.getpid() in {each.pid for each in process_table.listed("-ax")}
    command = process_table.ps("-p", str(os.getpid()), "-ww", columns=["rss", "command"])
    assert command.split()[0].isdigit()
    assert "python" in command


def test_what_ps_says_is_read() -> None:
    """The way of macOS; `ps` of Linux knows the same columns."""
    lines = (
        "    1     0     1     0 Ss   Mon Jan  5 10:11:12 2026\n"
        "  321   300   300   501 Z+   Mon Jan  5 10:11:13 2026\n"
    )
    assert list(process_table.parse_ps(lines)) == [
        Entry(1, 0, 1, 1, 0, is_dead=False, birth="Mon Jan 5 10:11:12 2026"),
        Entry(321, 300, 300, 300, 501, is_dead=True, birth="Mon Jan 5 10:11:13 2026"),
    ]
