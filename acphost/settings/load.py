"""One value from flags, environment, the user's files and the shipped defaults, in that order."""

import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from acphost.errors import ConfigError
from acphost.settings.chat import CHAT_RUNTIMES, chat_program
from acphost.settings.check import Finding, Mistake
from acphost.settings.environment import expand_home
from acphost.settings.model import AgentSettings, ConfigFile, McpSettings, Settings
from acphost.settings.places import chosen_place, shipped_folder, user_folder
from acphost.settings.read import Document, read_file, read_files, refuse
from acphost.settings.runtimes import PLAIN, is_runtime, known_runtimes
from acphost.wire.policy import PolicyRule

#: Stands in a command for the interpreter that runs this program.
PYTHON = "{python}"

#: The keys that a flag or an environment variable may set, and which variable.
_OVERRIDES = {"socket": "ACPHOST_SOCKET", "state_dir": "ACPHOST_STATE_DIR"}


class Loaded(NamedTuple):
    """What can be run by, and why that is not all that is configured."""

    settings: Settings
    problem: ConfigError | None = None


def load_settings(
    *, flags: Mapping[str, object], environ: Mapping[str, str], without: Collection[str] = ()
) -> Settings:
    """Everything that is configured, merged, checked and expanded.

    Of `flags` only `socket`, `state_dir` and `config` count; None counts as not given. Files in
    `without` are left out (see `read_files`).
    Raises ConfigError, which lists every mistake in the user's files.
    """
    place = chosen_place(_named("config", "ACPHOST_CONFIG", flags, environ), environ)
    documents = read_files(place, without=without)
    folder = str(place.parent if place.is_file() else place)
    merged: dict[str, object] = {}
    for document in [*read_files(shipped_folder()), *documents]:
        merged = _merged(merged, document.table)
    refuse(
        [
            *_unknown_runtimes(documents, folder),
            *_agents_without_program(merged, documents),
            *_unsound_servers(merged, documents),
            *_unsound_rules(documents),
        ]
    )
    for name, variable in _OVERRIDES.items():
        path = _named(name, variable, flags, environ)
        if path is not None:
            merged[name] = str(path)
    merged["folder"] = folder
    merged["read_from"] = [document.file for document in documents]
    return _expanded(msgspec.convert(merged, Settings), environ)


def load_sound_settings(*, flags: Mapping[str, object], environ: Mapping[str, str]) -> Loaded:
    """As `load_settings`, but a file with a mistake is left out instead of refused.

    Agents of such a file are missing; a main file still says where socket and state are.
    Raises ConfigError where nothing can be read of what is named, or of the main file.
    """
    problem: ConfigError | None = None
    without: set[str] = set()
    while True:
        try:
            return Loaded(load_settings(flags=flags, environ=environ, without=without), problem)
        except ConfigError as exc:
            problem = problem or exc
            wrong = {str(mistake["file"]) for mistake in mistakes_of(exc)}
            # What another file had in it may be missing now: then that one is next.
            if not wrong - without:
                raise
            without |= wrong


def load_rules(path: Path) -> list[PolicyRule]:
    """The policy rules of one file, which may say other things besides. Raises ConfigError."""
    document = read_file(path)
    refuse(_unsound_rules([document]))
    return msgspec.convert(document.table, ConfigFile).policy.rules


def mistakes_of(problem: ConfigError) -> list[dict[str, object]]:
    """Each mistake of a refusal with its place: file, key, text, line, column."""
    mistakes = problem.details.get("mistakes")
    return mistakes if isinstance(mistakes, list) else []


def config_place(flags: Mapping[str, object], environ: Mapping[str, str]) -> Path:
    """The folder or file of the user's configuration, whether or not it exists."""
    return _named("config", "ACPHOST_CONFIG", flags, environ) or user_folder(environ)


def _named(
    name: str, variable: str, flags: Mapping[str, object], environ: Mapping[str, str]
) -> Path | None:
    """The path of a flag, else of a variable unless that is empty; made absolute from here."""
    flag = flags.get(name)
    value = str(flag) if flag is not None else environ.get(variable)
    return Path(expand_home(value, environ)).absolute() if value else None


