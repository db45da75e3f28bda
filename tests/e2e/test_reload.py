"""The configuration changes under a daemon that runs: at once, once, and never for the worse."""

import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from acphost.errors import AgentNotFoundError
from tests.support.daemon import Daemon, eventually, is_alive, payload, running_daemon
from tests.support.patience import PATIENCE

ANSWERS = 'ON prompt\n    MSG "${WORD:-old}"\n'


class Told:
    """What a daemon says about its configuration, in order."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._seen = 0

    def events(self) -> list[tuple[str, Any]]:
        """All events about it so far."""
        return [
            (event.kind, payload(event))
            for event in self._daemon.seen
            if event.kind.startswith("config.")
        ]

    async def next(self) -> tuple[str, Any]:
        """The next one, which must come within a second."""
        with anyio.fail_after(PATIENCE):
            while len(self.events()) <= self._seen:  # noqa: ASYNC110  the watcher gathers them
                await anyio.sleep(0.01)
        self._seen += 1
        return self.events()[self._seen - 1]

    async def reloaded(self) -> list[str]:
        """The keys that the next event says have changed."""
        kind, told = await self.next()
        assert kind == "config.reloaded", told
        changed: list[str] = told["changed"]
        return changed

    async def nothing_more(self) -> None:
        """A look that was asked for comes behind all that was noticed; it is no news either."""
        await self._daemon.client.reload()
        assert len(self.events()) == self._seen, self.events()[self._seen :]


async def config(daemon: Daemon) -> dict[str, Any]:
    """What the daemon's status says about its configuration."""
    told = (await daemon.client.stats())["config"]
    assert isinstance(told, dict)
    return told


async def quiet_after(daemon: Daemon) -> float:
    """A value that the tests change."""
    await daemon.client.ping()
    text = (daemon.folder / "config.toml").read_text()
    return float(text.partition("quiet_after = ")[2].partition("\n")[0])


def text_with(daemon: Daemon, number: int) -> str:
    """The configuration with a value that depends on `number`."""
    text = (daemon.folder / "config.toml").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("quiet_after")]
    return "\n".join([*lines, f"quiet_after = {number}"]) + "\n"


async def test_however_an_editor_saves_it_is_noticed_once() -> None:
    """In place, by rename, with a backup, through a link, twice in a row: one event for each."""
    async with running_daemon(ANSWERS) as daemon:
        told, file = Told(daemon), daemon.folder / "config.toml"
        key = ["agents.fake.quiet_after"]

        file.write_text(text_with(daemon, 1))
        assert await told.reloaded() == key

        for number in (2, 3):
            other = daemon.path("config.toml.tmp")
            other.write_text(text_with(daemon, number))
            other.rename(file)
            assert await told.reloaded() == key

        new = text_with(daemon, 4)
        file.rename(daemon.path("config.toml~"))
        file.write_text(new)
        assert await told.reloaded() == key

        elsewhere = daemon.path("dotfiles")
        elsewhere.mkdir()
        (elsewhere / "one.toml").write_text(text_with(daemon, 5))
        daemon.path("link").symlink_to(elsewhere / "one.toml")
        daemon.path("link").rename(file)
        assert await told.reloaded() == key
        (elsewhere / "one.toml").write_text(text_with(daemon, 6))
        assert await told.reloaded() == key
        (elsewhere / "two.toml").write_text(text_with(daemon, 7))
        daemon.path("link").symlink_to(elsewhere / "two.toml")
        daemon.path("link").rename(file)
        assert await told.reloaded() == key

        os.utime(file)
        (elsewhere / "two.toml").write_text(text_with(daemon, 7))
        (elsewhere / "two.toml").write_text("# a comment\n" + text_with(daemon, 7))
        await told.nothing_more()
        assert (await config(daemon))["problem"] is None


async def test_a_mistake_is_told_with_its_place_and_changes_nothing() -> None:
    """A wrong type, an unknown key, half a file: the last good one counts; the cure is news."""
    async with running_daemon(ANSWERS) as daemon:
        told, file = Told(daemon), daemon.folder / "config.toml"
        good = file.read_text()
        lines = good.count("\n")
        for bad, key, line in (
            (good + "quiet_after = 'soon'\n", "agents.fake.quiet_after", lines + 1),
            (good + "comand = ['x']\n", "agents.fake.comand", lines + 1),
            (good[: good.index("timeout = ") + 8], "", None),
        ):
            file.write_text(bad)
            kind, said = await told.next()
            assert kind == "config.rejected"
            (mistake,) = said["mistakes"]
            assert (mistake["file"], mistake["key"]) == (str(file), key)
            assert line in (None, mistake["line"])
            status = await config(daemon)
            assert status["mistakes"] == said["mistakes"]
            assert str(file) in status["problem"]
            assert (await daemon.ask(await daemon.session(), f"q{key}")).status == "completed"

        file.write_text(good)
        assert await told.reloaded() == []
        await told.nothing_more()
        assert (await config(daemon))["problem"] is None
        assert "config_rejected" in daemon.log()


