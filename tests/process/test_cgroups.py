"""Control groups: who has shed every other mark is still found in the one he was started in."""

import os
import sys
import time
from pathlib import Path

import anyio
import pytest

from acphost.ids import mint
from acphost.transport import cgroups, processes
from acphost.transport.child import Child, ChildSpec, spawn
from acphost.transport.process_figures import families
from acphost.transport.processes import Launch, Process
from tests.support.daemon import eventually, is_alive
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.skipif(
    cgroups.home() is None,
    reason="control groups: this machine lets us make none (cgroup v2 is read-only or absent)",
)

#: Starts a process without mark, group and parent, and says its pid.
SHED = "(env -i setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1000; done' &)"


def spec(script: str, **changes: object) -> ChildSpec:
    launch_id = mint("launch")
    given: dict[str, object] = {
        "argv": ["sh", "-c", script],
        "cwd": "/",
        "env": dict(os.environ),
        "launch_id": launch_id,
        "cgroup": cgroups.group_for(launch_id),
        **changes,
    }
    return ChildSpec(**given)  # type: ignore[arg-type]


def is_there(group: str | None) -> bool:
    return group is not None and Path(group).exists()


async def said(child: Child) -> bytes:
    with anyio.fail_after(PATIENCE):
        return await child.read_stdout()


async def test_a_process_that_shed_everything_goes_with_its_launch() -> None:
    """No mark, no group, no parent: its control group is all that tells whose it is."""
    what = spec(f"{SHED}; exec cat")
    child = spawn(what)
    stray = int(await said(child))
    assert stray not in {each.pid for each in processes.marked(what.launch_id)}
    assert await child.stop(eof_grace=5, term_grace=0.05) == []

    assert not is_alive(stray)
    assert what.cgroup is not None
    assert not is_there(what.cgroup)


async def test_it_is_found_by_who_did_not_start_it() -> None:
    """As the daemon's next start does it, with nothing but what the ledger has."""
    what = spec(f"{SHED}; exec sleep 1000")
    child = spawn(what)
    stray = int(await said(child))
    birth = processes.birth(child.pid) or ""
    assert what.cgroup is not None
    launch = Launch(what.launch_id, child.pid, birth, child.pid, processes.boot_id(), what.cgroup)
    assert stray in {each.process.pid for each in families([launch])[what.launch_id].descendants}
    assert await processes.end_launch(launch, term_grace=0.05) == []

    assert not is_alive(stray)
    assert await child.stop(eof_grace=0, term_grace=0) == []
    assert not is_there(what.cgroup)


async def test_groups_that_were_made_below_it_are_emptied_too(tmp_path: Path) -> None:
    """An agent may divide its own group; what it put there is ended with it."""
    script = 'mkdir "$G/in" && sh -c \'echo 0 >"$G/in/cgroup.procs"; echo $$; exec sleep 1000\''
    what = spec(script)
    assert what.cgroup is not None
    what = spec(script, launch_id=what.launch_id, cgroup=what.cgroup,
                env={**os.environ, "G": what.cgroup})  # fmt: skip
    child = spawn(what)
    inner = int(await said(child))
    assert await child.stop(eof_grace=0, term_grace=0.05) == []

    assert not is_alive(inner)
    assert not is_there(what.cgroup)


async def test_a_folder_that_is_not_that_launchs_group_is_left_alone(tmp_path: Path) -> None:
    """What the ledger names is believed only where it is a group, and named after the launch."""
    what = spec("exec sleep 1000")
    child = spawn(what)
    assert what.cgroup is not None
    try:
        for group in (what.cgroup, str(tmp_path / "acphost.launch_x"), f"{what.cgroup}/.."):
            launch = Launch("launch_x", 0, "", 0, processes.boot_id(), group)
            assert processes.cgroup_of(launch) is None
            assert await processes.end_launch(launch, term_grace=0) == []
        assert processes.is_alive(Process(child.pid, child.birth))
    finally:
        assert await child.stop(eof_grace=0, term_grace=0) == []


async def test_a_program_that_cannot_be_started_leaves_no_group(tmp_path: Path) -> None:
    """Neither does one whose group cannot be made fail for that."""
    broken = tmp_path / "broken"
    broken.write_bytes(b"\x7fELFnothing")
    broken.chmod(0o755)
    what = spec("", argv=[str(broken)])
    with pytest.raises(Exception, match="broken"):
        spawn(what)
    assert not is_there(what.cgroup)

    child = spawn(spec("echo up", cgroup=str(tmp_path / "none" / "acphost.x")))
    assert await said(child) == b"up\n"
    assert await child.stop(eof_grace=5, term_grace=5) == []


async def test_empty_groups_of_daemons_that_never_came_back_are_removed() -> None:
    """Those below them too; one that is in use, or that is just being made, is left alone."""
    parent = cgroups.home()
    assert parent is not None
    left, fresh = (parent / f"acphost.{mint('launch')}" for _ in range(2))
    (left / "in").mkdir(parents=True)
    used = spec("exec sleep 1000")
    child = spawn(used)
    try:
        fresh.mkdir()
        cgroups.tidy(60)
        assert left.exists()
        an_hour_ago = time.time() - 3600
        os.utime(left, (an_hour_ago, an_hour_ago))
        assert cgroups.tidy(60) >= 1
        assert not left.exists()
        assert fresh.exists()
        cgroups.tidy(0)
        assert not fresh.exists()
        assert is_there(used.cgroup)
        assert processes.is_alive(Process(child.pid, child.birth))
    finally:
        assert await child.stop(eof_grace=0, term_grace=0) == []


async def test_a_child_is_in_its_group_before_it_runs() -> None:
    """The first thing it can do is done inside already."""
    what = spec("grep ^0:: /proc/self/cgroup")
    child = spawn(what)
    assert what.launch_id.encode() in await said(child)
    assert await child.stop(eof_grace=5, term_grace=5) == []
    await eventually(lambda: not is_alive(child.pid))
    assert sys.platform == "linux"
