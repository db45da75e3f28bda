"""A request under its id is made once, whoever repeats it, whenever."""

import anyio
import pytest

from acphost.errors import (
    AgentNotFoundError,
    ConflictError,
    InvalidParamsError,
    RunNotFoundError,
    SessionNotFoundError,
)
from acphost.wire.host import Run
from tests.support.daemon import Daemon, running_daemon


async def create(daemon: Daemon, **params: object) -> Run:
    """run/create as given."""
    return await daemon.client.request("run/create", params, Run)


async def test_a_repeat_returns_the_run_that_exists() -> None:
    """While it waits, after it has ended, after a restart: the same run, one `run.created`."""
    async with running_daemon("") as daemon:
        session = await daemon.session()
        first = await create(daemon, requestId="r1", sessionId=session, text="hi")
        again = await create(daemon, requestId="r1", sessionId=session, text="hi")
        await daemon.wait(first)
        later = await create(daemon, requestId="r1", sessionId=session, text="hi")
        await daemon.restart()
        last = await create(daemon, requestId="r1", sessionId=session, text="hi")

        assert {run.host_run_id for run in (again, later, last)} == {first.host_run_id}
        assert later.status == "completed"
        assert daemon.prompts() == ["hi"]
        assert len(await daemon.history(session, "run.created")) == 1


async def test_a_text_equals_one_text_block() -> None:
    """`text` and `prompt` are two ways to say the same."""
    block = {"text": "hi", "type": "text"}
    async with running_daemon("") as daemon:
        session = await daemon.session()
        first = await create(daemon, requestId="r1", sessionId=session, text="hi")
        again = await create(daemon, requestId="r1", sessionId=session, prompt=[block])

        assert again.host_run_id == first.host_run_id
        await daemon.wait(first)


async def test_another_prompt_refs_or_target_under_the_same_id_is_a_conflict() -> None:
    """Nothing of it is accepted; the run that exists is named."""
    async with running_daemon("") as daemon:
        session = await daemon.session()
        same = {"requestId": "r1", "sessionId": session}
        first = await create(daemon, **same, text="hi")
        for other in (
            {"text": "ho"},
            {"text": "hi", "contextRefs": ["current_page"]},
            {"text": "hi", "editorTarget": {"line": 1}},
            {"text": "hi", "runTargetSnapshot": {"hash": "x"}},
        ):
            with pytest.raises(ConflictError) as refused:
                await create(daemon, **same, **other)
            assert refused.value.details["hostRunId"] == first.host_run_id
        await daemon.wait(first)
        assert daemon.prompts() == ["hi"]


async def test_the_key_is_more_than_the_id() -> None:
    """Another session, document or actor makes another request of the same id."""
    async with running_daemon("") as daemon:
        one, two = await daemon.session(), await daemon.session()
        runs = [
            await create(daemon, requestId="r1", sessionId=one, text="hi"),
            await create(daemon, requestId="r1", sessionId=two, text="hi"),
            await create(daemon, requestId="r1", sessionId=one, text="hi", documentId="d"),
        ]
        async with daemon.connect(actor_id="somebody") as other:
            runs.append(await other.create_run("hi", session_id=one, request_id="r1"))

        assert len({run.host_run_id for run in runs}) == 4
        for run in runs:
            await daemon.wait(run)
        assert runs[3].actor_id == "somebody"


async def test_ten_at_once_make_one_run() -> None:
    """Also where the session is made along with it: one session, one run."""
    async with running_daemon("") as daemon:
        made: list[Run] = []

        async def send() -> None:
            async with daemon.connect() as client:
                made.append(
                    await client.create_run(
                        "hi", agent_id="fake", cwd=str(daemon.work), request_id="r1"
                    )
                )

        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(send)

        assert len({run.host_run_id for run in made}) == 1
        assert len((await daemon.client.list_sessions()).items) == 1
        await daemon.wait(made[0])
        assert daemon.prompts() == ["hi"]


WRONG: list[tuple[dict[str, object], str]] = [
    ({}, "prompt"),
    ({"text": ""}, "$.text"),
    ({"prompt": []}, "$.prompt"),
    ({"text": "a", "prompt": [{"type": "text", "text": "a"}]}, "$"),
    ({"prompt": [{"type": "text"}]}, "$.prompt[0]"),
    ({"prompt": [{"text": "no type"}]}, "$.prompt[0]"),
    ({"prompt": ["a"]}, "$.prompt[0]"),
    ({"text": "a", "editorTarget": {"pageText": "x"}}, "$.editorTarget.pageText"),
    ({"text": "a", "runTargetSnapshot": {"a": [{"evidence": 1}]}}, "$.runTargetSnapshot.a[0]"),
    ({"text": "a", "contextRefs": [1]}, "$.contextRefs[0]"),
    ({"text": "a", "holdAfter": "yes"}, "$.holdAfter"),
    ({"text": "a", "surprise": 1}, "surprise"),
]


async def test_wrong_requests_are_refused_with_their_path() -> None:
    """Nothing is made of them, not even a session."""
    async with running_daemon("") as daemon:
        session = await daemon.session()
        before = (await daemon.get(session)).last_seq
        for params, path in WRONG:
            with pytest.raises(InvalidParamsError) as refused:
                await create(daemon, requestId="r", sessionId=session, **params)
            assert path in str(refused.value), refused.value
        for wrong in ({}, {"agentId": "fake"}, {"cwd": "/tmp"}):
            with pytest.raises(InvalidParamsError):
                await create(daemon, requestId="r", text="a", **wrong)
        for cwd in ("relative", "/no/such/folder", "/etc/passwd", "/tmp\0"):
            with pytest.raises(InvalidParamsError) as refused:
                await create(daemon, requestId="r", text="a", agentId="fake", cwd=cwd)
            assert "$.cwd" in str(refused.value)
        with pytest.raises(AgentNotFoundError):
            await create(daemon, requestId="r", text="a", agentId="nobody", cwd="/tmp")
        with pytest.raises(SessionNotFoundError):
            await create(daemon, requestId="r", text="a", sessionId="sess_nobody")
        with pytest.raises(ConflictError):
            await create(daemon, requestId="r", text="a", sessionId=session, agentId="demo")
        with pytest.raises(RunNotFoundError):
            await daemon.client.cancel("run_nobody")

        assert (await daemon.get(session)).last_seq == before
        assert len((await daemon.client.list_sessions()).items) == 1
