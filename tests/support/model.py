"""A model server on loopback that plays scenes: what a real agent hears is decided by the test.

A test stages a scene and puts its tag, `[scene 3]`, into the prompt. The newest user message that
carries a tag picks the scene; the number of assistant messages after it picks the reply, so a turn
with tools walks through the replies by itself and a retry hears the same one again. Requests that
offer no tools (titles, judges) are not part of a scene and get a neutral sentence, unless the
server is there for a chat, which has none.
"""

import itertools
import json
import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

NEUTRAL = "A quiet title"
CURTAIN = "That is all."
MODEL = "stage-small"
#: So large that no agent starts to summarise its history behind the test's back.
CONTEXT_TOKENS = 4_000_000
_TAG = re.compile(r"\[scene (\d+)\]")
_BIG_DELTA = 4096


# -- what a reply is made of ----------------------------------------------------------------------


@dataclass(frozen=True)
class Say:
    """Text of the answer, one delta a word, `pace` seconds apart."""

    text: str
    pace: float = 0.0


@dataclass(frozen=True)
class Think:
    """Text of the reasoning, one delta a word."""

    text: str
    pace: float = 0.0


@dataclass(frozen=True)
class Call:
    """A tool call; several in one reply are parallel calls."""

    tool: str
    arguments: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Fail:
    """An HTTP error instead of a reply, for the first `times` tries or for ever; comes first."""

    status: int
    times: int | None = None


@dataclass(frozen=True)
class Cut:
    """The connection breaks here."""


@dataclass(frozen=True)
class Big:
    """`size` characters of numbered lines, see `big_text`."""

    size: int


@dataclass(frozen=True)
class Echo:
    """The result of the last tool call, as the agent reported it to the model."""


@dataclass(frozen=True)
class Recall:
    """Every earlier prompt of the test that is in the request: the agent's memory, said aloud."""


class Gate:
    """The reply stops here until the test opens the gate; as the first act it is a silent model."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._opened = threading.Event()

    def open(self) -> None:
        """Let the reply go on, now and for every later try."""
        self._opened.set()

    def pass_through(self) -> None:
        """Wait in the server's thread until somebody opens."""
        self.reached.set()
        self._opened.wait()


Act = Say | Think | Call | Fail | Cut | Big | Echo | Recall | Gate
Reply = Sequence[Act]


def big_text(size: int) -> str:
    """Exactly `size` characters in which every line is different, so that a loss has a place."""
    lines: list[str] = []
    length = 0
    for number in itertools.count():
        if length >= size:
            return "".join(lines)[:size]
        lines.append(f"{number:08d} {'abcdefghijklmnopqrstuvwxyz' * 2}\n")
        length += len(lines[-1])
    raise AssertionError


# -- what was heard -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Message:
    """One message of a request."""

    role: str
    text: str


@dataclass(frozen=True)
class Heard:
    """One chat request of an agent."""

    body: dict[str, Any]
    messages: tuple[Message, ...]
    tools: tuple[str, ...]
    authorization: str | None
    scene: int | None
    reply: int

    @property
    def asked(self) -> int:
        """Where the newest tagged user message stands."""
        return _newest_tag(self.messages)[0]

    @property
    def memory(self) -> str:
        """All text before the newest tagged message, whoever said it."""
        return "\n".join(m.text for m in self.messages[: self.asked])

    @property
    def earlier_prompts(self) -> list[str]:
        """The tagged messages before the newest; agents add untagged ones of their own."""
        earlier = self.messages[: self.asked]
        return [m.text for m in earlier if m.role == "user" and _TAG.search(m.text)]


