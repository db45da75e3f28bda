"""What the host tells an agent it can do is exactly what it does."""

import json
from pathlib import Path

from tests.support.daemon import running_daemon

SCHEMA = Path(__file__).parents[2] / "fixtures" / "schema" / "acp-v1.schema.json"
#: Which offer of `clientCapabilities` each request of an agent needs; None: it needs none.
NEEDS: dict[str, tuple[str, ...] | None] = {
    "session/request_permission": None,
    "fs/read_text_file": ("fs", "readTextFile"),
    "fs/write_text_file": ("fs", "writeTextFile"),
    "terminal/create": ("terminal",),
    "terminal/output": ("terminal",),
    "terminal/wait_for_exit": ("terminal",),
    "terminal/kill": ("terminal",),
    "terminal/release": ("terminal",),
    "elicitation/create": ("elicitation",),
}


def asked_by_agents() -> set[str]:
    """Every request that the protocol lets an agent make."""
    definitions = json.loads(SCHEMA.read_text())["$defs"].items()
    return {
        each["x-method"]
        for name, each in definitions
        if each.get("x-side") == "client" and name.endswith("Request")
    }


def offered(capabilities: object, path: tuple[str, ...] | None) -> bool:
    """Whether capabilities hold that mark."""
    for name in path or ():
        capabilities = capabilities.get(name) if isinstance(capabilities, dict) else None
    return path is None or capabilities not in (None, False)


async def test_what_is_offered_is_answered_and_nothing_else() -> None:
    """Every request of the protocol, with params that fit none: refused as such, or unknown."""
    methods = sorted(asked_by_agents())
    script = "\n".join(
        ["ON prompt"]
        + [
            f'    ASK {method} {{"sessionId": "${{SESSION}}"}} save=${{DIR}}/{number}'
            for number, method in enumerate(methods)
        ]
    )
    assert set(methods) == set(NEEDS)
    async with running_daemon(script) as daemon:
        await daemon.ask(await daemon.session(), "ask")
        (hello,) = daemon.heard("initialize")
        answers = [json.loads(await daemon.marked(str(n))) for n in range(len(methods))]

    capabilities = hello["params"]["clientCapabilities"]
    handled = {
        method
        for method, answer in zip(methods, answers, strict=True)
        if answer.get("error", {}).get("code") != -32601
    }
    assert handled == {method for method in methods if offered(capabilities, NEEDS[method])}
