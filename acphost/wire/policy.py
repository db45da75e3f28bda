"""Policy on the wire and in the files: rules that answer for a person, and what they look at."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from acphost.wire.base import HostRecord

#: What a rule can say. "ask" leaves the question to people and ends the search.
Verdict = Literal["allow_once", "reject_once", "ask"]
ToolKind = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
#: Rules of the host's own: what answers when nobody does.
RESERVED_NAMES = frozenset({"timeout", "unattended", "agent_timeout"})
Word = Annotated[str, Meta(pattern=r"\A[^\x00]+\Z", description="a string that is not empty")]


class PolicyRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Answers the permission requests that fit all it names; a list fits by any of its entries."""

    #: Shown and journaled with each answer it gives.
    name: Word
    answer: Verdict
    #: Ids of agents.
    agents: list[Word] = []
    #: Kinds of tools, as the protocol has them.
    kinds: list[ToolKind] = []
    #: Names of tools, as the agent calls them.
    tools: list[Word] = []
    #: Folders or files: absolute, from the home with `~`, or below each root of the session.
    paths: list[Word] = []
    #: How the command begins, word by word: "git status" fits `git status -s`, never `git stash`.
    commands: list[Word] = []

    @property
    def problem(self) -> str | None:
        """Why it cannot be taken as it is, in words; None if it can."""
        if self.name in RESERVED_NAMES:
            return f"the name {self.name!r} stands for the host's own answers, choose another"
        named = self.agents or self.kinds or self.tools or self.paths or self.commands
        if self.answer == "allow_once" and not named:
            return "it would allow everything: name agents, kinds, tools, paths or commands"
        return None


class PermissionSubject(HostRecord, frozen=True):
    """What an agent asks leave for, as far as its request tells: all that rules are held against.

    Kept with the decision, so that other rules can be tried on it later.
    """

    agent_id: str
    tool: str | None = None
    kind: str | None = None
    #: Real paths, with every `..` and symbolic link followed.
    paths: list[str] = []
    #: Something else is touched that cannot be told for certain.
    has_unknown_paths: bool = False
    #: As one line for a shell.
    command: str | None = None
    #: Real paths of what the session may work in.
    roots: list[str] = []
    #: One yes and one no are offered; otherwise it is a choice that rules keep out of.
    is_yes_or_no: bool = True
