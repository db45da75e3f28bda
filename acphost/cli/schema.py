"""`acphost schema`: what the socket speaks, for plugin authors; needs no daemon."""

import sys

import msgspec

from acphost.cli.exits import Exit
from acphost.cli.parser import Options
from acphost.schema.document import document


def run(options: Options) -> int:
    """Run the command."""
    sys.stdout.write(render(options.form))
    return Exit.OK


def render(form: str) -> str:
    """The schema as JSON Schema (`json`), TypeScript types (`ts`) or LuaLS annotations (`lua`)."""
    if form == "ts":
        from acphost.schema.typescript import typescript

        return typescript(document())
    if form == "lua":
        from acphost.schema.lua import lua

        return lua(document())
    return msgspec.json.format(msgspec.json.encode(document()), indent=2).decode() + "\n"
