"""What an agent's process is given: named variables, and each session its own folder."""

from tests.support.daemon import Daemon, running_daemon


async def test_nothing_reaches_an_agent_unnamed() -> None:
    """Keys of other services stay behind; what the configuration names goes as it is."""

    def prepare(daemon: Daemon) -> None:
        daemon.environ |= {"STRAY_API_KEY": "stray", "WANTED_KEY": "two\nlines '$x'"}

    show = (
        "ON prompt\n"
        '    MSG "${STRAY_API_KEY:-none}|${WANTED_KEY:-none}|${SET_KEY:-none}|${LANG_X:-none}"\n'
    )
    agent = {"env_pass": ["WANTED_KEY"]}
    async with running_daemon(show, agent=agent, prepare=prepare) as daemon:
        run = await daemon.ask(await daemon.session(), "show")

        assert await daemon.text(run) == "none|two\nlines '$x'|none|none"


async def test_the_folder_of_a_session_is_not_that_of_the_process() -> None:
    """Two sessions in one process are each told their own."""
    async with running_daemon(agent={"process": "shared"}) as daemon:
        other = daemon.folder / "other"
        other.mkdir()
        first, second = await daemon.session(), await daemon.session(cwd=str(other))
        await daemon.ask(first, "one")
        await daemon.ask(second, "two")

        assert len(daemon.launches()) == 1
        told = [message["params"]["cwd"] for message in daemon.heard("session/new")]
        assert told == [str(daemon.work), str(other)]


async def test_meta_changes_no_parameter() -> None:
    """Whatever stands in `_meta`, and members with odd names, leave the request what it is."""
    read = (
        "ON prompt\n"
        '    ASK fs/read_text_file {"sessionId": "${SESSION}", "path": "${DIR}/work/a",'
        ' "_meta": {"path": "/etc/passwd", "sessionId": "other", "limit": 0},'
        ' "__proto__": {"path": "/etc/passwd"}, "__class__": {"limit": 0}}\n'
        "    MSG ${ANSWER}\n"
    )
    async with running_daemon(read) as daemon:
        (daemon.work / "a").write_text("mine")
        run = await daemon.ask(await daemon.session(), "read")

        assert '"content":"mine"' in await daemon.text(run)
