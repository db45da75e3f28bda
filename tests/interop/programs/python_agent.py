"""An agent on the official Python SDK: echoes, remembers, asks, and can be stopped.

It runs in that SDK's own environment, of the 0.9 line as of the newest, so it keeps to what both
have and takes every parameter by name.
"""

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import acp
from acp import schema

STORE = Path(sys.argv[1])


class EchoAgent:
    """Keeps what it was told in a file, so that another process can load it."""

    def on_connect(self, conn: Any) -> None:
        self.host = conn
        self.turns: dict[str, asyncio.Task[Any]] = {}

    async def initialize(self, protocol_version: int, **_: Any) -> Any:
        return schema.InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=schema.AgentCapabilities(load_session=True),
        )

    async def new_session(self, cwd: str, **_: Any) -> Any:
        session_id = f"sdk-{len(self._all()) + 1}"
        self._keep(session_id, [])
        return schema.NewSessionResponse(session_id=session_id)

    async def load_session(self, session_id: str, **_: Any) -> Any:
        for said in self._all()[session_id]:
            await self.host.session_update(
                session_id=session_id, update=acp.update_user_message_text(said)
            )
            await self._say(session_id, f"you said {said}")
        return schema.LoadSessionResponse()

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> Any:
        self.turns[session_id] = asyncio.create_task(self._answer(session_id, prompt[-1].text))
        with contextlib.suppress(asyncio.CancelledError):
            await self.turns[session_id]
            return schema.PromptResponse(stop_reason="end_turn")
        return schema.PromptResponse(stop_reason="cancelled")

    async def cancel(self, session_id: str, **_: Any) -> None:
        self.turns[session_id].cancel()

    async def _answer(self, session_id: str, said: str) -> None:
        before = self._all()[session_id]
        self._keep(session_id, [*before, said])
        if said == "ask":
            call = acp.start_tool_call("call-1", "Touch it", kind="edit", status="pending")
            await self.host.session_update(session_id=session_id, update=call)
            answer = await self.host.request_permission(
                session_id=session_id,
                tool_call=schema.ToolCallUpdate(tool_call_id="call-1"),
                options=[
                    schema.PermissionOption(option_id="y", name="Yes", kind="allow_once"),
                    schema.PermissionOption(option_id="n", name="No", kind="reject_once"),
                ],
            )
            done = acp.update_tool_call("call-1", status="completed")
            await self.host.session_update(session_id=session_id, update=done)
            await self._say(session_id, f"answered {answer.outcome.option_id}")
            return
        await self._say(session_id, f"you said {said}, before that {before}")
        if said == "wait":
            await asyncio.Event().wait()

    async def _say(self, session_id: str, text: str) -> None:
        await self.host.session_update(
            session_id=session_id, update=acp.update_agent_message_text(text)
        )

    @staticmethod
    def _all() -> dict[str, list[str]]:
        return json.loads(STORE.read_text()) if STORE.exists() else {}

    def _keep(self, session_id: str, said: list[str]) -> None:
        STORE.write_text(json.dumps({**self._all(), session_id: said}))


asyncio.run(acp.run_agent(EchoAgent()))
