"""What can be chosen in a session: the agent's modes and options, and the agent itself. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Raw

from acphost.frontdoor.members import Members, is_given, items, members, raw, text
from acphost.frontdoor.updates import encoded
from acphost.wire.acp_agent import EditorCapabilities
from acphost.wire.event import HOST, Event, Kind

#: The config option by which the agent of a session is chosen, and its category.
AGENT_OPTION = "_acphost_agent"
BINDINGS = frozenset(
    {
        Kind.BINDING_STARTED,
        Kind.BINDING_RESUMED,
        Kind.BINDING_LOADED,
        Kind.BINDING_COLD_RESUMED,
    }
)


class AgentChoice(NamedTuple):
    """An agent that may be chosen."""

    agent_id: str
    name: str


class Options:
    """Follows what an agent says can be chosen, and tells it as this editor understands it."""

    def __init__(
        self, editor: EditorCapabilities, agent_id: str, agents: Sequence[AgentChoice]
    ) -> None:
        self._editor = editor
        self.agent_id = agent_id
        self.agents = agents
        self._modes: Raw | None = None
        self._models: Raw | None = None
        self._options: list[Raw] = []

    def take(self, event: Event) -> Raw | None:
        """Follow an event; the update that tells the editor, where it changes anything."""
        if event.kind in BINDINGS:
            return self._bound(members(event.payload).get("response"))
        if event.kind == Kind.SESSION_CONFIG_UPDATED:
            return self._config(event)
        if event.kind == Kind.SESSION_MODE_UPDATED:
            return self._mode(event.payload)
        return None

    def opened(self) -> dict[str, object]:
        """The members of the answer to session/new, load and resume."""
        found: dict[str, object] = {"configOptions": self._shown()}
        if self._modes is not None:
            found["modes"] = self._modes
        if self._models is not None:
            found["models"] = self._models
        return found

    def shown(self) -> list[Raw]:
        """The complete list of config options."""
        return self._shown()

    def is_ours(self, config_id: str) -> bool:
        """Whether an option is the host's, not the agent's."""
        return config_id == AGENT_OPTION

    def _bound(self, response: Raw | None) -> Raw | None:
        """An agent began or came back: what it said then counts from now on."""
        if response is None:
            return None
        said, before = members(bytes(response)), self._shown()
        if is_given(said.get("modes")):
            self._modes = said["modes"]
        if is_given(said.get("models")):
            self._models = said["models"]
        if is_given(said.get("configOptions")):
            self._options = items(said["configOptions"])
        if self._shown() == before:
            return None
        return self._told({"configOptions": raw(self._shown())})

    def _config(self, event: Event) -> Raw | None:
        """The agent's complete list counts as it is; what the host says it set, value by value."""
        said, before = members(bytes(event.payload)), self._shown()
        if event.source != HOST:
            if "configOptions" not in said:
                return None
            self._options = items(said["configOptions"])
            return self._told({**said, "configOptions": raw(self._shown())})
        for option in items(said.get("configOptions")):
            told = members(option)
            self._set(text(told.get("id")) or "", told.get("currentValue", raw(None)))
        for name in ("changed", "restored"):
            for key, value in members(said.get(name, raw({}))).items():
                self._set(key, value)
        return (
            None if self._shown() == before else self._told({"configOptions": raw(self._shown())})
        )

    def set(self, config_id: str, value: str | bool) -> None:
        """The daemon took a choice; the agent's own words about it follow."""
        self._set(config_id, raw(value))

    def _set(self, key: str, value: Raw) -> None:
        """Change one value; the host calls the options of these two categories by them."""
        if key == "agentId":
            self._change_agent(text(value) or self.agent_id)
        if not is_given(value):
            return
        by = "category" if key in ("mode", "model") else "id"
        for place, option in enumerate(self._options):
            told = members(option)
            if key in (text(told.get("id")), text(told.get(by))):
                self._options[place] = encoded({**told, "currentValue": value})
                return

    def _change_agent(self, agent_id: str) -> None:
        """What the one before offered is not on offer any more."""
        self.agent_id = agent_id
        self._modes = self._models = None
        self._options = []

    def _mode(self, payload: Raw) -> Raw:
        """The schema says `currentModeId`; what calls it `modeId` is understood (guide A42)."""
        said = members(bytes(payload))
        mode_id = said.get("currentModeId", said.get("modeId"))
        if mode_id is None:
            return payload
        if self._modes is not None:
            self._modes = encoded({**members(self._modes), "currentModeId": mode_id})
        if "currentModeId" in said and "sessionUpdate" in said:
            return payload
        return raw({"sessionUpdate": "current_mode_update", "currentModeId": mode_id})

    @staticmethod
    def _told(said: Members) -> Raw:
        return encoded({**said, "sessionUpdate": raw("config_option_update")})

    def _shown(self) -> list[Raw]:
        own = [self._agent_option()] if len(self.agents) > 1 else []
        return own + [option for option in self._options if self._is_shown(option)]

    def _is_shown(self, option: Raw) -> bool:
        kind = text(members(option).get("type"))
        return kind == "select" or (kind == "boolean" and self._editor.shows_booleans)

    def _agent_option(self) -> Raw:
        return raw(
            {
                "id": AGENT_OPTION,
                "name": "Agent",
                "description": "Which agent answers in this session",
                "category": AGENT_OPTION,
                "type": "select",
                "currentValue": self.agent_id,
                "options": [{"value": each.agent_id, "name": each.name} for each in self.agents],
            }
        )
