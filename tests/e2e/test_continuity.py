"""Does the agent remember: the ladder of resume, load, cold and new, and what is said of it."""

import os
import signal
import sys
from pathlib import Path

from acphost.wire.host import Run
from tests.support import slow_reads
from tests.support.daemon import Daemon, facts, payload, running_daemon

LOADS = 'INIT {"agentCapabilities": {"sessionCapabilities": {"resume": null}}}\n'
FORGETS = """
INIT {"agentCapabilities": {"loadSession": null, "sessionCapabilities": {"resume": null}}}
"""


async def second_life(daemon: Daemon, script: str, first: str = "hi") -> tuple[str, Run]:
    """A session with one turn, its agent killed, and a second turn with another script."""
    session = await daemon.session()
    await daemon.ask(session, first)
    daemon.rewrite(script)
    os.kill(daemon.launches()[-1], signal.SIGKILL)
    await daemon.has_event(session, "binding.lost")
    return session, await daemon.ask(session, "again")


async def test_load_replays_and_is_not_shown_again() -> None:
    """Replay is counted and kept as evidence; commands and usage in it apply; new words are new."""
    script = """
INIT {"agentCapabilities": {"sessionCapabilities": {"resume": null}}}
ON prompt "hi"
    MSG "one"
    CALL c1
    UPD c1 completed
ON load
    USER "hi"
    MSG "one"
    CALL c1
    UPD c1 completed
    UPDATE {"sessionUpdate": "available_commands_update", "availableCommands": []}
    UPDATE {"sessionUpdate": "usage_update", "used": 1, "size": 2}
    ANSWER {}
    MSG "one"
ON prompt
    MSG "two"
"""
    async with running_daemon(script) as daemon:
        session, after = await second_life(daemon, script)

        assert after.continuity == "replay_seen"
        said = [payload(event)["content"]["text"]
                for event in await daemon.history(session, "message.delta")]  # fmt: skip
        assert said == ["one", "two"]
        replay = [event for event in await daemon.history(session, "evidence")
                  if facts(event).get("evidence") == "adapter_replay"]  # fmt: skip
        assert [facts(event)["originalKind"] for event in replay] == [
            "message.user",
            "message.delta",
            "tool.started",
            "tool.completed",
            "message.delta",
        ]
        assert len(await daemon.history(session, "session.commands.updated")) == 1
        assert len(await daemon.history(session, "usage.updated")) == 1
        (loaded,) = await daemon.history(session, "binding.loaded")
        assert payload(loaded)["replayCount"] in (4, 5)  # the tail may come before we look
        status = await daemon.status(session)
        assert (status.mode, status.continuity.code) == ("replay_seen", "continuous")
        assert status.acp is not None
        assert status.acp.load_status == "loaded"
        assert status.acp.replay_message_count == payload(loaded)["replayCount"]
        assert status.acp.replay_seq is not None
        assert status.acp.acp_session_id == after.acp_session_id


async def test_a_replay_behind_the_answer_is_no_news_either() -> None:
    """Answered with null, told afterwards: the transcript is what was said, once."""
    script = (
        LOADS
        + """
ON prompt "hi"
    MSG "one"
ON load
    BATCH
        ANSWER null
        USER "hi"
        MSG "one"
ON prompt
    MSG "two"
"""
    )
    async with running_daemon(script) as daemon:
        session, after = await second_life(daemon, script)

        assert after.continuity in ("loaded", "replay_seen")
        told = await daemon.history(session, "message.user", "message.delta")
        assert [event.kind for event in told] == ["message.user", "message.delta"] * 2
        assert await daemon.text(after) == "two"
        assert len(await daemon.history(session, "evidence")) == 2


async def test_load_without_any_replay() -> None:
    """The agent remembers in silence: loaded, and nothing stands in the journal twice."""
    script = LOADS + "ON load\n    ANSWER {}\nON prompt\n    RECALL first\n"
    async with running_daemon(script) as daemon:
        session, after = await second_life(daemon, script)

        assert after.continuity == "loaded"
        assert await daemon.text(after) == "hi"
        assert await daemon.history(session, "evidence") == []


async def test_resume_comes_before_load() -> None:
    """Who offers `session/resume` is asked for that; nothing is replayed."""
    async with running_daemon("ON prompt\n    RECALL first\n") as daemon:
        session, after = await second_life(daemon, "ON prompt\n    RECALL first\n")

        assert after.continuity == "resumed"
        assert await daemon.text(after) == "hi"
        assert daemon.heard("session/load") == []
        assert len(await daemon.history(session, "binding.resumed")) == 1