def _merged(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, object]:
    """Both tables in one, inner tables too; where both have a value, the one above counts."""
    result = dict(below)
    for name, value in above.items():
        lower = result.get(name)
        if isinstance(value, dict) and isinstance(lower, dict):
            result[name] = _merged(lower, value)
        else:
            result[name] = value
    return result


def _unknown_runtimes(documents: list[Document], folder: str) -> Iterator[Mistake]:
    """Words that stand neither for a shipped kind of agent nor for one of the user's own."""
    for document in documents:
        for name, agent in _agents(document.table).items():
            word = agent.get("runtime", PLAIN) if isinstance(agent, dict) else PLAIN
            if not is_runtime(word, folder):
                known = ", ".join(f'"{each}"' for each in known_runtimes(folder))
                text = f'expected one of {known}, got "{word}"'
                yield document.placed(Finding(("agents", name, "runtime"), text))


def _agents_without_program(
    merged: Mapping[str, object], documents: list[Document]
) -> Iterator[Mistake]:
    """Agents that no file gives what to start; the mistake stands where one is first named."""
    for name, agent in _agents(merged).items():
        missing = _missing(agent if isinstance(agent, dict) else {})
        if missing is not None:
            document = next(d for d in documents if name in _agents(d.table))
            yield document.placed(Finding(("agents", name), missing))


def _missing(agent: Mapping[str, object]) -> str | None:
    """What an agent cannot do without, if it does."""
    if agent.get("runtime") in CHAT_RUNTIMES:
        if agent.get("chat"):
            return None
        return "names no endpoint, expected a table chat with base_url and model"
    command = agent.get("command")
    if isinstance(command, list) and command and command[0]:
        return None
    return 'names no program, expected command = ["program", "argument"]'


def _unsound_servers(merged: Mapping[str, object], documents: list[Document]) -> Iterator[Mistake]:
    """MCP servers that could not be passed to any agent."""
    servers = _table(merged, "mcp")
    for name, server in servers.items():
        if isinstance(server, dict) and ("command" in server) != ("url" in server):
            continue
        finding = Finding(("mcp", name), "expected either a command or a url")
        yield next(d for d in documents if name in _table(d.table, "mcp")).placed(finding)


def _table(table: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = table.get(name)
    return found if isinstance(found, dict) else {}


def _unsound_rules(documents: list[Document]) -> Iterator[Mistake]:
    """Policy rules that are well formed and yet cannot be meant."""
    for document in documents:
        policy = document.table.get("policy")
        rules = policy.get("rules") if isinstance(policy, dict) else None
        seen: set[str] = set()
        for number, rule in enumerate(rules or []):
            found = msgspec.convert(rule, PolicyRule)
            problem = found.problem
            if problem is None and found.name in seen:
                problem = f"the name {found.name!r} is taken by a rule before it"
            seen.add(found.name)
            if problem is not None:
                key = ("policy", "rules", f"[{number}]")
                yield document.placed(Finding(key, problem))


def _agents(table: Mapping[str, object]) -> dict[str, object]:
    agents = table.get("agents")
    return agents if isinstance(agents, dict) else {}


def _expanded(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """The same with `~` and `{python}` replaced, and a display name for every agent."""

    def home(text: str) -> str:
        return expand_home(text, environ)

    def agent(name: str, given: AgentSettings) -> AgentSettings:
        if given.chat is not None and given.runtime in CHAT_RUNTIMES:
            given = chat_program(given, given.chat)
        return msgspec.structs.replace(
            given,
            display_name=given.display_name or name,
            command=[sys.executable if word == PYTHON else home(word) for word in given.command],
            env={key: home(value) for key, value in given.env.items()},
            path=None if given.path is None else [home(folder) for folder in given.path],
        )

    def server(given: McpSettings) -> McpSettings:
        return msgspec.structs.replace(
            given,
            command=None if given.command is None else home(given.command),
            args=[home(word) for word in given.args],
            env={key: home(value) for key, value in given.env.items()},
        )

    return msgspec.structs.replace(
        settings,
        socket=None if settings.socket is None else home(settings.socket),
        state_dir=None if settings.state_dir is None else home(settings.state_dir),
        agents={name: agent(name, given) for name, given in settings.agents.items()},
        mcp={name: server(given) for name, given in settings.mcp.items()},
    )
