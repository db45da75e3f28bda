"""Exit codes, and which of them an error leads to."""

from enum import IntEnum

from acphost.errors import AcpHostError, DaemonUnreachableError, PermissionDeniedError, StartError


class Exit(IntEnum):
    """What the shell gets; sysexits where one fits."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    UNREACHABLE = 69
    TRY_AGAIN = 75
    NOT_PERMITTED = 77
    INTERRUPTED = 130
    BROKEN_PIPE = 141


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
