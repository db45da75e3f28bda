"""What a run has changed: by whom, from what, to what; and nothing that was only said."""

import hashlib
import json
from typing import Any

import anyio
import anyio.to_thread

from tests.support.daemon import eventually, payload, running_daemon

ALLOWED = {"files": {"write": "allow"}, "terminals": {"run": "allow"}}


def digest(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def diff(path: str, old: str | None, new: str) -> str:
    """The content of a tool call that shows a change."""
    return json.dumps([{"type": "diff", "path": path, "oldText": old, "newText": new}])


async def test_what_an_agent_does_by_itself_is_seen() -> None:
    """Made, changed, deleted; told before the run's end, and kept with the run."""
    script = """
ON prompt "one"
    MARK ${DIR}/work/made one
    MARK ${DIR}/work/sub/changed two
    MARK ${DIR}/work/.git/index no
ON prompt "two"
    MARK ${DIR}/work/made three
ON prompt "three"
    MSG nothing
"""
    async with running_daemon(script) as daemon:
        for folder in ("sub", ".git"):
            (daemon.work / folder).mkdir()
        (daemon.work / "sub" / "changed").write_text("before")
        session = await daemon.session()
        first = await daemon.ask(session, "one")
        second = await daemon.ask(session, "two")
        third = await daemon.ask(session, "three")

        kinds = await daemon.kinds(first)
        assert kinds[-2:] == ["changed_files", "run.completed"]
        (event,) = await daemon.events(first, "changed_files")
        receipt = payload(event)
        assert receipt["schema"] == "mnote.ai_run_receipt.v1"
        assert receipt["hostRunId"] == first.host_run_id
        files = {file.pop("path"): file for file in receipt["changedFiles"]}
        assert files == {
            str(daemon.work / "made"): {
                "change": "created", "by": "agent", "before": None, "after": digest("one"),
                "certain": False,
            },
            str(daemon.work / "sub" / "changed"): {
                "change": "modified", "by": "agent", "before": None, "after": digest("two"),
                "certain": False,
            },
        }  # fmt: skip
        assert receipt["refresh"]["affectedParents"] == [str(daemon.work), str(daemon.work / "sub")]
        assert (receipt["conflict"], receipt["incomplete"]) == ("none", None)
        kept = (await daemon.run(second)).receipt
        assert kept is not None
        (again,) = kept.changed_files
        assert (again.change, again.before, again.after) == (
            "modified", digest("one"), digest("three")
        )  # fmt: skip
        assert (await daemon.run(third)).receipt is None
        assert await daemon.events(third, "changed_files") == []


async def test_what_the_daemon_writes_is_not_put_down_to_the_agent() -> None:
    """Its journal may stand below the folder of a session, as it does for one in a home."""
    script = "ON prompt\n    MARK ${DIR}/work/made\n    MSG working\n    GATE ${DIR}/go\n"
    async with running_daemon(script) as daemon:
        session = await daemon.session(cwd=str(daemon.state.parent))
        run = await daemon.send(session, "go on")
        while not await daemon.events(run, "message.delta"):
            await daemon.marked("work/made")
        daemon.open("go")
        run = await daemon.wait(run)

        (event,) = await daemon.events(run, "changed_files")
        paths = [file["path"] for file in payload(event)["changedFiles"]]
        assert str(daemon.work / "made") in paths
        assert not [path for path in paths if path.startswith(str(daemon.state))]


async def test_each_way_to_change_a_file_is_told_apart() -> None:
    """Through the host, by a command, by a tool call; a diff of the whole tells what it was."""
    shown = diff("tool.txt", "was", "is")
    script = f"""
ON prompt
    ASK fs/write_text_file {{"sessionId": "${{SESSION}}", "path": "${{DIR}}/work/fs.txt",
        "content": "a"}}
    ASK fs/write_text_file {{"sessionId": "${{SESSION}}", "path": "${{DIR}}/work/fs.txt",
        "content": "b"}}
    CALL c1 pending kind=edit
    MARK ${{DIR}}/work/tool.txt is
    UPD c1 completed content={shown}
    ASK terminal/create {{"sessionId": "${{SESSION}}", "command": "rm gone; echo x > shell"}}
    ASK terminal/wait_for_exit {{"sessionId": "${{SESSION}}", "terminalId": "${{TERMINAL}}"}}
"""
    async with running_daemon(script, host=ALLOWED) as daemon:
        (daemon.work / "tool.txt").write_text("was")
        (daemon.work / "gone").write_text("x")
        target = {"path": str(daemon.work / "fs.txt")}
        run = await daemon.ask(await daemon.session(), "go", editorTarget=target)

        receipt = run.receipt
        assert receipt is not None
        files = {
            file.path.rpartition("/")[2]: (file.change, file.by, file.before, file.after)
            for file in receipt.changed_files
        }
        assert files == {
            "fs.txt": ("created", "fs", None, digest("b")),
            "tool.txt": ("modified", "tool", digest("was"), digest("is")),
            "gone": ("deleted", "terminal", None, None),
            "shell": ("created", "terminal", None, digest("x\n")),
        }
        assert receipt.refresh.touches_current_file
        assert receipt.refresh.should_refresh_editor


async def test_a_write_over_somebody_elses_change_is_a_conflict() -> None:
    script = """
ON prompt
    ASK fs/read_text_file {"sessionId": "${SESSION}", "path": "${DIR}/work/a"}
    MARK ${DIR}/was-read
    GATE ${DIR}/go
    ASK fs/write_text_file {"sessionId": "${SESSION}", "path": "${DIR}/work/a", "content": "agent"}
"""
    async with running_daemon(script, host=ALLOWED) as daemon:
        (daemon.work / "a").write_text("first")
        run = await daemon.send(await daemon.session(), "go")
        await daemon.marked("was-read")
        (daemon.work / "a").write_text("by a person")
        daemon.open("go")
        ended = await daemon.wait(run)

        assert ended.receipt is not None
        assert ended.receipt.conflict == "external-change-conflict"


async def test_an_edit_whose_end_is_not_told_counts_where_it_was_seen() -> None:
    """As Hermes makes them: announced with the whole text, done, and never said to be done."""
    script = f"""
ON prompt
    CALL c1 kind=edit content={diff("made.txt", None, "x")}
    MARK ${{DIR}}/work/made.txt x
    CALL c2 kind=edit content={diff("not-made.txt", None, "x")}
"""
    async with running_daemon(script) as daemon:
        receipt = (await daemon.ask(await daemon.session(), "go")).receipt

        assert receipt is not None
        (file,) = receipt.changed_files
        assert (file.path, file.by, file.certain) == (str(daemon.work / "made.txt"), "tool", True)


async def test_what_a_person_changes_meanwhile_is_not_put_down_to_the_agent() -> None:
    """Only what the run is known to have left so is certain; a file that nobody named is not."""
    script = f"""
ON prompt
    CALL c1 pending kind=edit
    MARK ${{DIR}}/work/tool.txt is
    UPD c1 completed content={diff("tool.txt", "was", "is")}
    ASK fs/write_text_file {{"sessionId": "${{SESSION}}", "path": "${{DIR}}/work/kept",
        "content": "agent"}}
    ASK fs/write_text_file {{"sessionId": "${{SESSION}}", "path": "${{DIR}}/work/both",
        "content": "agent"}}
    MARK ${{DIR}}/done
    GATE ${{DIR}}/go
"""
    async with running_daemon(script, host=ALLOWED) as daemon:
        run = await daemon.send(await daemon.session(), "go")
        await daemon.marked("done")
        (daemon.work / "both").write_text("a person's")
        (daemon.work / "person").write_text("a person's")
        daemon.open("go")
        receipt = (await daemon.wait(run)).receipt

        assert receipt is not None
        files = {
            file.path.rpartition("/")[2]: (file.by, file.certain) for file in receipt.changed_files
        }
        assert files == {
            "tool.txt": ("tool", True),
            "kept": ("fs", True),
            "both": ("fs", False),
            "person": ("agent", False),
        }


async def test_what_was_only_said_is_not_told() -> None:
    """What a call names counts only where nobody has watched the folders."""
    script = f"""
ON prompt
    CALL c1 completed kind=edit content={diff("said.txt", None, "x")}
    CALL c2 completed kind=read locations=[{{"path":"read.txt"}}]
    CALL c3 failed kind=edit content={diff("failed.txt", None, "x")}
"""
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        watched = await daemon.ask(session, "one")
        (daemon.work / "said.txt").write_text("x")
        daemon.configure(files={"watch": False})
        await daemon.client.reload()
        believed = await daemon.ask(session, "two")

        assert watched.receipt is None
        assert believed.receipt is not None
        (file,) = believed.receipt.changed_files
        assert (file.path, file.change, file.by) == (
            str(daemon.work / "said.txt"), "created", "tool"
        )  # fmt: skip
        assert believed.receipt.incomplete == "the folders were not watched"


async def test_a_run_of_unknown_outcome_tells_what_it_has_touched() -> None:
    script = """
ON prompt
    MARK ${DIR}/work/touched x
    KILL
"""
    async with running_daemon(script) as daemon:
        run: Any = await daemon.ask(await daemon.session(), "go")

        assert run.status == "interrupted"
        assert run.recovery.files_touched == [str(daemon.work / "touched")]


async def test_nothing_is_watched_while_nothing_runs() -> None:
    """The descriptors of a daemon at rest are those it had before."""
    script = "ON prompt\n    MARK ${DIR}/work/made x\n"
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "one")
        before = daemon.descriptors()
        for number in range(3):
            await daemon.ask(session, f"more {number}")

        # Something of the first may have been open still when they were counted.
        await eventually(lambda: daemon.descriptors() <= before)


async def test_many_that_watch_one_folder_leave_the_daemon_time_for_its_clients() -> None:
    """A tree of folders is made where twenty runs are at work: whoever asks is answered at once."""
    script = "ON prompt\n    MSG working\n    GATE ${DIR}/go\n    MSG done\n"
    async with running_daemon(script) as daemon:
        runs = [await daemon.send(await daemon.session(), f"run {n}") for n in range(20)]
        for run in runs:
            await daemon.until(run.session_id, lambda seen: seen.status == "running", "it runs")
        made = anyio.Event()

        def make() -> None:
            for number in range(200):
                folder = daemon.work / str(number) / "a" / "b"
                folder.mkdir(parents=True)
                (folder / "file").write_text("x")

        async def fill() -> None:
            await anyio.to_thread.run_sync(make)
            made.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fill)
            answered = 0
            while not made.is_set() or answered < 20:
                with anyio.fail_after(5):
                    await daemon.client.ping()
                answered += 1
        daemon.open("go")
        for run in runs:
            assert (await daemon.wait(run)).status == "completed"
