"""What clients ask for, checked and brought into the form in which it is kept."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Raw

from acphost.errors import InvalidParamsError, UnsupportedContentError
from acphost.provider.secrets import MASK
from acphost.wire.params import RunCreateParams
from acphost.wire.policy import PolicyRule

#: Page text never enters a run by the client's metadata (contract section 2).
_REFUSED = frozenset({"pageText", "pageXml", "contextBlocks", "selectedText", "evidence"})
PREVIEW_LENGTH = 120
#: What ACP knows as content of a prompt.
BLOCK_TYPES = ("text", "image", "audio", "resource_link", "resource")


class _Block(msgspec.Struct):
    type: str
    text: str | None = None


def check_directory(path: str, where: str) -> str:
    """An absolute path to a directory that exists. Raises InvalidParamsError."""
    if not Path(path).is_absolute():
        raise InvalidParamsError(f"expected an absolute path, got {path!r} - at `{where}`")
    try:
        is_there = Path(path).is_dir()
    except (OSError, ValueError):  # a name too long, or a NUL in it
        is_there = False
    if not is_there:
        raise InvalidParamsError(f"no such directory: {path!r} - at `{where}`")
    return path


def check_folders(cwd: str, more: Sequence[str]) -> str:
    """Check all folders of a new session; returns its workspace. Blocks while the disk does.

    Raises InvalidParamsError.
    """
    check_directory(cwd, "$.cwd")
    for index, path in enumerate(more):
        check_directory(path, f"$.additionalDirectories[{index}]")
    return default_workspace(cwd)


def default_workspace(cwd: str) -> str:
    """`local:` and the first 16 hex digits of the sha256 of the real path."""
    real = os.path.realpath(cwd)
    return "local:" + hashlib.sha256(os.fsencode(real)).hexdigest()[:16]


def prompt_of(prompt: Sequence[Raw] | None, text: str | None) -> tuple[bytes, str]:
    """The content of a run as JSON blocks, and a line to recognise it by.

    Raises InvalidParamsError unless exactly one of `prompt` and `text` says something.
    """
    if (prompt is None) == (text is None):
        raise InvalidParamsError("expected either `prompt` or `text` - at `$`")
    if text is not None:
        if not text.strip():
            raise InvalidParamsError("expected a text that is not empty - at `$.text`")
        block = {"type": "text", "text": text}
        return msgspec.json.encode([block]), _preview(text)
    blocks = prompt or []
    if not blocks:
        raise InvalidParamsError("expected at least one content block - at `$.prompt`")
    texts = [_text_of(raw, f"$.prompt[{index}]") for index, raw in enumerate(blocks)]
    return msgspec.json.encode(blocks), _preview(" ".join(texts))


def _text_of(raw: Raw, where: str) -> str:
    """What a block says, or its kind in brackets; nothing that no agent could read is queued."""
    try:
        block = msgspec.json.decode(raw, type=_Block)
    except msgspec.ValidationError as exc:
        raise InvalidParamsError(f"{exc} (in `{where}`)") from exc
    if block.type not in BLOCK_TYPES:
        raise UnsupportedContentError(
            f"{block.type[:100]!r} is no kind of content (those are {', '.join(BLOCK_TYPES)})"
            f" - at `{where}.type`"
        )
    if block.type == "text" and not (block.text or "").strip():
        raise InvalidParamsError(f"expected a `text` that is not empty - at `{where}.text`")
    return block.text or f"[{block.type}]"


def _preview(text: str) -> str:
    line = " ".join(text[: 4 * PREVIEW_LENGTH].split())
    return line if len(line) <= PREVIEW_LENGTH else line[: PREVIEW_LENGTH - 1] + "…"


def target_of(params: RunCreateParams) -> bytes | None:
    """Editor target and snapshot as metadata. Raises InvalidParamsError for page text in them."""
    given = {
        "editorTarget": params.editor_target,
        "runTargetSnapshot": params.run_target_snapshot,
    }
    kept = {name: raw for name, raw in given.items() if isinstance(raw, Raw)}
    for name, raw in kept.items():
        _refuse_text(msgspec.json.decode(raw), f"$.{name}")
    return msgspec.json.encode(kept) if kept else None


def _refuse_text(value: object, path: str) -> None:
    if isinstance(value, dict):
        for name, member in value.items():
            if name in _REFUSED:
                raise InvalidParamsError(f"page text has no place here - at `{path}.{name}`")
            _refuse_text(member, f"{path}.{name}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            _refuse_text(member, f"{path}[{index}]")


def idempotency_key(actor_id: str, params: RunCreateParams) -> str:
    """What makes a repeat the same request (contract section 2)."""
    parts = [
        actor_id,
        params.request_id,
        params.session_id,
        params.workspace_id,
        params.document_id,
    ]
    return _digest(parts)


def fingerprint(content: bytes, params: RunCreateParams, target: bytes | None) -> str:
    """What must be the same in a repeat: prompt, refs and target."""
    try:
        parts = [
            msgspec.json.decode(content),
            params.context_refs,
            None if target is None else msgspec.json.decode(target),
            params.agent_id,
        ]
    except msgspec.DecodeError as exc:  # a number that nobody can hold
        raise InvalidParamsError(f"{exc} - in `$.prompt`") from exc
    return _digest(parts)


def snapshot_hash(value: bytes | None) -> str | None:
    """How a target or a set of capabilities is recognised later."""
    return None if value is None else "sha256:" + hashlib.sha256(value).hexdigest()


def _digest(parts: Sequence[object]) -> str:
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()


class _NamedValue(msgspec.Struct):
    name: str
    value: str


class _McpServer(msgspec.Struct):
    name: str
    env: list[_NamedValue] = []
    headers: list[_NamedValue] = []
    type: str | None = None
    command: str | None = None
    args: list[str] = []
    url: str | None = None


def check_mcp_servers(servers: list[Raw]) -> None:
    """The wire shape that agents insist on (guide section 3.4). Raises InvalidParamsError."""
    for index, raw in enumerate(servers):
        where = f"$.mcpServers[{index}]"
        try:
            server = msgspec.json.decode(raw, type=_McpServer)
        except msgspec.ValidationError as exc:
            raise InvalidParamsError(f"{exc} (in `{where}`)") from exc
        if server.type in (None, "stdio") and not (
            server.command and Path(server.command).is_absolute()
        ):
            raise InvalidParamsError(f"expected an absolute path - at `{where}.command`")
        if server.type in ("http", "sse") and not server.url:
            raise InvalidParamsError(f"expected a `url` - at `{where}`")


def check_policy(rules: Sequence[PolicyRule]) -> None:
    """Rules that can be meant. Raises InvalidParamsError."""
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        problem = rule.problem
        if rule.name in seen:
            problem = f"the name {rule.name!r} is taken by a rule before it"
        seen.add(rule.name)
        if problem is not None:
            raise InvalidParamsError(f"{problem} - at `$.policy[{index}]`")


def masked_servers(servers: list[Raw]) -> bytes:
    """The servers with the values of their environment and headers hidden (contract section 11)."""
    masked = []
    for raw in servers:
        server = msgspec.json.decode(raw, type=dict[str, object])
        for name in ("env", "headers"):
            pairs = server.get(name)
            if isinstance(pairs, list):
                server[name] = [{**pair, "value": MASK} for pair in pairs]
        masked.append(server)
    return msgspec.json.encode(masked)


def has_secrets(servers: list[Raw]) -> bool:
    """Whether masking hides anything."""
    return any(
        msgspec.json.decode(raw, type=_McpServer).env
        or msgspec.json.decode(raw, type=_McpServer).headers
        for raw in servers
    )
