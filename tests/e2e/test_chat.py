"""A plain chat model beside the agents: same queue, journal and stop; its memory is the journal."""

from collections.abc import Iterator

import anyio.to_thread
import pytest

from tests.support.daemon import Daemon, payload, running_daemon
from tests.support.model import Fail, Gate, ModelServer, Recall, Say, Think

SECRET = "sk-chat-secret-4711"


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(is_chat=True) as server:
        yield server


def chat(daemon: Daemon, model: ModelServer, **chat: object) -> None:
    """Have the agent `fake` be a chat with that model."""
    endpoint = {"base_url": model.url, "model": "stage", "api_key_env": "CHAT_TEST_KEY", **chat}
    daemon.environ["CHAT_TEST_KEY"] = SECRET
    # Where the tests run from a tree that is not installed, its program is found by this.
    own = {"runtime": "chat_only", "chat": endpoint, "env_pass": ["PYTHONPATH"]}
    daemon.configure(agent=own)


async def test_a_chat_streams_thinks_and_counts(model: ModelServer) -> None:
    """Its deltas are events like any agent's, and there is no ACP session to show."""
    tag = model.scene([Think("let me see"), Say("Good morning to you")])
    async with running_daemon(prepare=lambda made: chat(made, model)) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, f"hello {tag}")

        assert (run.error, run.status, run.continuity) == (None, "completed", "server_transcript")
        assert await daemon.text(run) == "Good morning to you"
        thoughts = await daemon.events(run, "thought.delta")
        assert "".join(payload(each)["content"]["text"] for each in thoughts) == "let me see"
        assert {each.source for each in thoughts} == {"chat_only"}
        (end,) = await daemon.events(run, "run.completed")
        assert payload(end)["response"]["usage"]["outputTokens"] > 0
        status = await daemon.status(session)
        assert (status.acp, status.mode) == (None, "server_transcript")
        assert status.chat is not None
        assert model.heard(tag)[0].authorization == f"Bearer {SECRET}"
        assert model.heard(tag)[0].tools == ()


async def test_it_remembers_by_the_journal_also_in_a_new_process(model: ModelServer) -> None:
    """Every prompt comes with what was said before, whatever died in between."""
    first, second = model.scene([Say("noted")]), model.scene([Recall()])
    async with running_daemon(prepare=lambda made: chat(made, model, system="Be short")) as daemon:
        session = await daemon.session()
        await daemon.ask(session, f"my number is 17 {first}")
        await daemon.restart()
        run = await daemon.ask(session, f"which was it {second}")

        assert f"my number is 17 {first}" in await daemon.text(run)
        heard = model.heard(second)[0]
        assert [message.role for message in heard.messages] == [
            "system", "user", "assistant", "user",
        ]  # fmt: skip
        assert heard.messages[2].text == "noted"


async def test_a_stop_stops_it_and_the_queue_goes_on(model: ModelServer) -> None:
    """What was said until then stays, and is part of what the next prompt comes with."""
    gate = Gate()
    first, second = model.scene([Say("one two "), gate, Say("three")]), model.scene([Recall()])
    async with running_daemon(prepare=lambda made: chat(made, model)) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, f"count {first}")
        waiting = await daemon.send(session, f"go on {second}")
        await anyio.to_thread.run_sync(gate.reached.wait)
        await daemon.cancel(run)

        assert (await daemon.wait(run)).status == "cancelled"
        assert (await daemon.wait(waiting)).status == "completed"
        assert model.heard(second)[0].messages[-2].text.startswith("one two")


async def test_a_short_trouble_is_tried_once_more(model: ModelServer) -> None:
    """One 500 is nobody's business; the answer comes."""
    tag = model.scene([Fail(500, times=1), Say("here I am")])
    async with running_daemon(prepare=lambda made: chat(made, model)) as daemon:
        run = await daemon.ask(await daemon.session(), f"hello {tag}")
        assert (run.status, await daemon.text(run)) == ("completed", "here I am")
        assert len(model.heard(tag)) == 2


@pytest.mark.parametrize(
    ("reply", "said", "tries"),
    [
        (Fail(500), "500", 2),
        (Fail(401), "CHAT_TEST_KEY", 1),
        (Say(""), "empty", 2),
    ],
)
async def test_what_stays_wrong_is_told_with_its_cure(
    model: ModelServer, reply: Fail | Say, said: str, tries: int
) -> None:
    """After one more try at most; the key is in no message, log or event."""
    tag = model.scene([reply])
    async with running_daemon(prepare=lambda made: chat(made, model)) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, f"hello {tag}")

        assert run.status == "failed"
        assert said in (run.error or "")
        assert len(model.heard(tag)) == tries
        await daemon.stop()
        everything = daemon.log().encode() + daemon.journal.path.read_bytes()
        assert SECRET.encode() not in everything


async def test_a_chat_without_an_endpoint_is_a_mistake_in_the_file() -> None:
    """Told with what is missing; the daemon runs without that file."""
    made = {"runtime": "chat_only"}
    async with running_daemon(prepare=lambda daemon: daemon.configure(agent=made)) as daemon:
        stats = await daemon.client.request("host/stats", None, dict)
        assert "names no endpoint" in str(stats["config"])
