"""Makes the man page when a wheel is built: from the code, so that it cannot be out of date."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PAGE = Path("build", "man", "acphost.1")


class ManPage(BuildHookInterface):  # type: ignore[type-arg]  # the class is generic in some versions
    """Writes the page before the wheel's files are gathered."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling; the parser and the page need nothing but the standard library."""
        sys.path.insert(0, self.root)
        try:
            from acphost.cli.manual import manual
        finally:
            sys.path.remove(self.root)
        page = Path(self.root) / PAGE
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(manual(), encoding="utf-8")
        build_data["shared_data"][str(page)] = "share/man/man1/acphost.1"
