"""The command line: commands, their options, and what `--help` says."""

import argparse
import difflib
import re
import sys
from collections.abc import Callable, Collection, Sequence
from typing import NoReturn

from acphost.cli import keeping
from acphost.cli.exits import Exit

DESCRIPTION = """\
acphost hosts your ACP agents: conversations that survive the editor, the agent and the daemon.

Start the daemon with `acphost serve`, talk with `acphost send`. `acphost demo` shows in a few
seconds what it does, with nothing installed and nothing left behind."""

EXITS = """\
exit codes: 0 done; 1 failed; 2 wrong usage; 3 a daemon runs already; 69 no daemon; 75 try again;
77 not permitted; 78 configuration; 130 interrupted. `acphost help exits` tells more."""

Options = argparse.Namespace
_UNKNOWN = re.compile(r"argument COMMAND: invalid choice: '(.*?)' ")


class _Parser(argparse.ArgumentParser):
    """Says in one line that there is no such command; argparse would list all of them."""

    #: By their names, once they are known.
    commands: Collection[str] = ()

    def error(self, message: str) -> NoReturn:
        """End the program with 2 and what is wrong."""
        unknown = _UNKNOWN.match(message)
        if unknown is None:
            super().error(message)
        close = difflib.get_close_matches(unknown[1], self.commands, n=1)
        hint = f"did you mean `acphost {close[0]}`?" if close else "`acphost --help` lists them"
        self.exit(Exit.USAGE, f"acphost: error: no command is called {unknown[1]!r}; {hint}\n")


Command = Callable[..., argparse.ArgumentParser]


#: It has options of its own, `--help` among them: what follows the word is passed on unread.
FAKE_AGENT = "fake-agent"


#: Commands that need nothing of the machine they run on.
_TALKERS = {
    "acp", "agents", "attach", "cancel", "grants", "ls", "permit", "policy", "ps", "queue",
    "recover", "retention", "send", "session", "set_", "status", "usage",
}  # fmt: skip


def parse(words: Sequence[str]) -> Options:
    """Read the command line; ends the program with 2 and the usage where it is wrong."""
    if words[:1] == [FAKE_AGENT]:
        return Options(module="fake_agent", arguments=list(words[1:]))
    parser = make_parser()
    options = parser.parse_args(
        words, Options(module=None, socket=None, state_dir=None, config=None, host=None)
    )
    if options.module is None:
        parser.print_help(sys.stderr)
        sys.exit(Exit.USAGE)
    if options.host is not None and options.module not in _TALKERS:
        parser.error("--host goes with commands that only talk to a daemon")
    if options.host == "":
        parser.error("--host names no host")
    return options


