"""Commands at the edge: odd names and encodings, empty answers, and what is held by hand."""

import json
import os
import subprocess
from pathlib import Path

import anyio
import pytest

from tests.support.daemon import Daemon, running_daemon
from tests.support.terminal import PROGRAM, Finished, acphost, environment

ODD = "new\nline \x1b[31mred\u202e"


async def run(
    daemon: Daemon,
    *words: str | bytes,
    cwd: Path | bytes | None = None,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
) -> Finished:
    """One command of this daemon, whatever is in its words."""
    return Finished(
        await anyio.run_process(
            [*PROGRAM, *map(os.fsdecode, words)],
            input=stdin,
            check=False,
            cwd=daemon.work if cwd is None else os.fsdecode(cwd),
            env={**environment(daemon.socket), **(env or {})},
        )
    )


async def test_no_name_of_a_stranger_breaks_a_line_or_steers_the_terminal() -> None:
    """A folder and a title with newlines, escapes and a turn of direction."""
    async with running_daemon() as daemon:
        odd = daemon.work / ODD
        await anyio.Path(odd).mkdir()
        sent = await run(daemon, "send", "hello", cwd=odd)
        assert sent.code == 0
        (session,) = json.loads((await run(daemon, "ls", "--json")).out)["items"]
        assert session["cwd"] == str(odd)
        renamed = await run(daemon, "session", "rename", session["sessionId"], ODD)
        shown = [
            renamed.out,
            (await run(daemon, "ls")).out,
            (await run(daemon, "status", session["sessionId"])).out,
            (await run(daemon, "grants", "add", str(odd))).out,
            (await run(daemon, "session", "discover", "fake")).out,
        ]
        for text in shown:
            assert "\x1b" not in text
            assert "\u202e" not in text
            assert not [line for line in text.splitlines() if line.startswith("line ")], text
        assert len(shown[0].splitlines()) == 1
        assert len(shown[1].splitlines()) == 2
        assert len(shown[3].splitlines()) == 2


async def test_a_locale_without_the_characters_loses_them_and_nothing_else() -> None:
    """For a person a question mark; what programs read is UTF-8 in any locale."""
    latin = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    async with running_daemon('ON prompt\n    MSG "≈ 1 €"\n') as daemon:
        sent = await run(daemon, "send", "hello", env=latin)
        assert (sent.code, sent.out) == (0, "? 1 ?\n"), sent.err
        (session,) = json.loads((await run(daemon, "ls", "--json", env=latin)).out)["items"]
        await run(daemon, "session", "rename", session["sessionId"], "Größe €")
        listed = json.loads((await run(daemon, "ls", "--json", env=latin)).out)["items"]
        assert listed[0]["title"] == "Größe €"
        for words in (["ls"], ["status"], ["ps"], ["help", "man"], ["agents"], ["logs", "-n", "1"]):
            assert "internal error" not in (await run(daemon, *words, env=latin)).err, words
        schema = await run(daemon, "schema", env=latin)
        assert schema.out == (await run(daemon, "schema")).out


async def test_what_is_not_text_is_refused_and_never_sent_as_something_else() -> None:
    """An argument, a folder, and what comes from a pipe."""
    async with running_daemon() as daemon:
        wrong = await run(daemon, "backup", b"x\xffy.db")
        assert wrong.code == 2
        assert r"b'x\xffy.db'" in wrong.err
        assert not list(daemon.work.glob("x*y.db"))
        folder = os.fsencode(daemon.work) + b"/bad\xff"
        await anyio.to_thread.run_sync(os.mkdir, folder)
        there = await run(daemon, "send", "hello", cwd=folder)
        assert there.code == 1
        assert "not UTF-8" in there.err
        for locale in ({"LC_ALL": "C.UTF-8"}, {"LC_ALL": "C"}):
            piped = await run(daemon, "send", "-", stdin=b"caf\xe9", env=locale)
            assert (piped.code, piped.out) == (2, "")
            assert "byte 4 of 4" in piped.err
        assert json.loads((await run(daemon, "ls", "--json")).out)["items"] == []


async def test_a_queue_that_is_held_by_hand_says_so_though_nothing_waits() -> None:
    """And how it goes on, in a command that can be copied."""
    async with running_daemon() as daemon:
        session = await daemon.session()
        held = await run(daemon, "queue", session, "hold")
        release = f"acphost queue {session[-8:]} release"
        assert "held by hand" in held.err
        assert release in held.err
        assert release in (await run(daemon, "queue", session)).err
        assert "1, 0 of them at work, 1 held" in (await run(daemon, "status")).out
        released = await run(daemon, *release.split()[1:])
        assert released.err == "nothing waits\n"


async def test_what_was_asked_for_and_is_not_there_is_not_called_nothing_at_all() -> None:
    """A filter that fits nothing, a grant that was never given, no service, no such count."""
    async with running_daemon() as daemon:
        await daemon.session()
        listed = await run(daemon, "ls", "--agent", "nobody")
        assert listed.err == "no such session; `acphost ls` shows all\n"
        removed = await run(daemon, "grants", "remove", "/never/granted")
        assert (removed.code, "was not granted" in removed.err) == (1, True)
        assert (await run(daemon, "logs", "-n", "-5")).code == 2
        host = await run(daemon, "--host", "", "ls")
        assert (host.code, "names no host" in host.err) == (2, True)


async def test_a_long_folder_leaves_room_for_the_rest_of_the_table() -> None:
    """Only at a terminal: in a pipe nothing of it is cut."""
    async with running_daemon() as daemon:
        deep = daemon.work / ("d" * 100) / ("e" * 100) / "the-end"
        await anyio.Path(deep).mkdir(parents=True)
        await run(daemon, "send", "hello", cwd=deep)
        assert str(deep) in (await run(daemon, "ls")).out
        seen = await anyio.to_thread.run_sync(
            lambda: subprocess.run(
                ["script", "-qec", f"stty cols 80; {' '.join(PROGRAM)} ls", "/dev/null"],
                env=environment(daemon.socket), capture_output=True, text=True, check=True,
                stdin=subprocess.DEVNULL, timeout=30,
            )
        )  # fmt: skip
        lines = seen.stdout.splitlines()
        assert "the-end" in lines[1]
        assert max(map(len, lines)) <= 100


async def test_a_service_that_is_not_installed_has_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command says so instead of printing nothing."""
    for name in ("HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    done = await acphost(None, "service", "logs")
    assert (done.code, done.out) == (1, "")
    assert "not installed" in done.err
