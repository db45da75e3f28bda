"""What a fake agent remembers of its sessions, in memory and, with a store, across processes."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, unquote

from acphost.demo import plain_json
from acphost.demo.outlet import json_line
from acphost.demo.tokens import JsonObject

_CHUNKS = ("user_message_chunk", "agent_message_chunk", "agent_thought_chunk")
_HISTORY = (*_CHUNKS, "tool_call", "tool_call_update", "plan")


def prompt_text(params: JsonObject) -> str:
    """The text of a prompt: its text blocks, one after the other."""
    blocks = params.get("prompt")
    if not isinstance(blocks, list):
        return ""
    texts = (block.get("text") for block in blocks if isinstance(block, dict))
    return "".join(text for text in texts if isinstance(text, str))


def text_chunk(kind: str, text: str) -> JsonObject:
    """An update of one of the three chunk kinds."""
    return {"sessionUpdate": kind, "content": {"type": "text", "text": text}}


class Conversation:
    """The prompts of one session and what was said in answer, in order."""

    def __init__(self, cwd: str = "") -> None:
        self.cwd = cwd
        self.prompts: list[str] = []
        self.updates: list[JsonObject] = []
        self.saved = 0

    def hear(self, text: str) -> None:
        """Remember a prompt."""
        self.prompts.append(text)
        self.updates.append(text_chunk("user_message_chunk", text))

    def forget(self) -> None:
        """Drop what is not saved yet: everything said since the last prompt."""
        del self.updates[self.saved :]

    def say(self, update: JsonObject) -> None:
        """Remember an update if it is of a kind that a history shows; chunks are joined."""
        kind = update.get("sessionUpdate")
        if kind not in _HISTORY:
            return
        if kind in _CHUNKS and len(self.updates) > self.saved:
            joined = _joined(self.updates[-1], update)
            if joined is not None:
                self.updates[-1] = joined
                return
        self.updates.append(update)


def _joined(first: JsonObject, second: JsonObject) -> JsonObject | None:
    match first, second:
        case (
            {"sessionUpdate": str(kind), "content": {"type": "text", "text": str(one)}},
            {"sessionUpdate": str(other), "content": {"type": "text", "text": str(two)}},
        ) if kind == other:
            return text_chunk(kind, one + two)
    return None


class Store(Protocol):
    """Where conversations outlive the process."""

    def load(self, session_id: str) -> Conversation | None: ...
    def save(self, session_id: str, conversation: Conversation) -> None: ...
    def ids(self) -> Iterator[str]: ...


class NoStore:
    """Nothing outlives the process."""

    def load(self, session_id: str) -> Conversation | None:
        return None

    def save(self, session_id: str, conversation: Conversation) -> None:
        conversation.saved = len(conversation.updates)

    def ids(self) -> Iterator[str]:
        return iter(())


class FolderStore:
    """One file of JSON lines for each session; lines are only ever added."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder
        self._lock = threading.Lock()

    def _file(self, session_id: str) -> Path:
        return self._folder / f"{quote(session_id, safe='')}.jsonl"

    def load(self, session_id: str) -> Conversation | None:
        """The conversation, a line cut short by a crash left out; None for an unknown session."""
        try:
            lines = self._file(session_id).read_bytes().splitlines()
        except FileNotFoundError:
            return None
        found = Conversation()
        for line in lines:
            try:
                entry = plain_json.decode(line)
            except ValueError:
                continue
            if "cwd" in entry:
                found.cwd = entry["cwd"]
            elif entry.get("sessionUpdate") == "user_message_chunk":
                found.hear(entry["content"]["text"])
            else:
                found.updates.append(entry)
        found.saved = len(found.updates)
        return found

    def save(self, session_id: str, conversation: Conversation) -> None:
        """Add what is new since the last save."""
        with self._lock:
            path = self._file(session_id)
            news: list[object] = [] if path.exists() else [{"cwd": conversation.cwd}]
            news += conversation.updates[conversation.saved :]
            conversation.saved = len(conversation.updates)
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(fd, b"".join(json_line(entry) for entry in news))
            finally:
                os.close(fd)

    def ids(self) -> Iterator[str]:
        """The sessions of the store, oldest first."""
        files = sorted(self._folder.glob("*.jsonl"), key=lambda file: file.stat().st_mtime_ns)
        return (unquote(file.stem) for file in files)