def make_parser() -> argparse.ArgumentParser:
    """All commands with their options."""
    shared = _shared_options()
    parser = _Parser(
        prog="acphost",
        description=DESCRIPTION,
        epilog=EXITS,
        parents=[shared],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    version = "show the version and leave"
    parser.add_argument(
        "--version", dest="module", action="store_const", const="version", help=version
    )
    commands = parser.add_subparsers(
        title="commands", metavar="COMMAND", parser_class=argparse.ArgumentParser
    )
    parser.commands = commands.choices

    def command(name: str, summary: str, *, module: str | None = None) -> argparse.ArgumentParser:
        added = commands.add_parser(name, help=summary, description=summary, parents=[shared])
        added.set_defaults(module=module or name)
        return added

    _daemon_commands(command)
    _conversation_commands(command)
    _reading_commands(command)
    _store_commands(command)
    keeping.add_commands(command)
    return parser


def _shared_options() -> argparse.ArgumentParser:
    """What stands before the command as well as behind it; absent, it leaves no trace."""
    shared = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    group = shared.add_argument_group("where things are")
    group.add_argument(
        "--host",
        metavar="[USER@]HOST",
        help="a daemon on another machine, reached by ssh; --socket is a path there then",
    )
    group.add_argument("--socket", metavar="PATH", help="the daemon's socket [ACPHOST_SOCKET]")
    group.add_argument(
        "--state-dir", metavar="DIR", help="the daemon's state folder [ACPHOST_STATE_DIR]"
    )
    group.add_argument(
        "--config", metavar="PATH", help="configuration file or folder [ACPHOST_CONFIG]"
    )
    return shared


def _daemon_commands(command: Command) -> None:
    serve = command("serve", "run the daemon in the foreground")
    serve.add_argument(
        "--log", metavar="FILE", help="log to this file, which is kept small; default: stderr"
    )
    start = command("start", "start the daemon in the background, unless one runs")
    start.add_argument(
        "--if-allowed", action="store_true", help="only where the configuration has `autostart`"
    )
    command("demo", "show what acphost does, with a throwaway daemon and the bundled agent")
    stop = command("stop", "end the daemon and wait until it is gone")
    stop.add_argument("--force", action="store_true", help="do not let running turns finish")
    command("version", "show the version")
    schema = command("schema", "print what the socket speaks, as types for plugin authors")
    forms = schema.add_mutually_exclusive_group()
    for form, what in (
        ("json", "JSON Schema (default)"),
        ("ts", "TypeScript types"),
        ("lua", "LuaLS annotations"),
    ):
        forms.add_argument(
            f"--{form}", dest="form", action="store_const", const=form, default="json", help=what
        )
    fake = command(
        FAKE_AGENT, "run the bundled scriptable ACP agent on stdin and stdout", module="fake_agent"
    )
    fake.add_argument("arguments", metavar="SCRIPT …", nargs=argparse.REMAINDER)


def _conversation_commands(command: Command) -> None:
    acp = command("acp", "the front door for editors: pose as an ACP agent on stdin and stdout")
    acp.add_argument("--agent", metavar="ID", help="the agent of new sessions")
    acp.add_argument(
        "--session", metavar="ID", help="what the editor opens first is this session, with its past"
    )
    acp.add_argument(
        "--no-autostart",
        dest="autostart",
        action="store_false",
        help="start no daemon where none runs",
    )

    send = command("send", "send a message and stream the answer")
    send.add_argument("text", metavar="TEXT", nargs="*", help="the message; - reads it from stdin")
    send.add_argument("--agent", metavar="ID", help="the agent of a new session")
    target = send.add_mutually_exclusive_group()
    target.add_argument("--session", metavar="ID", help="go on with this session")
    target.add_argument(
        "--continue",
        dest="latest",
        action="store_true",
        help="go on with the latest session of this folder",
    )
    send.add_argument("--cwd", metavar="DIR", help="the folder of a new session; default: this one")
    send.add_argument(
        "--json", action="store_true", help="print the events as they are, one a line"
    )

    attach = command("attach", "follow a session: what was said, then what is being said")
    attach.add_argument("session", metavar="SESSION", help="an id, or enough of its begin or end")
    attach.add_argument(
        "--after", metavar="SEQ", help='begin behind this seq; "now" for no history'
    )
    attach.add_argument(
        "--json", action="store_true", help="print the events as they are, one a line"
    )

    setting = command("set", "show what can be set in a session's agent, or set it", module="set_")
    setting.add_argument("session", metavar="SESSION", help="an id, or enough of its begin or end")
    setting.add_argument(
        "settings",
        metavar="KEY=VALUE",
        nargs="*",
        help="mode=…, model=…, or an option of the agent; KEY= forgets what was chosen",
    )
    setting.add_argument("--json", action="store_true", help="print the session as it is")

    session = command("session", "name, pin, copy or delete a session, or adopt one of an agent's")
    session.add_argument(
        "action",
        choices=["rename", "pin", "unpin", "fork", "delete", "discover", "adopt"],
        help="discover lists the sessions that an agent keeps itself, adopt goes on with one",
    )
    session.add_argument("target", metavar="SESSION|AGENT")
    session.add_argument(
        "text", metavar="TITLE|ID", nargs="?", help="the title, or the agent's id of a session"
    )
    session.add_argument(
        "--external", action="store_true", help="delete it also where the agent keeps it"
    )
    session.add_argument("--here", action="store_true", help="discover those of this folder only")
    session.add_argument("--yes", action="store_true", help="delete without asking again")
    session.add_argument("--json", action="store_true", help="print what came of it as it is")

    cancel = command("cancel", "stop a run, or what a session runs now")
    cancel.add_argument("target", metavar="RUN|SESSION")
    cancel.add_argument("--hold", action="store_true", help="let nothing start after it")
    cancel.add_argument("--no-wait", action="store_true", help="do not wait for its end")
    cancel.add_argument("--json", action="store_true", help="print the run")

    permit = command("permit", "list what agents ask for, or answer it")
    permit.add_argument("permission", metavar="PERMISSION", nargs="?")
    permit.add_argument(
        "option", metavar="OPTION", nargs="?", help="an offered option, or simply allow or reject"
    )
    permit.add_argument(
        "--all", action="store_true", help="list also what was answered: how, when and by whom"
    )
    permit.add_argument(
        "values", metavar="NAME=VALUE", nargs="*", help="what a form is filled in with"
    )
    permit.add_argument("--json", action="store_true", help="print the decisions")


def _reading_commands(command: Command) -> None:
    policy = command("policy", "show what the policy rules would have answered so far")
    policy.add_argument("action", choices=["test"], help="try the rules on what agents have asked")
    policy.add_argument("--session", metavar="SESSION", help="what was asked in this session only")
    policy.add_argument(
        "--rules", metavar="FILE", help="the [[policy.rules]] of this file instead of those in use"
    )
    policy.add_argument("--json", action="store_true", help="print the answers as they are")

    ls = command("ls", "list the sessions")
    ls.add_argument("--here", action="store_true", help="those of this folder only")
    ls.add_argument("--agent", metavar="ID", help="those of this agent only")
    ls.add_argument("--json", action="store_true", help="print the sessions as they are")

    status = command("status", "show the daemon, or one session, and why it is busy")
    status.add_argument("session", metavar="SESSION", nargs="?")
    status.add_argument("--json", action="store_true", help="print the status as it is")

    usage = command("usage", "show what sessions have used: tokens, cost, and the context")
    usage.add_argument("session", metavar="SESSION", nargs="?", help="default: all sessions")
    usage.add_argument("--json", action="store_true", help="print the projections as they are")

    agents = command("agents", "list the configured agents, check one, try it out, or log in")
    agents.add_argument(
        "action",
        nargs="?",
        choices=["list", "check", "probe", "login", "logout"],
        default="list",
        help="list them (default); check one without starting it; probe one: run it in a scratch "
        "folder and see which of its promises it keeps; log in to one, or out of it",
    )
    agents.add_argument("agent", metavar="ID", nargs="?", help="which one; check takes all")
    agents.add_argument("method", metavar="METHOD", nargs="?", help="by which way to log in")
    agents.add_argument(
        "--no-prompts", action="store_true", help="probe without asking the agent's model anything"
    )
    agents.add_argument("--json", action="store_true", help="print what was found as it is")

    queue = command("queue", "show, hold, release, edit or reorder what waits in a session")
    queue.add_argument("session", metavar="SESSION")
    queue.add_argument(
        "action", nargs="?", choices=["list", "hold", "release", "edit", "move"], default="list",
        help="default: list",
    )  # fmt: skip
    queue.add_argument("run", metavar="RUN", nargs="?", help="the waiting run to edit or move")
    queue.add_argument(
        "words", metavar="TEXT|PLACE", nargs="*",
        help="edit: the new text, - for stdin, nothing for your editor; "
        "move: first (default), last, or a number as listed",
    )  # fmt: skip
    queue.add_argument("--json", action="store_true", help="print the items as they are")

    recover = command("recover", "list the runs of unknown outcome, try one again, or dismiss it")
    recover.add_argument("target", metavar="RUN|SESSION", nargs="?", help="default: all of them")
    recover.add_argument(
        "action", nargs="?", choices=["show", "resume", "dismiss"], default="show",
        help="default: show",
    )  # fmt: skip
    recover.add_argument(
        "--with-history", action="store_true",
        help="resume: with the history of the session instead of what the agent remembers",
    )  # fmt: skip
    recover.add_argument("--json", action="store_true", help="print the runs as they are")

    grants = command("grants", "show, grant or take back folders that agents may use")
    grants.add_argument(
        "action", nargs="?", choices=["list", "add", "remove"], default="list",
        help="default: list",
    )  # fmt: skip
    grants.add_argument("folder", nargs="?", metavar="FOLDER", help="which one to add or remove")
    grants.add_argument("--read-only", action="store_true", help="agents may not write there")
    grants.add_argument("--json", action="store_true", help="print the grants as they are")

    ps = command("ps", "list the agents' processes and what they started, with memory and age")
    ps.add_argument(
        "--kill",
        metavar="RUN|SESSION",
        help="stop a run, by force where its agent does not obey; or end a session's agent",
    )
    ps.add_argument("--json", action="store_true", help="print the records as they are")


def _store_commands(command: Command) -> None:
    fsck = command("fsck", "check the store, or a backup of one, and change nothing")
    fsck.add_argument(
        "file", metavar="FILE", nargs="?", help="default: the store of the state folder"
    )
    fsck.add_argument("--json", action="store_true", help="print the report as it is")
    fsck.epilog = (
        "Works beside a running daemon as well as without. Exit code 0: clean; 1: findings, each "
        "with what, where and what to do; 78: the file is no store, or one of a newer acphost. "
        "What a daemon that died left open is told and is no finding: the next start closes it."
    )

    retention = command("retention", "delete the sessions that the configured rules let go")
    retention.add_argument("--dry-run", action="store_true", help="only show what would go")
    retention.add_argument("--json", action="store_true", help="print the result as it is")

    backup = command("backup", "copy the store into one file, also while agents are at work")
    backup.add_argument("file", metavar="FILE", help="where to; only you will be able to read it")
    backup.add_argument("--force", action="store_true", help="replace FILE if it exists")
    backup.add_argument(
        "--with-secrets",
        action="store_true",
        help="take along what clients handed over as secret, in clear; otherwise it is left out",
    )
    backup.add_argument("--json", action="store_true", help="print the result as it is")

    restore = command("restore", "put a backup in the place of the store; no daemon may run")
    restore.add_argument("file", metavar="FILE", help="what `acphost backup` wrote")
    restore.add_argument("--force", action="store_true", help="even if the check finds something")
    restore.add_argument("--json", action="store_true", help="print the result as it is")
    restore.epilog = (
        "The store that is replaced stays beside it under a dated name, which can be restored in "
        "turn. Runs that were waiting in the backup wait on, held until they are released."
    )