async def test_a_file_that_is_gone_or_empty_for_a_while_is_not_an_empty_configuration() -> None:
    """Deleted and written again after a while: nothing was reset in between."""
    async with running_daemon(ANSWERS) as daemon:
        told, file = Told(daemon), daemon.folder / "config.toml"
        good = text_with(daemon, 9)
        for spoil in (file.unlink, lambda: file.write_text("")):
            spoil()
            while "gone or empty" not in ((await config(daemon))["problem"] or ""):  # noqa: ASYNC110
                await anyio.sleep(0.01)
            assert (await daemon.ask(await daemon.session(), "q")).status == "completed"
            file.write_text(good)
            while (await config(daemon))["problem"]:  # noqa: ASYNC110
                await anyio.sleep(0.01)

        assert await told.reloaded() == ["agents.fake.quiet_after"]
        await told.nothing_more()


async def test_a_file_that_stays_empty_is_a_mistake_and_one_that_a_person_removed_is_not() -> None:
    """Asked to read again, the daemon takes what is there."""
    async with running_daemon(ANSWERS) as daemon:
        told, file = Told(daemon), daemon.folder / "config.toml"
        good = file.read_text()
        file.write_text("")
        with anyio.fail_after(PATIENCE):
            while not told.events():  # noqa: ASYNC110  the watcher gathers them
                await anyio.sleep(0.05)
        kind, said = await told.next()
        assert (kind, said["mistakes"][0]["file"]) == ("config.rejected", str(file))
        assert "is empty" in said["mistakes"][0]["text"]

        file.unlink()
        answer = await daemon.client.reload()
        assert answer.problem is None
        assert "agents.fake" in answer.changed
        assert await told.reloaded() == answer.changed
        file.write_text(good)
        assert "agents.fake" in await told.reloaded()


async def test_folders_that_do_not_exist_yet_are_waited_for() -> None:
    """agents.d appears with a file in it, goes as a whole, and comes back by a rename."""
    async with running_daemon(ANSWERS) as daemon:
        told, folder = Told(daemon), daemon.folder / "agents.d"
        folder.mkdir()
        (folder / "a.toml").write_text('[agents.more]\ncommand = ["true"]\n')
        assert await told.reloaded() == ["agents.more"]
        (folder / "a.toml").write_text('[agents.more]\ncommand = ["false"]\n')
        assert await told.reloaded() == ["agents.more.command"]
        other = daemon.path("agents.new")
        other.mkdir()
        (other / "b.toml").write_text('[agents.other]\ncommand = ["true"]\n')
        folder.rename(daemon.path("agents.old"))
        other.rename(folder)
        with anyio.fail_after(PATIENCE):
            while len(told.events()) < 3:  # noqa: ASYNC110  the watcher gathers them
                await anyio.sleep(0.05)
        assert await told.reloaded() == ["agents.more", "agents.other"]
        listed = await daemon.client.agents()
        assert "other" in {each.agent_id for each in listed.agents}


async def test_a_whole_configuration_folder_may_come_later() -> None:
    """Started without any: the folder's parent is watched until it is there."""
    async with running_daemon(ANSWERS, prepare=_without_folder) as daemon:
        told = Told(daemon)
        assert (await config(daemon))["files"] == []
        place = daemon.path("xdg") / "acphost"
        place.mkdir(parents=True)
        (place / "config.toml").write_text((daemon.folder / "config.toml").read_text())
        assert "agents.fake" in await told.reloaded()
        assert (await daemon.ask(await daemon.session(), "q")).status == "completed"


def _without_folder(daemon: Daemon) -> None:
    daemon.environ["XDG_CONFIG_HOME"] = str(daemon.path("xdg"))
    daemon.flags = daemon.flags[2:]


async def test_what_runs_keeps_what_it_was_started_with() -> None:
    """The open turn ends as it began; a new session gets the new settings; the old agent goes."""
    script = ANSWERS + 'ON prompt "wait"\n    GATE ${DIR}/go\n    MSG "${WORD:-old}"\n'
    async with running_daemon(script) as daemon:
        told = Told(daemon)
        session = await daemon.session()
        run = await daemon.send(session, "wait")
        await daemon.hears("session/prompt")
        daemon.configure(agent={"env": {**daemon.agent_environ, "WORD": "new"}})
        assert await told.reloaded() == ["agents.fake.env.WORD"]

        fresh = await daemon.ask(await daemon.session(), "q")
        daemon.open("go")
        assert await daemon.text(await daemon.wait(run)) == "old"
        assert await daemon.text(fresh) == "new"
        assert await daemon.text(await daemon.ask(session, "once more")) == "old"
        first, second = daemon.launches()
        assert is_alive(first)
        assert is_alive(second)


