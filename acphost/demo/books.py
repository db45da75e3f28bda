"""The books of a fake agent: its sessions, what it was asked, and what it asked itself."""

import os
import threading
from typing import Protocol

from acphost.demo import plain_json
from acphost.demo.memory import Conversation, Store, prompt_text
from acphost.demo.outlet import json_line
from acphost.demo.plain_json import NOTHING
from acphost.demo.tokens import JsonObject


class Playing(Protocol):
    """A block that has a request in hand."""

    running: bool
    stop: str | None

    def interrupt(self, reason: str) -> bool: ...


class Incoming:
    """A request or notification of the host."""

    def __init__(
        self, method: str, params: JsonObject, given_id: object = NOTHING, line: str = ""
    ) -> None:
        self.method = method
        self.params = params
        self.id = given_id
        self.line = line
        self.answered = False
        self.stage: Playing | None = None

    @property
    def is_request(self) -> bool:
        return self.id is not NOTHING

    @property
    def session_id(self) -> str | None:
        found = self.params.get("sessionId")
        return found if isinstance(found, str) else None


class Asked:
    """A request to the host, and its answer once there is one."""

    def __init__(self, asked_id: object) -> None:
        self.id = asked_id
        self.answer: JsonObject | None = None


class Session:
    """A session of this process."""

    def __init__(self, session_id: str, conversation: Conversation) -> None:
        self.id = session_id
        self.conversation = conversation
        self.live = False  # opened in this process
        self.exists = False  # opened here or by an earlier process
        self.disowned = False  # the answer to its load was a pretence
        self.values: dict[str, str] = {}
        self.open: list[Incoming] = []
        self.count = 0


class Books:
    """Who is live, what is open, which ids are given."""

    def __init__(self, store: Store, changed: threading.Condition) -> None:
        self.first_id = 0
        self.store = store
        self.eol = b"\n"
        self._changed = changed
        self._sessions: dict[str, Session] = {}
        self._asked: dict[bytes, Asked] = {}
        self._numbers = {"session": 0, "request": 0}
        self._mark = os.urandom(4).hex()

    # -- sessions ---------------------------------------------------------------------------------

    def known(self, session_id: str | None) -> Session | None:
        """A session this process has heard of."""
        return None if session_id is None else self._sessions.get(session_id)

    def session(self, session_id: str) -> Session:
        """The session of that id, from the store or new where it has to be."""
        with self._changed:
            if session_id not in self._sessions:
                stored = self.store.load(session_id)
                session = Session(session_id, stored or Conversation())
                session.exists = stored is not None
                self._sessions[session_id] = session
            return self._sessions[session_id]

    def recalled(self, session_id: str) -> Session | None:
        """The session of that id, here or in the store; None if there is none."""
        session = self.session(session_id)
        return session if session.exists else None

    def register(self, session_id: str, params: JsonObject) -> Session:
        """Open a session in this process, as new, load and resume do."""
        session = self.session(session_id)
        cwd = params.get("cwd")
        if isinstance(cwd, str):
            session.conversation.cwd = cwd
        session.live = session.exists = True
        self.store.save(session_id, session.conversation)
        return session

    def all_sessions(self) -> list[Session]:
        """Every session, those of the store included."""
        for session_id in self.store.ids():
            self.session(session_id)
        return [session for session in self._sessions.values() if session.exists]

    def next_session_id(self) -> str:
        """An id no other process gives."""
        return f"fake-{self._mark}-{self._next('session')}"

    def _next(self, what: str) -> int:
        with self._changed:
            self._numbers[what] += 1
            return self._numbers[what]

    # -- requests ---------------------------------------------------------------------------------

    def enter_prompt(self, incoming: Incoming) -> None:
        """Note a prompt as open."""
        session = self.session(incoming.session_id or "")
        session.open.append(incoming)
        session.count += 1

    def hear(self, incoming: Incoming) -> None:
        """Remember a prompt, on disk before anything is said to it."""
        session = self.known(incoming.session_id)
        if incoming.method == "session/prompt" and session is not None and session.exists:
            session.conversation.hear(prompt_text(incoming.params))
            self.store.save(session.id, session.conversation)

    def ask(self, asked_id: object) -> Asked:
        """Enter a request to the host, under the next id unless one is given."""
        if asked_id is NOTHING:
            asked_id = self._next("request") + self.first_id - 1
        asked = Asked(asked_id)
        with self._changed:
            self._asked[plain_json.encode(asked.id)] = asked
        return asked

    def settle(self, message: JsonObject) -> None:
        """Give an answer of the host to whoever asked; a stray one is dropped."""
        with self._changed:
            asked = self._asked.pop(plain_json.encode(message["id"]), None)
            if asked is not None:
                asked.answer = {k: v for k, v in message.items() if k in ("result", "error")}
                self._changed.notify_all()

    def answer(
        self,
        incoming: Incoming,
        body: JsonObject,
        *,
        once: bool,
        under: object = NOTHING,
    ) -> bytes:
        """Note that a request is answered; returns the line to write.

        With `once` there is nothing to write where it has been answered before.
        """
        with self._changed:
            if once and incoming.answered:
                return b""
            incoming.answered = True
            session = self.known(incoming.session_id)
            if session is not None and incoming in session.open:
                session.open.remove(incoming)
                if session.exists:
                    self.store.save(session.id, session.conversation)
            self._changed.notify_all()
        match incoming.method, body:
            case "session/new", {"result": {"sessionId": str(session_id)}}:
                self.register(session_id, incoming.params)
            case "session/load" | "session/resume", {"result": _} if session is not None:
                if not session.disowned:
                    self.register(session.id, incoming.params)
        given = incoming.id if under is NOTHING else under
        return json_line({"jsonrpc": "2.0", "id": given, **body}, self.eol)
