"""The scriptable fake ACP agent: `python -m acphost.demo.agent [SCRIPT]`.

One process that speaks ACP on stdin and stdout as a script tells it to: for acphost's own tests,
for the demo, and for anyone whose program hosts ACP agents. `--help` prints the language.
"""

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from acphost.demo.expectations import MCP_ARRAYS, WATCHES
from acphost.demo.inlet import Inlet
from acphost.demo.memory import FolderStore, NoStore, Store
from acphost.demo.outlet import Outlet, Record
from acphost.demo.player import Agent
from acphost.demo.script import Step
from acphost.demo.tokens import ScriptError
from acphost.demo.vocabulary import load_script, reference

_BUNDLED = Path(__file__).parent / "scripts"
_PROFILES = (_BUNDLED, Path(__file__).parents[2] / "fixtures" / "agents")


def main(argv: Sequence[str] | None = None) -> int:
    """Play the agent; returns the exit code: 0, or 2 for a script that is wrong."""
    arguments = _arguments(argv)
    try:
        return _play(arguments)
    except ScriptError as exc:
        os.write(2, f"acphost fake-agent: {exc}\n".encode())
        return 2


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="acphost fake-agent",
        description="An ACP agent on stdin and stdout that does what a script says.",
        epilog=reference() if argv is None or {"-h", "--help"} & set(argv) else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("script", nargs="?", type=Path, help="the script (default: the demo)")
    parser.add_argument("--profile", metavar="NAME", help="a script by name, e.g. flood")
    parser.add_argument(
        "--store",
        metavar="DIR",
        default=os.environ.get("ACPHOST_FAKE_STORE"),
        help="remember sessions there, for session/load by a later process",
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        default=os.environ.get("ACPHOST_FAKE_RECORD"),
        help="append what is read there, as JSON lines",
    )
    parser.add_argument(
        "--set", metavar="NAME=TEXT", action="append", default=[], help="set a variable"
    )
    parser.add_argument("--check", action="store_true", help="check the script and end")
    return parser.parse_args(argv)


def _play(arguments: argparse.Namespace) -> int:
    values = _given_values(arguments.set)
    path = _script_path(arguments.script, arguments.profile)
    script, words = load_script(path, {*values, *os.environ})
    if arguments.check:
        return 0
    record = Record(arguments.record)
    record.write(started=str(path))
    agent = Agent(
        script,
        words,
        Inlet(0, allowed=False),
        Outlet(1),
        store=_store(arguments.store, is_demo=path.parent == _BUNDLED and path.stem == "demo"),
        record=record,
        values=values,
    )
    for step in script.settings:
        _settle(agent, step)
    if any(rule.event == "term" for rule in script.rules):
        signal.signal(signal.SIGTERM, lambda *_: agent.signalled())
    try:
        agent.start()
        for line in agent.inlet.lines():
            agent.receive(line)
        agent.end_of_input()
    except ScriptError as exc:
        agent.fail(exc)
    except KeyboardInterrupt:
        return 130
    return 0


def _given_values(pairs: Sequence[str]) -> dict[str, str]:
    values = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ScriptError(f"--set {pair}: written as --set NAME=TEXT")
        values[name] = text
    return values


def _script_path(script: Path | None, profile: str | None) -> Path:
    """The file to play.

    Raises ScriptError for a profile that nobody has.
    """
    if script is not None:
        return script
    name = f"{profile or 'demo'}.script"
    for folder in _PROFILES:
        if (folder / name).is_file():
            return folder / name
    names = sorted({file.stem for folder in _PROFILES for file in folder.glob("*.script")})
    raise ScriptError(f"there is no profile {profile!r}, only {', '.join(names)}")


def _store(folder: str | None, *, is_demo: bool) -> Store:
    """Where sessions are remembered; the demo remembers without being told to."""
    if folder is not None:
        return FolderStore(Path(folder))
    if not is_demo:
        return NoStore()
    given = os.environ.get("ACPHOST_DEMO_STORE")
    if given:
        return FolderStore(Path(given))
    import tempfile  # noqa: PLC0415  it is the demo's alone

    private = Path(tempfile.gettempdir()) / f"acphost-demo-{os.getuid()}"
    store = FolderStore(private)
    found = private.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o077 or private.is_symlink():
        raise ScriptError(f"{private} is not private to this user: set ACPHOST_DEMO_STORE")
    return store


def _settle(agent: Agent, step: Step) -> None:
    """Carry out a setting.

    Raises ScriptError where its argument is none of the known ones.
    """
    names = [token.plain() for token in step.args]
    match step.word, names:
        case "EXPECT", [name] if name in WATCHES or name == MCP_ARRAYS:
            agent.expectations.add(name)
        case "ALLOW", ["unknown-sessions"]:
            agent.any_session = True
        case "EOL", ["lf" | "crlf" as name]:
            agent.books.eol = b"\r\n" if name == "crlf" else b"\n"
        case "FIRSTID", [number] if number.isdecimal():
            agent.books.first_id = int(number)
        case "IGNORE", _ if all(name in ("TERM", "INT", "HUP") for name in names):
            for name in names:
                signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_IGN)
        case "WORDS", _:
            pass
        case _:
            raise ScriptError(f"{step.where}: {step.word} does not know {' '.join(names)}")


if __name__ == "__main__":
    sys.exit(main())
