"""What an agent would obey in a folder unasked is shown to a person before it is started there."""

from pathlib import Path

from tests.support.daemon import Daemon, running_daemon

HELLO = """
ON prompt
    MSG "hello"
"""


def reasonix(daemon: Daemon) -> None:
    """The agent has the habits of Reasonix, and the folder a file that it loads by itself."""
    daemon.configure(agent={"runtime": "reasonix"})
    project(daemon, "model = 'a'")


def project(daemon: Daemon, text: str) -> Path:
    file = daemon.work / "reasonix.toml"
    file.write_text(text)
    return file


async def test_a_person_is_asked_once_and_again_when_it_has_changed() -> None:
    """Nothing is started before; the answer lasts as long as the file is the same."""
    async with running_daemon(HELLO, prepare=reasonix) as daemon:
        session = await daemon.session()
        first = await daemon.send(session, "one")
        question = await daemon.question(session)
        assert (question.kind, question.host_run_id) == ("confirm", None)
        assert b"reasonix.toml" in bytes(question.request)
        assert (daemon.launches(), (await daemon.run(first)).status) == ([], "pending")
        await daemon.client.respond(question.permission_id, "trust")
        assert (await daemon.wait(first)).status == "completed"

        await daemon.restart()
        assert (await daemon.ask(session, "two")).status == "completed"

        project(daemon, "model = 'b'")
        await daemon.restart()
        third = await daemon.send(session, "three")
        again = await daemon.question(session)
        await daemon.client.respond(again.permission_id, "reject")
        ended = await daemon.wait(third)
        assert (ended.status, ended.error_code) == ("failed", "permission_denied")
        assert len(daemon.launches()) == 2


async def test_a_run_that_is_cancelled_takes_the_question_with_it() -> None:
    """Nobody is left to answer something that nobody needs."""
    async with running_daemon(HELLO, prepare=reasonix) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "one")
        await daemon.question(session)
        await daemon.cancel(run)
        assert (await daemon.wait(run)).status == "cancelled"
        await daemon.is_status(session, "idle")
        assert await daemon.questions(session) == []
        assert daemon.launches() == []


async def test_a_question_survives_its_daemon_by_being_put_again() -> None:
    """A kill withdraws it; the run that waits brings it up once the queue is released."""
    async with running_daemon(HELLO, prepare=reasonix) as daemon:
        session = await daemon.session()
        run = await daemon.send(session, "one")
        first = await daemon.question(session)
        await daemon.restart()
        await daemon.client.queue_release(session)
        second = await daemon.question(session)
        assert second.permission_id != first.permission_id
        await daemon.client.respond(second.permission_id, "trust")
        assert (await daemon.wait(run)).status == "completed"
