"""structlog as this program uses it: to stderr only, readable on a terminal, JSON elsewhere."""

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

if TYPE_CHECKING:
    from types import ModuleType

    from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40, "critical": 50}
_COLOURS = {"debug": "\x1b[2m", "warning": "\x1b[33m", "error": "\x1b[31m", "critical": "\x1b[31m"}
_RESET = "\x1b[0m"


class LogStream(Protocol):
    """Where lines go: stderr, or a file."""

    def write(self, text: str, /) -> object:
        """Take some text."""

    def flush(self) -> None:
        """Keep it."""

    def isatty(self) -> bool:
        """Whether a person reads along."""


def get_logger() -> "FilteringBoundLogger":
    """A logger that takes the set-up in force when it is used; structlog is loaded only then."""
    return cast("FilteringBoundLogger", _Logger())


class _Logger:
    def __getattr__(self, name: str) -> object:
        return getattr(_structlog().get_logger(), name)


def _structlog() -> "ModuleType":
    """structlog without rich, which it loads for tracebacks that are never wanted here: 200 ms."""
    modules = cast("dict[str, object]", sys.modules)
    hide_rich = "structlog" not in modules and "rich" not in modules
    if hide_rich:
        modules["rich"] = None  # makes `import rich` fail, nothing more
    try:
        import structlog  # noqa: PLC0415 - a command that logs nothing need not wait for it
    finally:
        if hide_rich:
            del modules["rich"]
    return structlog


def configure(level: str = "info", *, stream: LogStream | None = None, colour: bool = True) -> None:
    """Set logging up for the process; `level` is one of debug, info, warning, error, critical.

    `stream` is stderr unless a test says otherwise. `colour` is for terminals only.
    """
    target: LogStream = sys.stderr if stream is None else stream
    terminal = target.isatty()
    structlog = _structlog()
    structlog.configure(
        processors=_processors(terminal=terminal, colour=colour),
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: _Sink(target),
    )


class _Sink:
    """Writes lines; a log that cannot be written never harms what it tells about."""

    def __init__(self, stream: LogStream) -> None:
        self._stream = stream

    def msg(self, line: str) -> None:
        try:
            self._stream.write(line + "\n")
            self._stream.flush()
        except (OSError, ValueError):  # the reader is gone, the disk is full, the stream is closed
            pass

    debug = info = warning = error = critical = exception = msg


def _processors(*, terminal: bool, colour: bool) -> "list[Processor]":
    def readable(_: "WrappedLogger", __: str, event: "EventDict") -> str:
        return line_of(event, colour=colour)

    structlog = _structlog()
    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        _stamp,
        readable if terminal else _json,
    ]


def _stamp(_: "WrappedLogger", __: str, event: "EventDict") -> "EventDict":
    event["at"] = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return event


def _json(_: "WrappedLogger", __: str, event: "EventDict") -> str:
    ordered = {key: event.pop(key) for key in ("at", "level", "event") if key in event}
    line = msgspec.json.encode({**ordered, **_speakable(event)}, enc_hook=repr)
    return line.decode()


def _speakable(event: "EventDict") -> dict[str, object]:
    """Text in the values without lone surrogates, which undecodable file names bring along."""
    return {
        str(key): value.encode(errors="replace").decode() if isinstance(value, str) else value
        for key, value in event.items()
    }


def line_of(event: "EventDict", *, colour: bool) -> str:
    """An entry as a person reads it; `at`, `level` and `event` are in it."""
    at = str(event.pop("at"))
    level = str(event.pop("level"))
    name = str(event.pop("event"))
    exception = event.pop("exception", None)
    begin = _COLOURS.get(level, "") if colour else ""
    end = _RESET if begin else ""
    values = "".join(f" {key}={_short(value)}" for key, value in event.items())
    line = f"{at[11:23]} {begin}{level:<8}{end} {name}{values}"
    return line if exception is None else f"{line}\n{exception}"


def _short(value: object) -> str:
    """A value as one word where it can be, quoted and escaped otherwise."""
    text = value if isinstance(value, str) else repr(value)
    plain = text.isprintable() and " " not in text and '"' not in text and text != ""
    return text if plain or not isinstance(value, str) else repr(text)
