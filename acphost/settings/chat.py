"""How an agent with a chat runtime is started: a program of ours, told of its endpoint."""

import sys

import msgspec

from acphost.settings.model import AgentSettings, ChatSettings

CHAT_RUNTIMES = frozenset({"chat_only", "api_chat"})
#: The variable by which that program is told; `acphost.chat.options` reads it.
VARIABLE = "ACPHOST_CHAT"


def chat_program(agent: AgentSettings, chat: ChatSettings) -> AgentSettings:
    """The same agent with command and environment; the key goes from environment to environment."""
    told = {
        "baseUrl": chat.base_url,
        "model": chat.model,
        "apiKeyEnv": chat.api_key_env,
        "system": chat.system,
        "readTimeout": chat.read_timeout,
    }
    passed = [] if chat.api_key_env is None else [chat.api_key_env]
    return msgspec.structs.replace(
        agent,
        command=[sys.executable, "-m", "acphost.chat"],
        env={**agent.env, VARIABLE: msgspec.json.encode(told).decode()},
        env_pass=[*agent.env_pass, *passed],
    )
