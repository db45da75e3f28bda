"""An agent that nobody here knows, with habits of its own: one file of traits and one table."""

from pathlib import Path

from acphost.wire.agents import AgentList, Severity
from tests.support.daemon import Daemon, payload, running_daemon
from tests.support.terminal import acphost

#: Its totals never begin anew, its errors of one kind end its session, it takes a stop that comes
#: before its first word for the next turn's, and without a nest it is not at home.
OWL = '''
from typing import ClassVar

from acphost.provider.traits import Traits, TurnFacts, Verdict
from acphost.wire.agents import Finding, Severity


class Owl(Traits):
    """What an owl really does."""

    provider = "acp_owl"
    provider_kind = "owl-acp"
    source: ClassVar[str] = "owl"
    process = "per_session"
    cancel_settle = 60.0
    usage_is_cumulative = True

    def judge_turn(self, facts: TurnFacts) -> Verdict:
        """It moults now and then: the session is good for nothing afterwards."""
        if facts.error is not None and "moulting" in str(facts.error):
            return Verdict("failed", "agent_wedged", "the owl moults", rebind="moulting")
        return super().judge_turn(facts)

    def inspect_home(self, env):
        if "OWL_NEST" in env:
            return []
        return [Finding(code="no_nest", severity=Severity.PROBLEM, message="it has no nest")]
'''
SCRIPT = """
ON prompt "one"
    END end_turn usage={"inputTokens": 100, "outputTokens": 10, "totalTokens": 110}
ON prompt "two"
    END end_turn usage={"inputTokens": 300, "outputTokens": 30, "totalTokens": 330}
ON prompt "moult"
    FAIL -32603 "moulting"
ON prompt "slow"
    MARK ${DIR}/asked
    GATE ${DIR}/go
    NOTE spoke
    MSG "who"
    GATE ${DIR}/never
"""


def with_owl(daemon: Daemon) -> None:
    traits_file(daemon).parent.mkdir()
    traits_file(daemon).write_text(OWL)
    env = {**daemon.agent_environ, "OWL_NEST": "oak"}
    daemon.configure(agent={"runtime": "owl", "env": env})


def traits_file(daemon: Daemon) -> Path:
    return daemon.folder / "runtimes" / "owl.py"


async def test_its_habits_are_honoured() -> None:
    """Usage read as it counts, a stop held until it speaks, its session replaced when it moults."""
    async with running_daemon(SCRIPT, prepare=with_owl) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "one")
        second = await daemon.ask(session, "two")
        assert (await daemon.client.usage(session)).session.tokens == 330
        assert (await daemon.client.usage(run_id=second.host_run_id)).run.total == 220

        stopped = await daemon.send(session, "slow")
        await daemon.marked("asked")
        await daemon.cancel(stopped)
        daemon.open("go")
        assert (await daemon.wait(stopped)).status == "cancelled"
        told = [line.get("note") or line.get("read", {}).get("method") for line in daemon.record()]
        assert told.index("spoke") < told.index("session/cancel")

        moulted = await daemon.ask(session, "moult")
        assert (moulted.status, moulted.error_code) == ("failed", "agent_wedged")
        assert moulted.error == "the owl moults"
        assert payload(await daemon.has_event(session, "binding.closed"))["reason"] == "moulting"
        assert (await daemon.ask(session, "three")).status == "completed"
        assert len(daemon.launches()) == 2


async def test_it_goes_by_its_own_words() -> None:
    """In its events, its runs, the lists; before and after a restart."""
    async with running_daemon(SCRIPT, prepare=with_owl) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hello")
        await daemon.restart()

        assert {each.source for each in await daemon.events(run, "message.delta")} == {"owl"}
        assert (await daemon.run(run)).provider == "acp_owl"
        seen = await daemon.get(session)
        assert (seen.runtime, seen.runtime_group) == ("owl", "owl")
        assert (await daemon.status(session)).model.provider_kind == "owl-acp"
        listed = await daemon.client.request("agent/list", {}, AgentList)
        (owl,) = [each for each in listed.agents if each.agent_id == "fake"]
        assert (owl.runtime, owl.provider, owl.health.state) == ("owl", "acp_owl", "ready")


async def test_what_it_says_of_its_home_is_told_by_check_and_doctor() -> None:
    """By the daemon and by the programs that read the configuration themselves."""
    async with running_daemon(SCRIPT, prepare=with_owl) as daemon:
        daemon.configure(agent={"env": daemon.agent_environ})
        await daemon.client.request("host/reload", {}, dict)
        check = await daemon.client.check_agent("fake")
        assert [each.code for each in check.findings] == ["installed", "no_nest"]
        assert not check.ready
        told = await acphost(daemon.socket, "doctor", *daemon.flags)
        assert "it has no nest" in told.out


async def test_a_file_that_is_broken_breaks_its_agent_alone() -> None:
    """Its runs fail with the reason, its sessions can be read; mended, it counts at once."""
    async with running_daemon(SCRIPT, prepare=with_owl) as daemon:
        session = await daemon.session()
        await daemon.ask(session, "hello")
        traits_file(daemon).write_text(OWL + "\nclass Owl(")
        await daemon.restart()

        check = await daemon.client.check_agent("fake")
        (problem,) = [each for each in check.findings if each.severity is Severity.PROBLEM]
        assert problem.code == "runtime_unusable"
        assert str(traits_file(daemon)) in problem.message
        failed = await daemon.ask(session, "are you there?")
        assert failed.status == "failed"
        assert "SyntaxError" in (failed.error or "")

        traits_file(daemon).write_text(OWL)
        assert (await daemon.ask(session, "and now?")).status == "completed"


async def test_a_mistake_in_a_judgement_ends_no_turn_and_no_session() -> None:
    """It is logged, and the turn is judged as that of any agent."""
    wrong = '        raise ValueError("oops")\n        if facts.error is not None and'
    async with running_daemon(SCRIPT, prepare=with_owl) as daemon:
        text = OWL.replace("        if facts.error is not None and", wrong)
        traits_file(daemon).write_text(text)
        session = await daemon.session()
        assert (await daemon.ask(session, "one")).status == "completed"
        assert (await daemon.ask(session, "moult")).error_code == "agent_error"
        assert "traits_failed" in daemon.log()


async def test_a_word_without_a_file_is_a_mistake_until_there_is_one() -> None:
    """The mistake names the kinds there are; the file alone, dropped later, cures it."""
    async with running_daemon(SCRIPT) as daemon:
        daemon.configure(agent={"runtime": "owl"})
        told = await daemon.client.request("host/reload", {}, dict)
        assert told["mistakes"][0]["key"] == "agents.fake.runtime"
        assert told["mistakes"][0]["text"] == (
            'expected one of "acp", "api_chat", "chat_only", "hermes", "reasonix", got "owl"'
        )
        assert (await daemon.ask(await daemon.session(), "hello")).provider == "acp"

        async with daemon.client.subscribe(kinds=["config.reloaded"]) as events:
            with_owl(daemon)
            await anext(events)
        assert (await daemon.ask(await daemon.session(), "hello")).provider == "acp_owl"
