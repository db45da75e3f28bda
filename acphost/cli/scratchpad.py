"""A text that a person changes in an editor of theirs."""

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from acphost.cli.exits import CommandError


def edited(text: str) -> str:
    """The text as it is when `$VISUAL`, `$EDITOR` or vi has ended. Raises CommandError."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory(prefix="acphost-") as folder:  # readable by its owner alone
        file = Path(folder) / "prompt.md"
        file.write_text(text, encoding="utf-8")
        try:
            code = subprocess.call([*shlex.split(editor), str(file)])  # noqa: S603  (the person's own)
        except (OSError, ValueError) as exc:
            raise CommandError(f"cannot start the editor {editor!r}: {exc}; set EDITOR") from exc
        if code:
            raise CommandError(f"the editor {editor!r} ended with {code}; nothing was changed")
        return file.read_text(encoding="utf-8", errors="replace")
