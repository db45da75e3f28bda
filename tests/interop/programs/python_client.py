"""An editor on the official Python SDK: one session in two processes, told as one JSON object.

Usage: python python_client.py FOLDER COMMAND...
"""

import asyncio
import json
import os
import sys
from typing import Any

from acp import PROTOCOL_VERSION, Client, spawn_agent_process, text_block
from acp.schema import AllowedOutcome, RequestPermissionResponse


class Editor(Client):
    """Keeps what it is told, and says yes."""

    def __init__(self) -> None:
        self.said: dict[str, list[str]] = {}
        self.kinds: list[str] = []
        self.came = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        kind = update.session_update
        self.kinds.append(kind)
        if kind in ("agent_message_chunk", "user_message_chunk"):
            self.said.setdefault(kind, []).append(update.content.text)
        self.came.set()

    async def request_permission(self, options: Any, *_: Any, **__: Any) -> Any:
        chosen = AllowedOutcome(outcome="selected", option_id=options[0].option_id)
        return RequestPermissionResponse(outcome=chosen)

    async def hears(self, text: str) -> None:
        while text not in self.text():
            self.came.clear()
            await self.came.wait()

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(self.said.get(kind, []))


async def main(folder: str, command: list[str]) -> None:
    told: dict[str, Any] = {}
    options = {"env": dict(os.environ), "cwd": folder}
    first = Editor()
    async with spawn_agent_process(first, *command, **options) as (agent, _):
        hello = await agent.initialize(protocol_version=PROTOCOL_VERSION)
        told["loads"] = hello.agent_capabilities.load_session
        session = await agent.new_session(cwd=folder, mcp_servers=[])
        asked = {"session_id": session.session_id}
        stops = []
        for word in ("hello", "ask"):
            answer = await agent.prompt(prompt=[text_block(word)], **asked)
            stops.append(answer.stop_reason)
        turn = asyncio.ensure_future(agent.prompt(prompt=[text_block("wait")], **asked))
        await first.hears("working")
        behind = asyncio.ensure_future(agent.prompt(prompt=[text_block("hello")], **asked))
        await asyncio.sleep(0)  # it is written when its task has begun
        await agent.cancel(**asked)
        stops += [(await turn).stop_reason, (await behind).stop_reason]
        told["stops"] = stops
        told["text"] = first.text()
    second = Editor()
    async with spawn_agent_process(second, *command, **options) as (agent, _):
        await agent.initialize(protocol_version=PROTOCOL_VERSION)
        await agent.load_session(cwd=folder, mcp_servers=[], **asked)
        await second.hears("working")
        told["users"] = second.text("user_message_chunk")
        told["past"] = second.text()
    print(json.dumps(told))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