async def test_resume_fails_and_load_works() -> None:
    """Each rung is tried once; the one that failed is told."""
    script = 'ON resume\n    FAIL -32601 "no such method"\nON prompt\n    RECALL first\n'
    async with running_daemon(script) as daemon:
        session, after = await second_life(daemon, script)

        assert after.continuity == "replay_seen"
        (failed,) = await daemon.history(session, "binding.load_failed")
        assert payload(failed)["loadStatus"] == "unsupported"
        assert await daemon.text(after) == "hi"


async def test_an_agent_that_cannot_load_is_told_the_history() -> None:
    """Cold: one delimited block ahead of a clean prompt, and its size in the status."""
    script = FORGETS + 'ON prompt "hi"\n    MSG "one"\nON prompt\n    MSG "two"\n'
    async with running_daemon(script) as daemon:
        session, after = await second_life(daemon, script)

        assert after.continuity == "cold_resumed"
        first, second = daemon.heard("session/prompt")
        assert len(first["params"]["prompt"]) == 1
        packet, prompt = second["params"]["prompt"]
        assert prompt == {"type": "text", "text": "again"}
        assert "hi" in packet["text"]
        assert "one" in packet["text"]
        status = await daemon.status(session)
        assert status.mode == "cold_resumed"
        assert status.continuity.code == "history_fallback"
        assert status.cold_resume.packet_bytes == len(packet["text"].encode())
        assert status.acp is not None
        assert status.acp.supports_session_load is False
        assert status.acp.load_status == "unsupported"
        (said,) = await daemon.events(after, "message.user")
        assert payload(said)["content"] == [prompt]
        third = await daemon.ask(session, "third")
        assert len(daemon.heard("session/prompt")[-1]["params"]["prompt"]) == 1
        assert third.continuity == "native_live"


async def test_the_packet_is_bounded() -> None:
    """Only the latest turns that fit; that it was cut, and why, is in status and journal."""
    script = FORGETS + "ON prompt\n    BIG 11K y\n"
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        for n in range(7):
            await daemon.ask(session, f"turn {n}")
        os.kill(daemon.launches()[-1], signal.SIGKILL)
        await daemon.has_event(session, "binding.lost")
        await daemon.ask(session, "again")

        packet = daemon.heard("session/prompt")[-1]["params"]["prompt"][0]["text"]
        assert len(packet) < 64 * 1024
        assert "turn 6" in packet
        assert "turn 0" not in packet
        status = await daemon.status(session)
        assert status.cold_resume.truncated_reason
        (cold,) = await daemon.history(session, "binding.cold_resumed")
        assert payload(cold)["truncatedReason"] == status.cold_resume.truncated_reason


async def test_a_session_that_the_agent_has_lost() -> None:
    """Said by an error: one `load_failed` with the error whole, then the history is told."""
    script = LOADS + 'ON load\n    FAIL -32002 "Resource not found"\n'
    async with running_daemon(script) as daemon:
        session, after = await second_life(daemon, script)

        assert (after.status, after.continuity) == ("completed", "cold_resumed")
        (failed,) = await daemon.history(session, "binding.load_failed")
        assert payload(failed)["loadStatus"] == "not_found"
        assert payload(failed)["agentError"]["message"] == "Resource not found"
        status = await daemon.status(session)
        assert status.continuity.reason is not None
        assert "Resource not found" in status.continuity.reason


async def test_a_load_that_fails_for_another_reason() -> None:
    """`Internal error`: failed, not lost; the next rung is taken all the same."""
    data = '{"details": "Invalid session identifier"}'
    script = LOADS + f'ON load\n    FAIL -32603 "Internal error" {data}\n'
    async with running_daemon(script) as daemon:
        session, after = await second_life(daemon, script)

        assert after.continuity == "cold_resumed"
        (failed,) = await daemon.history(session, "binding.load_failed")
        assert payload(failed)["loadStatus"] == "failed"


