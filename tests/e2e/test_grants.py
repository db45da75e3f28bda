"""Folders beside those of a session: given and taken back by a person, and kept."""

import json
from typing import Any

import pytest

from acphost.errors import InvalidParamsError
from tests.support.daemon import Daemon, running_daemon

SCRIPT = """
ON prompt "read"
    ASK fs/read_text_file {"sessionId": "${SESSION}", "path": "${DIR}/extra/a"}
    MSG ${ANSWER}
ON prompt "write"
    ASK fs/write_text_file {"sessionId": "${SESSION}", "path": "${DIR}/extra/b", "content": "x"}
    MSG ${ANSWER}
"""
ALLOWED = {"files": {"write": "allow"}}


def prepare(daemon: Daemon) -> None:
    extra = daemon.folder / "extra"
    extra.mkdir()
    (extra / "a").write_text("beyond")


async def answer(daemon: Daemon, session: str, text: str) -> Any:  # noqa: ANN401  it is JSON
    """What the host answered to the agent, or the word of its error."""
    run = await daemon.ask(session, text, requestId=f"{text} {len(daemon.prompts())}")
    told = json.loads(await daemon.text(run))
    return told["result"] if "result" in told else told["error"]["data"]["code"]


async def test_a_granted_folder_is_open_until_it_is_taken_back() -> None:
    """To read only, or also to write; counted from the next request on, and after a restart."""
    async with running_daemon(SCRIPT, host=ALLOWED, prepare=prepare) as daemon:
        extra, session = str(daemon.folder / "extra"), await daemon.session()
        before = await answer(daemon, session, "read")
        await daemon.client.add_grant(extra, access="read")
        reading = await answer(daemon, session, "read"), await answer(daemon, session, "write")
        roots = (await daemon.status(session)).roots
        await daemon.restart()
        kept = await answer(daemon, session, "read")
        grant = await daemon.client.add_grant(extra)
        writing = await answer(daemon, session, "write")
        listed = (await daemon.client.list_grants()).items
        await daemon.client.remove_grant(grant.grant_id)
        after = await answer(daemon, session, "read")

        assert before == "path_not_granted"
        assert reading == ({"content": "beyond"}, "path_not_granted")
        assert (roots.write, roots.read_only) == (1, 1)
        assert kept == {"content": "beyond"}
        assert writing == {}
        assert [(each.path, each.access) for each in listed] == [(extra, "write")]
        assert after == "path_not_granted"
        assert (daemon.folder / "extra" / "b").read_text() == "x"


async def test_grants_belong_to_an_actor() -> None:
    """One actor's neither show to another nor open anything in its sessions."""
    async with running_daemon(SCRIPT, prepare=prepare) as daemon:
        async with daemon.connect(actor_id="other") as other:
            grant = await other.add_grant(str(daemon.folder / "extra"))
            with pytest.raises(InvalidParamsError, match=r"\$\.grantId"):
                await daemon.client.remove_grant(grant.grant_id)

        assert (await daemon.client.list_grants()).items == []
        assert await answer(daemon, await daemon.session(), "read") == "path_not_granted"


async def test_only_a_folder_that_exists_can_be_granted() -> None:
    async with running_daemon() as daemon:
        for path in ("relative", "/no/such/folder", "/etc/passwd"):
            with pytest.raises(InvalidParamsError, match=r"\$\.path"):
                await daemon.client.add_grant(path)


async def test_an_envelope_tells_the_folders_that_were_allowed() -> None:
    async with running_daemon(SCRIPT, prepare=prepare) as daemon, daemon.wire() as wire:
        extra = str(daemon.folder / "extra")
        await daemon.client.add_grant(extra)
        run = await daemon.ask(await daemon.session(), "hi")
        params = {"hostRunId": run.host_run_id, "include": ["envelope"]}
        envelope = (await wire.result("run/get", params))["envelope"]

        assert envelope["allowedRoots"] == [str(daemon.work), extra]
