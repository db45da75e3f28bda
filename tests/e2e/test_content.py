"""What a prompt may hold, and what goes with it."""

import pytest

from acphost.errors import UnsupportedContentError
from acphost.wire.host import Run
from tests.support.daemon import Daemon, facts, payload, running_daemon

PLAIN = 'INIT {"agentCapabilities": {"promptCapabilities": null}}\n'
IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}
INLINE = {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}


async def send(daemon: Daemon, session: str, *blocks: object) -> Run:
    return await daemon.client.create_run(blocks, session_id=session)


async def test_what_an_agent_does_not_take_is_refused_before_it_queues() -> None:
    """An agent at hand is known: the request itself is refused, with the place of the block."""
    async with running_daemon(PLAIN) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hi")
        with pytest.raises(UnsupportedContentError, match=r"no images - at `\$.prompt\[0\]`"):
            await send(daemon, session, IMAGE)

        assert len((await daemon.client.list_runs()).items) == 1
        assert daemon.prompts() == ["hi"]


async def test_an_agent_that_is_not_there_yet_is_asked_first() -> None:
    """The run fails unsent, the next one is not held back by it."""
    async with running_daemon(PLAIN) as daemon:
        session = await daemon.session()
        run = await send(daemon, session, IMAGE)
        after = await daemon.ask(session, "words")

        failed = await daemon.wait(run)
        assert (failed.status, failed.error_code) == ("failed", "unsupported_content")
        assert failed.started_at is None
        assert after.status == "completed"
        assert daemon.prompts() == ["words"]
        assert (await daemon.get(session)).status == "idle"


async def test_an_embedded_text_is_sent_as_text() -> None:
    """The journal keeps what was said; how it was sent stands beside it."""
    async with running_daemon(PLAIN) as daemon:
        session = await daemon.session()
        run = await daemon.wait(await send(daemon, session, INLINE))

        assert run.status == "completed"
        (block,) = daemon.heard("session/prompt")[0]["params"]["prompt"]
        assert block["type"] == "text"
        assert "inside" in block["text"]
        (said,) = await daemon.events(run, "message.user")
        assert payload(said)["content"] == [INLINE]
        assert facts(said)["simplified"] == [0]


async def test_trace_context_goes_on_and_meta_changes_nothing() -> None:
    """Of `_meta` only the reserved keys reach the agent, and neither side's can move a request."""
    script = """
ON prompt
    NOTIFY session/update {"sessionId": "${SESSION}", "_meta": {"sessionId": "other"}, "update": {
        "sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "ok"},
        "_meta": {"sessionUpdate": "plan", "content": {"text": "evil"}}}}
"""
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    async with running_daemon(script) as daemon, daemon.wire() as wire:
        session = await daemon.session()
        other = await daemon.session()
        meta = {**trace, "sessionId": other, "cwd": "/", "__class__": {"x": 1}}
        told = await wire.result(
            "run/create", {"requestId": "r", "sessionId": session, "text": "hi", "_meta": meta}
        )
        run = await daemon.client.wait(told["hostRunId"])

        assert run.session_id == session
        (asked,) = daemon.heard("session/prompt")
        assert asked["params"]["_meta"] == trace
        assert await daemon.text(run) == "ok"
        (created,) = await daemon.events(run, "run.created")
        assert payload(created)["_meta"] == meta
        assert [event.kind for event in await daemon.history(other)] == ["session.created"]


async def test_trace_context_of_a_prompt_that_waits_outlives_the_daemon() -> None:
    """It was accepted with it, so it is sent with it, whoever sends it."""
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    async with running_daemon() as daemon:
        session = await daemon.session()
        await daemon.client.queue_hold(session)
        waiting = await daemon.send(session, "hi", _meta={**trace, "cwd": "/"})
        plain = await daemon.send(session, "there")
        await daemon.restart()
        await daemon.client.queue_release(session)
        for run in (waiting, plain):
            assert (await daemon.wait(run)).status == "completed"
        first, second = daemon.heard("session/prompt")
        assert first["params"]["_meta"] == trace
        assert "_meta" not in second["params"]
