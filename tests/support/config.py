"""Configuration of a daemon under test, written as TOML."""

import json
from collections.abc import Mapping
from typing import Any

from tests.support.patience import NEVER

Table = Mapping[str, Any]

#: No time limit of an agent ends unless a test wants it to: what is slow is the machine.
AGENT: Table = {
    "init_timeout": NEVER,
    "load_timeout": NEVER,
    "cancel_grace": NEVER,
    "eof_grace": NEVER,
    "term_grace": NEVER,
}
#: For an agent that lets every grace pass.
STUBBORN: Table = {"cancel_grace": 0.3, "eof_grace": 0.3, "term_grace": 0.3}


def config_text(host: Table, agents: Mapping[str, Table]) -> str:
    """A config.toml with these tables of the host and these agents."""
    tables = {name: value for name, value in host.items() if isinstance(value, Mapping)}
    lines = [f"{name} = {_value(value)}" for name, value in host.items() if name not in tables]
    for name, table in tables.items():
        lines += [f"[{name}]", *_members(table)]
    for agent_id, agent in agents.items():
        lines += [f"[agents.{agent_id}]", *_members(agent)]
    return "\n".join(lines) + "\n"


def _members(table: Table) -> list[str]:
    return [f"{name} = {_value(value)}" for name, value in table.items()]


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_members(value)) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
