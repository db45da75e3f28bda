"""Golden frames: what a client and a real daemon say to each other, made the same at every time."""

import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.support.wire import Frame, Wire

#: Where they lie, one exchange a file.
FOLDER = Path(__file__).parents[2] / "fixtures" / "socket"

_MOMENT = "2026-01-01T12:00:00.000Z"
_ID = re.compile(r"\b([a-z]+)_[0-9a-f]{27}\b")
_PATTERNS = (
    (re.compile(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), _MOMENT),
    (re.compile(r"\b[0-9a-f]{64}\b"), "0" * 64),
    (re.compile(r"\blocal:[0-9a-f]{16}\b"), "local:" + "0" * 16),
    (re.compile(r"\buid:\d+\b"), "uid:1000"),
)
#: Members whose value is another on every machine or in every run, and what stands for it.
_BY_NAME: dict[str, object] = {
    "pid": 4711,
    "uptimeMs": 60_000,
    "ageMs": 1_000,
    "memoryBytes": 20_000_000,
    "durationMs": 5,
    "bytes": 65_536,
    "usedBytes": 65_536,
    "version": "1.0.0",
    "storeId": "store-of-the-example",
    "schemaRevision": "1-0123456789ab",
    "offset": "000000000000000042",
    "headOffset": "000000000000000042",
}


class Recorder:
    """Keeps exchanges by name, with the ids, times and paths of this run taken out."""

    def __init__(self, folder: Path) -> None:
        self._ids: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._paths = {str(folder): "/home/me", sys.executable: "python"}
        self.frames: dict[str, dict[str, Any]] = {}

    async def call(self, wire: Wire, method: str, params: Frame | None = None) -> Any:  # noqa: ANN401
        """Call a method, keep the exchange under its name, and return the result."""
        request: Frame = {"jsonrpc": "2.0", "id": 1, "method": method}
        if params is not None:
            request["params"] = params
        result = await wire.result(method, params)
        kept = _outline(result) if method in {"host/schema", "host/stats"} else result
        answer = {"jsonrpc": "2.0", "id": 1, "result": kept}
        self.keep(method.replace("/", "."), request=request, answer=answer)
        return result

    async def refused(self, wire: Wire, method: str, params: Frame | None = None) -> str:
        """Call a method that must fail, and keep the exchange under the error's word."""
        request: Frame = {"jsonrpc": "2.0", "id": 1, "method": method}
        if params is not None:
            request["params"] = params
        error = await wire.error(method, params)
        return self.keep_error(error, request=request)

    def keep_error(self, error: Frame, *, request_id: int | None = 1, **others: Any) -> str:  # noqa: ANN401
        """Keep an error under its word, with what led to it."""
        word: str = error["data"]["code"]
        answer = {"jsonrpc": "2.0", "id": request_id, "error": error}
        self.keep(f"error.{word}", **others, answer=answer)
        return word

    def keep(self, name: str, **lines: Any) -> None:  # noqa: ANN401  it is JSON
        """Keep what was said, under a name; of several exchanges the first."""
        self.frames.setdefault(name, {part: self._plain(line) for part, line in lines.items()})

    def _plain(self, value: Any, name: str = "") -> Any:  # noqa: ANN401  it is JSON
        if value is not None and name in _BY_NAME:
            return _BY_NAME[name]
        if isinstance(value, dict):
            return {key: self._plain(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [self._plain(each, name) for each in value]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        for real, shown in self._paths.items():
            text = text.replace(real, shown)
        for pattern, shown in _PATTERNS:
            text = pattern.sub(shown, text)
        return _ID.sub(lambda match: self._id(match[0], match[1]), text)

    def _id(self, text: str, prefix: str) -> str:
        if text not in self._ids:
            self._counts[prefix] = self._counts.get(prefix, 0) + 1
            self._ids[text] = f"{prefix}_{self._counts[prefix]:027x}"
        return self._ids[text]


def _outline(result: Frame) -> Frame:
    """Of an answer without a fixed shape, or one of many pages, the names at its top."""
    return {name: {} for name in sorted(result)}


def text_of(frame: dict[str, Any]) -> str:
    """An exchange as it lies in its file."""
    return json.dumps(frame, indent=2, ensure_ascii=False) + "\n"


def stored() -> dict[str, str]:
    """The exchanges that lie in the folder, by name."""
    return {file.stem: file.read_text() for file in sorted(FOLDER.glob("*.json"))}


def store(frames: dict[str, dict[str, Any]]) -> None:
    """Make the folder hold these and no others."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stored().keys() - frames.keys():
        (FOLDER / f"{name}.json").unlink()
    for name, frame in frames.items():
        (FOLDER / f"{name}.json").write_text(text_of(frame))
