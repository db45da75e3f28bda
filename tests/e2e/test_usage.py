"""What was used: by context, turn and session; exact over restarts; unknown where unknown."""

import json
import os
import signal

import pytest

from acphost.errors import InvalidParamsError
from tests.support.daemon import eventually, payload, running_daemon
from tests.support.profiles import hosted
from tests.support.terminal import acphost

COUNTS = """
ON prompt "one"
    UPDATE {"sessionUpdate": "usage_update", "used": 900, "size": 128000}
    END end_turn usage={"inputTokens": 1000, "outputTokens": 10, "totalTokens": 1010}
ON prompt "two"
    UPDATE {"sessionUpdate": "usage_update", "used": 1500, "size": 128000, "cost": {"amount": 0.03979, "currency": "USD"}}
    END end_turn usage={"inputTokens": 2500, "outputTokens": 25, "totalTokens": 2525}
ON prompt "leave"
    UPDATE {"sessionUpdate": "usage_update", "used": 1700, "size": 128000}
    STAY
"""  # noqa: E501


@pytest.mark.parametrize(
    ("counts", "prompt", "last"), [("cumulative", 2500, 1500), ("per_turn", 3500, 2500)]
)
async def test_context_turn_and_session_are_kept_apart(counts: str, prompt: int, last: int) -> None:
    """As the agent's answers are configured to be read; the context is never the session."""
    async with running_daemon(COUNTS, agent={"usage": counts}) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "one")
        second = await daemon.ask(session, "two")
        usage = await daemon.client.usage(session)
        of_run = await daemon.client.usage(run_id=second.host_run_id)
        status = (await daemon.status(session)).usage

        assert (usage.context.used, usage.context.size) == (1500, 128_000)
        assert usage.session.prompt == prompt
        assert usage.run.prompt == of_run.run.prompt == last
        assert usage.session.cost == status.cost == "0.03979 USD"
        assert (status.context.used, status.session_tokens) == (1500, usage.session.tokens)
        assert usage.run.reasoning is None
        assert usage.balance is None
        (ended,) = await daemon.events(second, "run.completed")
        assert payload(ended)["usage"]["run"]["prompt"] == last
        assert payload(ended)["usage"]["session"]["prompt"] == prompt
        assert payload(ended)["response"]["usage"]["inputTokens"] == 2500


async def test_it_is_known_after_kill_9() -> None:
    """Of daemon and agent, in mid-turn: the sums of before, and the last context of the turn."""
    async with running_daemon(COUNTS, agent={"usage": "cumulative"}) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "one")
        await daemon.send(session, "leave")
        await eventually(lambda: [each.kind for each in daemon.seen].count("usage.updated") == 2)
        await daemon.restart()
        usage = await daemon.client.usage(session)
        assert (usage.session.tokens, usage.context.used) == (1010, 1700)

        await daemon.ask(session, "two")
        usage = await daemon.client.usage(session)
        # A new process counts from zero: nothing is taken off.
        assert usage.session.tokens == 1010 + 2525
        assert usage.session.carryover == 1010


async def test_a_session_that_nothing_is_known_of() -> None:
    """Null, never zero; and one of session and run is named."""
    async with running_daemon() as daemon:
        session = await daemon.session()
        await daemon.ask(session, "x")
        usage = await daemon.client.usage(session)
        assert usage.session.tokens is None
        assert usage.run.total is None
        assert usage.context.used is None
        assert usage.session.cost is None
        with pytest.raises(InvalidParamsError):
            await daemon.client.usage()


async def test_hermes_counts_its_whole_life() -> None:
    """Differences; zero after a model was set; all of it after a new process."""
    async with hosted("hermes") as daemon:
        session = await daemon.session()
        await daemon.ask(session, "say 1")
        await daemon.ask(session, "say 2")
        usage = await daemon.client.usage(session)
        assert (usage.session.tokens, usage.run.total) == (21454, 10727)

        failed = await daemon.ask(session, "http 500")
        assert (await daemon.client.usage(run_id=failed.host_run_id)).run.total is None

        os.kill(daemon.launches()[0], signal.SIGKILL)
        await daemon.has_event(session, "binding.lost")
        await daemon.ask(session, "say 3")
        usage = await daemon.client.usage(session)
        assert usage.session.tokens == 3 * 10727
        assert usage.session.carryover == 2 * 10727


async def test_reasonix_tells_only_by_its_status() -> None:
    """No `usage` anywhere else; the turn's figures, added up."""
    async with hosted("reasonix") as daemon:
        session = await daemon.session()
        first = await daemon.ask(session, "say 1")
        await daemon.ask(session, "say 2")
        usage = await daemon.client.usage(session)

        assert (await daemon.client.usage(run_id=first.host_run_id)).run.total == 4882
        assert usage.session.tokens == 2 * 4882
        assert usage.context.used is None
        assert usage.session.cost is None


async def test_the_command_shows_it() -> None:
    """`acphost usage`, of all sessions and of one, and in `status`."""
    async with running_daemon(COUNTS) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "one")
        listed = await acphost(daemon.socket, "usage")
        shown = await acphost(daemon.socket, "usage", session)
        told = json.loads((await acphost(daemon.socket, "usage", session, "--json")).out)
        status = await acphost(daemon.socket, "status", session)

        assert "1010" in listed.out
        assert "900 of 128000 tokens" in listed.out
        assert "1010 (prompt 1000, completion 10)" in shown.out
        assert "cost       unknown" in shown.out
        assert told["schema"] == "mnote.page_ai_usage_projection.v1"
        assert "tokens     1010, 1010 of them last" in status.out
