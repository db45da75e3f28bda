"""Which service manager this system has."""

import sys
from collections.abc import Mapping

from acphost.service.manager import ServiceManager


def manager_of(environ: Mapping[str, str]) -> ServiceManager:
    """That of this user."""
    if sys.platform == "darwin":
        from acphost.service.launchctl import Launchd  # noqa: PLC0415  one of them is enough

        return Launchd(environ)
    from acphost.service.systemctl import Systemd  # noqa: PLC0415  as above

    return Systemd(environ)
