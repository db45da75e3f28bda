"""Telling the service manager how we fare: sd_notify(3) in a few lines of our own."""

import socket
from collections.abc import Mapping

import anyio

from acphost.log import get_logger

_MICRO = 1_000_000
#: The manager's queue may be full for a moment.
_TRIES, _PAUSE = 20, 0.05

log = get_logger()


class Notifier:
    """A datagram to the service manager now and then; to nobody where there is none."""

    def __init__(self, address: str | None, watchdog: float | None) -> None:
        self._address = address
        #: Seconds within which the manager wants a sign of life; None: it wants none.
        self.watchdog = watchdog

    @classmethod
    def of(cls, environ: Mapping[str, str], pid: int) -> "Notifier":
        """By the variables that systemd sets for the process `pid`."""
        named = environ.get("NOTIFY_SOCKET", "")
        # A leading @ stands for the NUL of an abstract name; other families are not for us.
        address = f"\0{named[1:]}" if named.startswith("@") else named
        if not named.startswith(("/", "@")):
            return cls(None, None)
        return cls(address, _watchdog(environ, pid))

    @property
    def is_heard(self) -> bool:
        """Whether anybody listens."""
        return self._address is not None

    async def tell(self, *fields: str) -> None:
        """Send fields such as `READY=1`; a manager that does not listen does no harm."""
        if self._address is None:
            return
        message = "\n".join(fields).encode(errors="replace")
        for _ in range(_TRIES):
            try:
                with _datagram() as out:
                    out.sendto(message, self._address)
            except BlockingIOError:
                await anyio.sleep(_PAUSE)
            except OSError as exc:
                log.warning("service_manager_not_told", reason=exc.strerror)
                return
            else:
                return
        log.warning("service_manager_not_told", reason="it does not read")


def _datagram() -> socket.socket:
    out = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    out.setblocking(False)
    return out


def _watchdog(environ: Mapping[str, str], pid: int) -> float | None:
    wanted = environ.get("WATCHDOG_USEC", "")
    meant = environ.get("WATCHDOG_PID", str(pid))
    if not wanted.isdecimal() or int(wanted) == 0 or meant != str(pid):
        return None
    return int(wanted) / _MICRO


def status(text: str) -> str:
    """A line for `systemctl status`."""
    return "STATUS=" + " ".join(text.split())


def extension(seconds: float) -> str:
    """More time for the state at hand than the unit gives."""
    return f"EXTEND_TIMEOUT_USEC={round(seconds * _MICRO)}"
