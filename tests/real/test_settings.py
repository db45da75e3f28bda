"""What people set in an agent stays set, whichever process serves the session."""

from pathlib import Path
from typing import Any

from acphost.wire.event import Kind
from tests.real.agents import RealAgent
from tests.real.hosting import hosting, payload
from tests.real.memory import expect_memory, introduce
from tests.support.model import ModelServer

#: What each agent lets people set, and does not keep for itself over a load.
CHOICES: dict[str, dict[str, Any]] = {
    "hermes": {"mode": "accept_edits"},
    "reasonix": {"options": {"tool_approval": "read-only"}},
}


async def test_settings_are_the_same_after_every_new_start(
    tmp_path: Path, model: ModelServer, agent: RealAgent
) -> None:
    """Set by a person, forgotten by the agent, set again before the next prompt."""
    chosen = CHOICES[agent.name]
    async with hosting(tmp_path, model, agent) as host:
        talk = await introduce(host, model, agent)
        await host.client.configure(talk.session_id, **chosen)
        wanted = {**chosen, **chosen.get("options", {})}
        wanted.pop("options", None)

        async def settings() -> dict[str, object]:
            session = await host.client.session(talk.session_id)
            found = {each.key: each.value for each in session.settable}  # type: ignore[union-attr]
            return {key: found[key] for key in wanted}

        assert await settings() == wanted
        await talk.lose_agent()
        await expect_memory(talk, model)
        assert await settings() == wanted

        await host.kill()
        await host.start()
        turn = await expect_memory(talk, model)
        assert await settings() == wanted
        assert not [e for e in turn.of(Kind.ERROR) if "setting" in str(payload(e))]