async def test_a_load_that_is_never_answered() -> None:
    """Silence ends it; an agent that goes on talking may take longer than the limit."""
    slow = (
        LOADS
        + """
ON load
    REPEAT 20
        MSG "word "
        PAUSE 100
    ANSWER {}
"""
    )
    mute = LOADS + "ON load\n    STAY\n"
    async with running_daemon(slow, agent={"load_timeout": 1.5}) as daemon:
        session, after = await second_life(daemon, slow)
        assert after.continuity == "replay_seen"
        daemon.rewrite(mute)
        os.kill(daemon.launches()[-1], signal.SIGKILL)
        await daemon.until(session, lambda seen: seen.status == "idle", "idle")
        await daemon.ask(session, "third")
        last = await daemon.ask(session, "fourth")

        assert last.status == "completed"
        assert len(await daemon.history(session, "binding.load_failed")) <= 1


async def test_an_agent_that_dies_of_the_load() -> None:
    """It is started again a bounded number of times; then the conversation goes on without it."""
    script = LOADS + "ON load\n    EXIT 9\n"
    async with running_daemon(script) as daemon:
        session, after = await second_life(daemon, script)

        assert (after.status, after.continuity) == ("completed", "cold_resumed")
        assert len(daemon.launches()) <= 4
        assert 1 <= len(await daemon.history(session, "binding.load_failed")) <= 2


async def test_a_load_that_pretended() -> None:
    """`{}`, and then a refusal without a word: the run says that the session was lost."""
    script = LOADS + 'ON load\n    ANSWER {}\nON prompt "again"\n    END refusal\n'
    async with running_daemon(script) as daemon:
        session, after = await second_life(daemon, script)

        assert (after.status, after.error_code) == ("failed", "agent_session_lost")
        third = await daemon.ask(session, "third")
        assert (third.status, third.continuity) == ("completed", "cold_resumed")


async def test_nothing_to_load_and_nothing_to_tell() -> None:
    """A first turn has no context to lose: new session, `no_context`."""
    async with running_daemon("") as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")
        status = await daemon.status(session)

        assert (status.mode, status.continuity.code) == ("new_session", "no_context")


async def test_where_the_agent_lives_on_its_session_is_not_loaded() -> None:
    """Another session's death is none of ours; a live binding is never loaded."""
    async with running_daemon("", agent={"process": "per_session"}) as daemon:
        one, two = await daemon.session(), await daemon.session()
        await daemon.ask(one, "hi")
        await daemon.ask(two, "hi")
        os.kill(daemon.launches()[0], signal.SIGKILL)
        await daemon.has_event(one, "binding.lost")
        after = await daemon.ask(two, "again")

        assert after.continuity == "native_live"
        assert daemon.heard("session/load") + daemon.heard("session/resume") == []


async def test_mcp_servers_go_along_on_every_way() -> None:
    """The same list on new and load, in the wire's shape; its secrets are hidden from clients."""
    server = {
        "name": "files",
        "command": "/bin/true",
        "args": ["-x"],
        "env": [{"name": "TOKEN", "value": "hush-hush"}],
    }
    script = "EXPECT mcp-arrays\n" + LOADS
    async with running_daemon(script) as daemon:
        session = await daemon.session(mcpServers=[server])
        await daemon.ask(session, "hi")
        await daemon.restart()
        await daemon.ask(session, "again")

        (new,), (load,) = daemon.heard("session/new"), daemon.heard("session/load")
        assert new["params"]["mcpServers"] == load["params"]["mcpServers"] == [server]
        assert "hush-hush" not in daemon.log()
        journal = daemon.journal.path
        for file in (journal, journal.with_name(journal.name + "-wal")):
            assert not file.exists() or b"hush-hush" not in file.read_bytes()
        secrets = list((daemon.state / "secrets").iterdir())
        assert [file.stat().st_mode & 0o777 for file in secrets] == [0o600]


async def test_a_history_of_fifty_thousand_items_may_take_its_time() -> None:
    """What limits a load is silence: this one takes longer than that, and is counted exactly."""
    replay = (
        LOADS
        + """
ON load
    REPEAT 10
        FLOOD 5000
        PAUSE 100
    ANSWER {}
"""
    )
    async with running_daemon(replay, agent={"load_timeout": 5}) as daemon:
        session, after = await second_life(daemon, replay)

        assert after.continuity == "replay_seen"
        status = await daemon.status(session)
        assert status.acp is not None
        assert status.acp.replay_message_count == 50_000
        assert len(await daemon.history(session, "binding.loaded")) == 1
        assert (await daemon.get(session)).status == "idle"


