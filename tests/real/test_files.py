"""Files of each real agent: written after a question, and told in the receipt of the run."""

import hashlib
from pathlib import Path

from acphost.wire.event import Kind
from tests.real.agents import RealAgent
from tests.real.hosting import hosting, payload
from tests.support.model import Echo, ModelServer


async def test_a_write_in_the_folder_is_asked_about_and_stands_in_the_receipt(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    """Whichever way an agent writes, through the host or by itself, the receipt has the file."""
    async with hosting(tmp_path, model, agent) as host:
        path = host.workspace / "sub" / "notes.txt"
        path.parent.mkdir()
        path.write_text("egret\n")
        talk = await host.talk(agent)
        # One of them writes only over what it has read.
        tag = model.scene([agent.read(path)], [agent.write(path, "heron\n")], [Echo()])
        run = await talk.begin(f"Write it down. {tag}")
        await talk.until(run, Kind.PERMISSION_REQUESTED)
        untouched = path.read_text()
        await talk.answer(run, "allow_once")
        turn = await talk.end(run)
        (told,) = turn.of(Kind.CHANGED_FILES)
        kept = (await host.client.run(run.host_run_id)).receipt

    assert untouched == "egret\n"
    assert path.read_text() == "heron\n"
    assert kept is not None
    (file,) = kept.changed_files
    assert (file.path, file.change) == (str(path), "modified")
    assert file.after == "sha256:" + hashlib.sha256(b"heron\n").hexdigest()
    assert file.by in ("fs", "tool")
    assert payload(told)["changedFiles"][0]["path"] == str(path)
