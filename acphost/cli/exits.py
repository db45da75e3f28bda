"""Exit codes, and which of them an error leads to."""

from enum import IntEnum

from acphost.errors import AcpHostError, DaemonUnreachableError, PermissionDeniedError, StartError


class Exit(IntEnum):
    """What the shell gets; sysexits where one fits."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    ALREADY_RUNNING = 3
    UNREACHABLE = 69
    TRY_AGAIN = 75
    NOT_PERMITTED = 77
    CONFIGURATION = 78
    INTERRUPTED = 130
    BROKEN_PIPE = 141


#: Each code in words.
MEANINGS = {
    Exit.OK: "done",
    Exit.FAILURE: "it failed, or something was found; the message on stderr says what",
    Exit.USAGE: "wrong usage of the command",
    Exit.ALREADY_RUNNING: "a daemon runs already on that state folder",
    Exit.UNREACHABLE: "no daemon answers",
    Exit.TRY_AGAIN: "not now: busy, starting, full disk; the same command may work later",
    Exit.NOT_PERMITTED: "not permitted",
    Exit.CONFIGURATION: "configuration, socket path or store must be put right first",
    Exit.INTERRUPTED: "interrupted by Ctrl-C",
    Exit.BROKEN_PIPE: "the reader of the output has gone",
}
#: Ends of the daemon that starting it again would only repeat; the systemd unit knows them.
NO_RESTART = (Exit.USAGE, Exit.ALREADY_RUNNING, Exit.CONFIGURATION)


class CommandError(Exception):
    """A command cannot do what it was told; the message is all a person needs."""

    def __init__(self, message: str, exit_code: int = Exit.FAILURE) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def exit_code(exc: BaseException) -> int:
    """The exit code for what went wrong."""
    match exc:
        case CommandError() | StartError():
            return exc.exit_code
        case DaemonUnreachableError():
            return Exit.UNREACHABLE
        case PermissionDeniedError():
            return Exit.NOT_PERMITTED
        case AcpHostError() if exc.retryable:
            return Exit.TRY_AGAIN
        case _:
            return Exit.FAILURE
