"""Something to remember, and how a test finds out whether it was remembered."""

from tests.real.agents import RealAgent
from tests.real.hosting import TOOLBOX, Host, Talk, Turn
from tests.support.model import ModelServer, Recall, Say


async def introduce(host: Host, model: ModelServer, agent: RealAgent) -> Talk:
    """A session in which one thing was told and one answered."""
    talk = await host.talk(agent, mcp_servers=[TOOLBOX])
    turn = await talk.ask(f"My heron is called Ole. {model.scene([Say('A fine name.')])}")
    assert turn.run.status == "completed", turn
    return talk


async def expect_memory(talk: Talk, model: ModelServer) -> Turn:
    """The next prompt works: the model hears what came before, and nothing old is shown again."""
    tag = model.scene([Say("I know: "), Recall()])
    turn = await talk.ask(f"What do you know? {tag}")
    assert (turn.run.status, turn.run.stop_reason) == ("completed", "end_turn"), turn
    (heard,) = model.heard(tag)
    assert "My heron is called Ole." in heard.earlier_prompts[0]
    assert "A fine name." in heard.memory
    assert turn.answer.strip().startswith("I know: "), turn.answer
    assert "My heron is called Ole." in turn.answer
    assert turn.prompts == [f"What do you know? {tag}"]
    return turn
