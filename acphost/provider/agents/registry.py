"""Which traits a configured `runtime` means: a new kind of agent is one file and one entry."""

from acphost.provider.agents.chat import ApiChat, ChatOnly
from acphost.provider.agents.hermes import Hermes
from acphost.provider.agents.reasonix import Reasonix
from acphost.provider.traits import Traits

_KNOWN = (Traits(), Hermes(), Reasonix(), ChatOnly(), ApiChat())

TRAITS: dict[str, Traits] = {traits.runtime: traits for traits in _KNOWN}
