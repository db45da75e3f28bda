"""Which traits a configured `runtime` means: a new kind of agent is one file and one entry."""

from acphost.provider.agents.hermes import Hermes
from acphost.provider.agents.reasonix import Reasonix
from acphost.provider.traits import Traits

TRAITS: dict[str, Traits] = {traits.runtime: traits for traits in (Traits(), Hermes(), Reasonix())}