async def test_an_agent_is_removed_while_it_works() -> None:
    """Its turn ends normally; what waits is kept or fails clearly; a new send is refused."""
    script = 'ON prompt "wait"\n    GATE ${DIR}/go\n    MSG "done"\n'
    async with running_daemon("", others={"extra": script}) as daemon:
        told, file = Told(daemon), daemon.folder / "config.toml"
        session = await daemon.session("extra")
        run = await daemon.send(session, "wait")
        await daemon.hears("session/prompt", agent="extra")
        file.write_text(file.read_text().partition("[agents.extra]")[0])
        assert await told.reloaded() == ["agents.extra"]

        with pytest.raises(AgentNotFoundError, match="extra"):
            await daemon.send(session, "after")
        daemon.open("go")
        assert (await daemon.wait(run)).status == "completed"
        await daemon.restart()
        assert (await daemon.get(session)).agent_id == "extra"
        assert await daemon.text(run) == "done"


async def test_an_agent_that_rests_gets_a_new_chance() -> None:
    """After too many failures it rests until its configuration changes."""
    restart = {"limit": 1, "window": 600}
    async with running_daemon("EXIT 1\n", agent={"restart": restart}) as daemon:
        told, session = Told(daemon), await daemon.session()
        assert (await daemon.ask(session, "first")).status == "failed"
        assert "rests" in ((await daemon.ask(session, "second")).error or "")
        daemon.rewrite("")
        daemon.configure(agent={"init_timeout": 9})
        assert await told.reloaded() == ["agents.fake.init_timeout"]
        assert (await daemon.ask(session, "third")).status == "completed"


async def test_a_hangup_and_a_request_read_again() -> None:
    """SIGHUP reloads; the request tells what changed, or the mistakes, or what needs a restart."""

    def name_state(daemon: Daemon) -> None:
        daemon.flags = daemon.flags[:-2]
        daemon.configure(state_dir=str(daemon.state))

    async with running_daemon(ANSWERS, prepare=name_state) as daemon:
        told, file = Told(daemon), daemon.folder / "config.toml"
        loaded = (await config(daemon))["loadedAt"]
        daemon.signal(signal.SIGHUP)
        while (await config(daemon))["loadedAt"] == loaded:  # noqa: ASYNC110  nothing else tells
            await anyio.sleep(0.01)
        await told.nothing_more()

        file.write_text("[queue]\nlimit = 'many'\n")
        answer = await daemon.client.reload()
        assert [each["key"] for each in answer.mistakes] == ["queue.limit"]
        assert (await told.next())[0] == "config.rejected"

        daemon.configure(state_dir=str(daemon.path("elsewhere")), queue={"limit": 7})
        answer = await daemon.client.reload()
        assert answer.needs_restart == ["state_dir"]
        changed = await told.reloaded()
        assert {"queue.limit", "state_dir"} <= set(changed)
        # The daemon may have noticed by itself before it was asked.
        assert answer.changed in (changed, [])
        await told.nothing_more()


async def test_it_starts_with_a_mistake_in_a_file_and_says_so() -> None:
    """What the file said is left out, but for where socket and state are; mended, it counts."""

    def spoil(daemon: Daemon) -> None:
        daemon.flags = daemon.flags[:-2]
        file = daemon.folder / "config.toml"
        good = f'state_dir = "{daemon.path("named")}"\n' + file.read_text()
        daemon.path("good").write_text(good)
        file.write_text(good + "comand = ['x']\n")

    async with running_daemon(ANSWERS, prepare=spoil) as daemon:
        await eventually(lambda: any(e.kind == "config.rejected" for e in daemon.seen))
        status = await config(daemon)
        assert "agents.fake.comand" in status["problem"]
        agents = {each.agent_id for each in (await daemon.client.agents()).agents}
        assert "fake" not in agents
        assert "demo" in agents
        assert (daemon.path("named") / "journal.db").exists()
        daemon.journal.path = daemon.path("named") / "journal.db"
        (daemon.folder / "config.toml").write_text(daemon.path("good").read_text())
        await eventually(lambda: any(e.kind == "config.reloaded" for e in daemon.seen))
        assert (await daemon.ask(await daemon.session(), "q")).status == "completed"


async def test_at_rest_it_sleeps() -> None:
    """All its threads together wake less than once in a second."""
    async with running_daemon(ANSWERS) as daemon:
        await daemon.client.reload()
        assert (await config(daemon))["noticedBy"] == "inotify"
        with anyio.fail_after(PATIENCE):
            # What it did last is written out a little later: only then it has nothing to do.
            while True:
                before = wake_ups(daemon.pid)
                await anyio.sleep(4)  # the rest itself is what is measured
                if wake_ups(daemon.pid) - before < 4:
                    break


def wake_ups(pid: int) -> int:
    """How often threads of a process gave up the processor to wait, in total."""
    total = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        for line in status.read_text().splitlines():
            if line.startswith("voluntary_ctxt_switches"):
                total += int(line.split()[1])
    return total
