"""Text at the edge of the program: the daemon speaks UTF-8, whatever the locale here says."""

import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path

from acphost.cli.exits import CommandError, Exit


def check_words(words: Sequence[str]) -> None:
    """Refuse what could only be sent as something else. Raises CommandError."""
    for word in words:
        if not _is_text(word):
            raise CommandError(f"an argument is not UTF-8: {os.fsencode(word)!r}", Exit.USAGE)


def sendable(path: Path) -> str:
    """A path as the daemon can be told it. Raises CommandError."""
    if not _is_text(str(path)):
        raise CommandError(
            f"the name of this folder is not UTF-8, and the daemon cannot be told it:"
            f" {os.fsencode(path)!r}"
        )
    return str(path)


def read_stdin() -> str:
    """All that stdin holds: UTF-8, or else what the locale says. Raises CommandError."""
    data = sys.stdin.buffer.read()
    problem = None
    for encoding in ("utf-8", sys.stdin.encoding):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError as exc:
            problem = problem or exc
    assert problem is not None, "it was not decoded"
    raise CommandError(
        f"what stdin holds is not UTF-8 text: byte {problem.start + 1} of {len(data)}", Exit.USAGE
    )


def fit_stdout(*, is_exact: bool) -> None:
    """Let stdout take every character.

    What programs read is UTF-8 everywhere; for a person what the locale lacks is a question mark.
    """
    if not isinstance(sys.stdout, TextIOWrapper):
        return
    if is_exact:
        sys.stdout.reconfigure(encoding="utf-8")
    else:
        sys.stdout.reconfigure(errors="replace")


def _is_text(text: str) -> bool:
    """Whether it is more than bytes that nobody could read."""
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)
