"""The `acphost` program: one command, one exit code, and never a traceback to a person."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from types import SimpleNamespace

from acphost.cli.exits import CommandError, Exit, exit_code
from acphost.cli.quick import quick_options
from acphost.cli.text import check_words, fit_stdout
from acphost.errors import AcpHostError

#: What they print is read by programs, always.
_FOR_PROGRAMS = frozenset({"schema", "completion"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that `argv` names; what it prints is for people unless `--json` is given."""
    words = list(sys.argv[1:] if argv is None else argv)
    _open_missing_streams()
    try:
        code = _run(words)
        # Here, where it can still be told apart, rather than when the interpreter ends.
        sys.stdout.flush()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except Exception as exc:  # border: what a person sees is one line
        return _report(exc)
    return code


def _run(words: Sequence[str]) -> int:
    check_words(words)
    options = quick_options(words) or _parsed(words)
    fit_stdout(is_exact=getattr(options, "json", False) or options.module in _FOR_PROGRAMS)
    # A command is a module of its own, so that none pays for the imports of another.
    module = import_module(f"acphost.cli.{options.module}")
    code: int = module.run(options)
    return code


def _parsed(words: Sequence[str]) -> SimpleNamespace:
    from acphost.cli.parser import parse

    return SimpleNamespace(**vars(parse(words)))


def _open_missing_streams() -> None:
    """Give a program that was started without stdin, stdout or stderr the null device for it.

    Otherwise the next socket would get that number, and be written to by whoever prints.
    """
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def _report(exc: Exception) -> int:
    """Say what went wrong in one line; the traceback only for those who ask for it."""
    if os.environ.get("ACPHOST_DEBUG"):
        import traceback

        traceback.print_exception(exc)
    cause = _single(exc)
    if isinstance(cause, BrokenPipeError):
        # The reader has gone, as in `acphost ls | head -1`; Python would complain at exit again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.BROKEN_PIPE
    message = str(cause)
    if not isinstance(cause, AcpHostError | CommandError | OSError):
        message = f"internal error: {type(cause).__name__}: {cause} (ACPHOST_DEBUG=1 shows where)"
    from acphost.cli.screen import err

    # An agent's last words may stand in it.
    print(f"acphost: error: {err().safe(message)}", file=sys.stderr)
    return exit_code(cause)


def _single(exc: BaseException) -> BaseException:
    """What a task group was left with, where it is one thing."""
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    return exc


if __name__ == "__main__":
    sys.exit(main())
