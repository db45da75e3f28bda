"""The bare loop: what this machine can do on the hot path when nothing else is done.

One thread reads the agent's pipe, cuts lines, decodes the envelope, commits each chunk to SQLite
with synchronous=FULL, and writes what is committed to one Unix socket. No queue, no recovery, no
second session: the limit that the daemon is measured by.

    python bare.py SOCKET DATABASE PROGRAM …

says `ready` on stdout, takes one connection at SOCKET and one prompt on stdin, and ends with it.
"""

import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

_READ_SIZE = 1 << 20
_PROMPT_ID = 3
_TABLE = """
    CREATE TABLE events (
        offset INTEGER PRIMARY KEY, session_id TEXT, seq INTEGER, run_id TEXT, kind TEXT,
        source TEXT, payload BLOB, at TEXT, UNIQUE (session_id, seq)
    )
"""
_INSERT = """
    INSERT INTO events (session_id, seq, run_id, kind, source, payload, at)
    VALUES (?, ?, ?, ?, ?, ?, ?)
"""
_AT = "2026-01-01T00:00:00.000Z"
_EVENT = (
    b'{"schema":"mnote.ai_run_event.v1","seq":"%018d","sessionId":"s","hostRunId":"r",'
    b'"kind":"message.delta","source":"acp","payload":%b}\n'
)


class _Envelope(msgspec.Struct):
    id: int | str | None = None
    method: str | None = None
    params: msgspec.Raw = msgspec.Raw(b"")


class _Params(msgspec.Struct, rename="camel"):
    session_id: str
    update: msgspec.Raw


class _Update(msgspec.Struct, rename="camel"):
    session_update: str


_envelope = msgspec.json.Decoder(_Envelope).decode
_params = msgspec.json.Decoder(_Params).decode
_update = msgspec.json.Decoder(_Update).decode


class Loop:
    """The journal, the one subscriber, and what came between two lines."""

    def __init__(self, database: str, subscriber: socket.socket) -> None:
        self._journal = sqlite3.connect(database, isolation_level=None)
        self._journal.execute("PRAGMA journal_mode = WAL")
        self._journal.execute("PRAGMA synchronous = FULL")
        self._journal.execute(_TABLE)
        self._subscriber = subscriber
        self._rest = b""
        self._seq = 0

    def carry(self, chunk: bytes) -> bool:
        """Commit and pass on what a chunk holds; whether it holds the answer to the prompt."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        rows: list[tuple[object, ...]] = []
        events: list[bytes] = []
        is_over = False
        for line in lines:
            envelope = _envelope(line)
            if envelope.method == "session/update":
                params = _params(envelope.params)
                kind = _update(params.update).session_update
                payload = bytes(params.update)
                self._seq += 1
                rows.append(("s", self._seq, "r", kind, "acp", payload, _AT))
                events.append(_EVENT % (self._seq, payload))
            elif envelope.id == _PROMPT_ID:
                is_over = True
        if rows:
            self._journal.execute("BEGIN")
            self._journal.executemany(_INSERT, rows)
            self._journal.execute("COMMIT")
            self._subscriber.sendall(b"".join(events))
        return is_over


def _ask(agent: "subprocess.Popen[bytes]", number: int, method: str, **params: object) -> None:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    assert agent.stdin is not None
    os.write(agent.stdin.fileno(), json.dumps(message).encode() + b"\n")


def _result(agent: "subprocess.Popen[bytes]") -> dict[str, Any]:
    assert agent.stdout is not None
    answer: dict[str, Any] = json.loads(os.read(agent.stdout.fileno(), _READ_SIZE))
    result: dict[str, Any] = answer["result"]
    return result


def _accept(path: str) -> socket.socket:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        print("ready", flush=True)
        subscriber, _ = listener.accept()
    return subscriber


def main(path: str, database: str, program: Sequence[str]) -> None:
    """One agent, one subscriber, one prompt."""
    with subprocess.Popen(
        program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    ) as agent:
        _ask(agent, 1, "initialize", protocolVersion=1)
        _result(agent)
        _ask(agent, 2, "session/new", cwd="/", mcpServers=[])
        session_id = _result(agent)["sessionId"]
        loop = Loop(database, _accept(path))
        text = sys.stdin.readline().strip()
        prompt = [{"type": "text", "text": text}]
        _ask(agent, _PROMPT_ID, "session/prompt", sessionId=session_id, prompt=prompt)
        assert agent.stdout is not None
        assert agent.stdin is not None
        descriptor = agent.stdout.fileno()
        while chunk := os.read(descriptor, _READ_SIZE):
            if loop.carry(chunk):
                break
        agent.stdin.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