async def test_one_folder_under_two_names_is_one_workspace(tmp_path: Path) -> None:
    """Told apart by the real path; the agent is sent the name that the session was made with."""
    folder, link = tmp_path / "real", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    async with running_daemon(LOADS) as daemon:
        by_name, by_link = [await daemon.session(cwd=str(each)) for each in (folder, link)]
        one, two = await daemon.get(by_name), await daemon.get(by_link)
        assert one.workspace_id == two.workspace_id
        assert (one.cwd, two.cwd) == (str(folder), str(link))
        await daemon.ask(by_link, "hi")
        os.kill(daemon.launches()[-1], signal.SIGKILL)
        await daemon.ask(by_link, "again")

        cwds = {each["params"]["cwd"] for method in ("session/new", "session/load")
                for each in daemon.heard(method)}  # fmt: skip
        assert cwds == {str(link)}


async def test_another_session_instead_of_an_error() -> None:
    """A load that is answered with a new id has lost the session: told once, then the history."""
    script = LOADS + 'ON load\n    ANSWER {"sessionId": "stranger"}\n'
    async with running_daemon(script) as daemon:
        session, after = await second_life(daemon, script)

        assert after.continuity == "cold_resumed"
        (failed,) = await daemon.history(session, "binding.load_failed")
        assert payload(failed)["loadStatus"] == "not_found"
        assert "stranger" in payload(failed)["reason"]
        assert payload(failed)["response"] == {"sessionId": "stranger"}
        assert [each["params"] for each in daemon.heard("session/close")] == [
            {"sessionId": "stranger"}
        ]


async def test_a_replay_that_is_not_whole_is_said_to_be_that() -> None:
    """What was told again is compared with the journal, which stays the history."""
    script = LOADS + 'ON load\n    USER "hi"\n    MSG "one"\n    ANSWER {}\n'
    async with running_daemon(script) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")
        await daemon.ask(session, "and more")
        os.kill(daemon.launches()[-1], signal.SIGKILL)
        await daemon.has_event(session, "binding.lost")
        await daemon.ask(session, "again")

        (loaded,) = await daemon.history(session, "binding.loaded")
        assert payload(loaded)["userMessages"] == 1
        assert payload(loaded)["turnsInJournal"] == 2
        status = await daemon.status(session)
        assert status.continuity.code == "continuous"
        assert status.continuity.reason == "the agent told 1 of 2 turns again"


async def test_additional_directories_are_told_where_they_are_taken() -> None:
    """All of them with new and load; who does not take them is not sent any, and shown."""
    takes = '"additionalDirectories": {}, "resume": null'
    script = f'INIT {{"agentCapabilities": {{"sessionCapabilities": {{{takes}}}}}}}\n'
    async with running_daemon(script, others={"plain": ""}) as daemon:
        more = [str(daemon.folder)]
        session = await daemon.session(additionalDirectories=more)
        await daemon.ask(session, "hi")
        os.kill(daemon.launches()[-1], signal.SIGKILL)
        await daemon.has_event(session, "binding.lost")
        await daemon.ask(session, "again")
        for method in ("session/new", "session/load"):
            assert daemon.heard(method)[0]["params"]["additionalDirectories"] == more
        plain = await daemon.session("plain", additionalDirectories=more)
        await daemon.ask(plain, "hi")
        assert "additionalDirectories" not in daemon.heard("session/new", "plain")[0]["params"]
        reason = (await daemon.get(plain)).status_reason
        assert reason is not None
        assert "additional directories" in reason
        (started,) = await daemon.history(plain, "binding.started")
        assert payload(started)["remarks"] == [reason]


async def test_an_agent_that_dies_as_soon_as_it_has_loaded_leaves_no_binding_behind() -> None:
    """Its answer is still being looked at when it is gone: what comes of it is not called live."""

    def prepare(daemon: Daemon) -> None:
        daemon.wrapper = [sys.executable, slow_reads.__file__, "2", *daemon.wrapper]

    async with running_daemon(LOADS, prepare=prepare) as daemon:
        _, again = await second_life(daemon, LOADS + "ON load\n    ANSWER\n    EXIT 7\n")

        assert (again.status, again.continuity) == ("completed", "cold_resumed")
        bindings = daemon.journal.query("SELECT mode FROM bindings WHERE status = 'live'")
        assert [binding["mode"] for binding in bindings] == ["cold_resumed"]