def _newest_tag(messages: Sequence[Message]) -> tuple[int, int | None]:
    """Position of the newest tagged user message and its scene; (-1, None) where there is none."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "user":
            tags = _TAG.findall(messages[index].text)
            if tags:
                return index, int(tags[-1])
    return -1, None


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(str(p.get("text") or "") for p in content if isinstance(p, dict))
    return ""


def _understand(body: dict[str, Any], authorization: str | None, *, is_chat: bool) -> Heard:
    messages = tuple(
        Message(m.get("role", ""), _text(m.get("content"))) for m in body.get("messages") or ()
    )
    at, scene = _newest_tag(messages)
    tools = tuple(t.get("function", t).get("name", "") for t in body.get("tools") or ())
    reply = sum(1 for m in messages[at + 1 :] if m.role == "assistant")
    return Heard(body, messages, tools, authorization, scene if tools or is_chat else None, reply)


# -- the server -----------------------------------------------------------------------------------


class ModelServer:
    """The stage: scenes in, requests out; serves from its own threads while it is entered."""

    def __init__(self, *, is_chat: bool = False) -> None:
        self.is_chat = is_chat
        self._lock = threading.Condition()
        self._scenes: list[tuple[Reply, ...]] = []
        self._gates: list[Gate] = []
        self._tries: Counter[tuple[int, int]] = Counter()
        self._heard: list[Heard] = []
        self._http = _Http(("127.0.0.1", 0), _Handler)
        self._http.stage = self
        self._thread = threading.Thread(target=self._http.serve_forever, name="model", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None
    ) -> None:
        for gate in self._gates:
            gate.open()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """What an OpenAI client calls the base URL."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def scene(self, *replies: Reply) -> str:
        """Stage a scene; returns the tag that goes into the prompt."""
        with self._lock:
            self._scenes.append(replies)
            self._gates += [act for reply in replies for act in reply if isinstance(act, Gate)]
            return f"[scene {len(self._scenes) - 1}]"

    def door(self, gate: Gate) -> str:
        """An address that answers once the gate opens: how a running tool is held."""
        with self._lock:
            self._gates.append(gate)
            return f"{self.url}/doors/{len(self._gates) - 1}"

    def knock(self, path: str) -> bool:
        """Wait at the door with that path; False if there is none."""
        _, found, number = path.rpartition("/doors/")
        if not found or not number.isdigit() or int(number) >= len(self._gates):
            return False
        self._gates[int(number)].pass_through()
        return True

    def heard(self, tag: str | None = None) -> list[Heard]:
        """The chat requests so far, oldest first; only those of one scene if its tag is given."""
        with self._lock:
            return [h for h in self._heard if tag is None or f"[scene {h.scene}]" == tag]

    def wait_heard(self, tag: str, count: int = 1) -> list[Heard]:
        """Block until a scene was asked for `count` times; call it from a thread."""
        with self._lock:
            self._lock.wait_for(lambda: self._count(tag) >= count)
        return self.heard(tag)

    def _count(self, tag: str) -> int:
        return sum(1 for h in self._heard if f"[scene {h.scene}]" == tag)

    def perform(self, heard: Heard) -> Reply:
        """Note a request and say what is played for it."""
        with self._lock:
            self._heard.append(heard)
            self._lock.notify_all()
            if heard.scene is None:
                return (Say(NEUTRAL),)
            replies = self._scenes[heard.scene]
            if heard.reply >= len(replies):
                return (Say(CURTAIN),)
            return self._after_failures(replies[heard.reply], (heard.scene, heard.reply))

    def _after_failures(self, reply: Reply, place: tuple[int, int]) -> Reply:
        if not reply or not isinstance(reply[0], Fail):
            return reply
        self._tries[place] += 1
        times = reply[0].times
        return reply[:1] if times is None or self._tries[place] <= times else reply[1:]


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    stage: ModelServer

    def handle_error(self, request: object, client_address: object) -> None:
        """An agent that hangs up is part of the play."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Http

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - inherited name
        """Stay silent: stderr belongs to pytest."""

    def do_GET(self) -> None:
        """The catalogue that agents ask for before their first turn."""
        if self.path.rstrip("/").endswith("/models"):
            card = {"id": MODEL, "object": "model", "context_length": CONTEXT_TOKENS}
            self._json(200, {"object": "list", "data": [card]})
        elif self.server.stage.knock(self.path):
            self._json(200, "the door is open")
        else:
            self._json(404, {"error": {"message": "no such thing here", "type": "not_found"}})

    def do_POST(self) -> None:
        """A chat request; everything else is not there."""
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.path.rstrip("/").endswith("/chat/completions"):
            self._json(404, {"error": {"message": "no such thing here", "type": "not_found"}})
            return
        key, is_chat = self.headers.get("Authorization"), self.server.stage.is_chat
        heard = _understand(json.loads(raw), key, is_chat=is_chat)
        self._play(list(self.server.stage.perform(heard)), heard)

    def _play(self, reply: list[Act], heard: Heard) -> None:
        while reply and isinstance(reply[0], Gate):
            reply.pop(0).pass_through()  # type: ignore[union-attr]  # the loop's own condition
        if reply and isinstance(reply[0], Fail):
            self._fail(reply[0].status)
        elif heard.body.get("stream"):
            _Stream(self, heard).play(reply)
        else:
            text = "".join(act.text for act in reply if isinstance(act, Say))
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "finish_reason": "stop", "message": message}
            self._json(200, _envelope("chat.completion", choices=[choice], usage=_usage(heard)))

    def _fail(self, status: int) -> None:
        error = {"message": f"the stage is closed ({status})", "type": "stage", "code": str(status)}
        self._json(status, {"error": error})

    def _json(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _envelope(kind: str, **members: object) -> dict[str, object]:
    return {"id": "chatcmpl-stage", "object": kind, "created": 1, "model": MODEL, **members}


def _usage(heard: Heard) -> dict[str, int]:
    prompt = sum(len(m.text) for m in heard.messages) // 4
    return {"prompt_tokens": prompt, "completion_tokens": 10, "total_tokens": prompt + 10}


_call_numbers = itertools.count(1)


class _Stream:
    """One streamed reply: server-sent events in HTTP chunks."""

    def __init__(self, handler: _Handler, heard: Heard) -> None:
        self._handler = handler
        self._heard = heard
        self._calls = 0

    def play(self, reply: Sequence[Act]) -> None:
        self._handler.send_response(200)
        self._handler.send_header("Content-Type", "text/event-stream")
        self._handler.send_header("Transfer-Encoding", "chunked")
        self._handler.end_headers()
        self._delta({"role": "assistant", "content": ""})
        for act in reply:
            if isinstance(act, Cut):
                self._handler.close_connection = True
                return
            self._act(act)
        self._end()

    def _act(self, act: Act) -> None:
        match act:
            case Say(text, pace):
                self._words("content", text, pace)
            case Think(text, pace):
                self._words("reasoning_content", text, pace)
            case Call(tool, arguments):
                self._call(tool, json.dumps(arguments))
            case Gate():
                act.pass_through()
            case Big(size):
                text = big_text(size)
                for start in range(0, size, _BIG_DELTA):
                    self._delta({"content": text[start : start + _BIG_DELTA]})
            case Echo():
                results = [m.text for m in self._heard.messages if m.role == "tool"]
                self._delta({"content": results[-1] if results else "no result"})
            case Recall():
                self._delta({"content": "\n".join(self._heard.earlier_prompts)})
            case Fail() | Cut():
                raise AssertionError(act)

    def _words(self, member: str, text: str, pace: float) -> None:
        for word in _words(text):
            self._delta({member: word})
            if pace:
                threading.Event().wait(pace)

    def _call(self, tool: str, arguments: str) -> None:
        head = {
            "index": self._calls,
            "id": f"call_stage_{next(_call_numbers)}",
            "type": "function",
            "function": {"name": tool, "arguments": ""},
        }
        self._delta({"tool_calls": [head]})
        middle = len(arguments) // 2
        for piece in (arguments[:middle], arguments[middle:]):
            part = {"index": self._calls, "function": {"arguments": piece}}
            self._delta({"tool_calls": [part]})
        self._calls += 1

    def _delta(self, delta: dict[str, object]) -> None:
        self._event(choices=[{"index": 0, "delta": delta, "finish_reason": None}])

    def _end(self) -> None:
        reason = "tool_calls" if self._calls else "stop"
        self._event(choices=[{"index": 0, "delta": {}, "finish_reason": reason}])
        self._event(choices=[], usage=_usage(self._heard))
        self._chunk(b"data: [DONE]\n\n")
        self._handler.wfile.write(b"0\r\n\r\n")

    def _event(self, **members: object) -> None:
        value = _envelope("chat.completion.chunk", **members)
        self._chunk(b"data: " + json.dumps(value).encode() + b"\n\n")

    def _chunk(self, data: bytes) -> None:
        self._handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


def _words(text: str) -> Iterator[str]:
    """The text cut after its blanks; the pieces joined are the text."""
    return iter(re.findall(r"\S*\s*", text)[:-1] or [])
