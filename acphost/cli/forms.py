"""Forms and addresses of agents at the terminal: shown, and answered in the words of a shell."""

from collections.abc import Sequence
from typing import Any, Literal, cast

import msgspec

from acphost.cli.exits import CommandError, Exit
from acphost.cli.screen import Pen, one_line, short
from acphost.client.client import Client
from acphost.wire.host import Decision

KIND = "elicitation"
ACTIONS = ("accept", "decline", "cancel")
_YES_OR_NO = {"true": True, "yes": True, "false": False, "no": False}


def show_form(pen: Pen, decision: Decision) -> None:
    """Below the question: where it leads, or what is to be filled in."""
    request = _request(decision)
    if request.get("url"):
        pen.line(pen.safe(f"    at {request.get('host')}: {request['url']}"))
        pen.line(f"    {'|'.join(ACTIONS)}")
        return
    pen.line(f"    {'|'.join(ACTIONS)}, to accept with:")
    needed = _schema(request).get("required") or []
    for name, field in _fields(request).items():
        title = field.get("description") or field.get("title") or ""
        mark = "" if name in needed else "  (may be left out)"
        pen.line(pen.safe(f"      {name}={_offer(field)}  {one_line(str(title), 60)}{mark}"))


def title_of(request: object) -> str:
    """What is asked, in one line."""
    message = request.get("message") if isinstance(request, dict) else None
    return one_line(str(message or "a form"), 100)


def how_to_answer(payload: dict[str, Any]) -> str:
    """The command that answers it from another terminal."""
    return f"acphost permit {short(str(payload.get('elicitationId')))} {'|'.join(ACTIONS)}"


async def answer_form(
    client: Client, decision: Decision, action: str | None, words: Sequence[str]
) -> Decision:
    """Answer by the words of the command line. Raises CommandError."""
    if action not in ACTIONS:
        raise CommandError(f"say which: {', '.join(ACTIONS)}", Exit.USAGE)
    fields = _fields(_request(decision))
    content = dict(_filled(word, fields) for word in words) if action == "accept" else {}
    return await client.respond_to_form(
        decision.permission_id,
        cast('Literal["accept", "decline", "cancel"]', action),
        content or None,
    )


def _filled(word: str, fields: dict[str, dict[str, Any]]) -> tuple[str, object]:
    """`NAME=VALUE`, the value in the type of the field; whether it fits is told by the daemon."""
    name, equals, text = word.partition("=")
    if not equals:
        raise CommandError(f"{word!r} is not NAME=VALUE", Exit.USAGE)
    kind = fields.get(name, {}).get("type")
    if kind == "boolean":
        return name, _YES_OR_NO.get(text.lower(), text)
    if kind == "array":
        return name, [part for part in text.split(",") if part]
    if kind in ("integer", "number"):
        try:
            return name, msgspec.json.decode(text.encode(), type=int | float)
        except msgspec.DecodeError:
            return name, text
    return name, text


def _offer(field: dict[str, Any]) -> str:
    if field.get("type") == "boolean":
        return "true|false"
    items = field.get("items") if isinstance(field.get("items"), dict) else {}
    for source in (field, items or {}):
        values = source.get("enum")
        titled = source.get("oneOf") or source.get("anyOf")
        if values is None and titled:
            values = [each.get("const") for each in titled if isinstance(each, dict)]
        if values:
            return "|".join(map(str, values))
    return f"{str(field.get('type') or 'value').upper()}"


def _request(decision: Decision) -> dict[str, Any]:
    request = msgspec.json.decode(decision.request)
    return request if isinstance(request, dict) else {}


def _schema(request: dict[str, Any]) -> dict[str, Any]:
    schema = request.get("requestedSchema")
    return schema if isinstance(schema, dict) else {}


def _fields(request: dict[str, Any]) -> dict[str, dict[str, Any]]:
    fields = _schema(request).get("properties")
    if not isinstance(fields, dict):
        return {}
    return {name: field if isinstance(field, dict) else {} for name, field in fields.items()}
