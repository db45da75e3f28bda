"""The daemon, with every call noticed that may keep its event loop waiting.

    python unblocked.py python -m acphost serve …

What blockbuster knows to block is let through and told on stderr, once for each place, as a line
with the event `blocking_call`; `running_daemon` takes that for a mistake of the daemon. Calls in
other threads do not count, nor those in `ALLOWED`.
"""

import asyncio
import atexit
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import blockbuster.blockbuster as buster

#: Where the loop may wait, by file and function (`*`: any in it), and why that is right.
ALLOWED = {
    ("acphost/transport/lock.py", "acquire"): "before anybody is served",
    ("acphost/transport/unix.py", "bind"): "before anybody is served",
    ("acphost/transport/unix.py", "close"): "when nobody is served any more",
    ("acphost/transport/cgroups.py", "*"): "the files are the kernel's memory, on no disk",
    ("acphost/transport/process_table.py", "entry"): "one file of the kernel's memory",
    ("acphost/transport/process_table.py", "boot_id"): "one file of the kernel's memory",
    ("acphost/transport/child.py", "spawn"): "`look_up` has touched all it needs in a thread",
    ("acphost/log.py", "msg"): "few lines, into a file or to who keeps them",
    ("acphost/provider/runtimes.py", "traits_of"): "a look at a file of the configuration",
    ("acphost/provider/pool.py", "borrowed"): "a folder among the temporary ones",
    ("acphost/session/agents.py", "_try"): "a folder among the temporary ones",
    ("acphost/daemon/host.py", "stats"): "what is open is listed from the kernel's memory",
    ("acphost/session/decisions.py", "open"): "a question and a rule's answer are one step",
    ("acphost/session/receipts.py", "end"): "it is one step with the end of its run; bounded",
    ("acphost/workspace/tree.py", "close"): "what is left at the end of a run; bounded in time",
}

_ROOT = Path(__file__).parents[2]
#: What tests put between the daemon and the system waits for files of its own.
_OF_TESTS = "tests/support/skewed.py"
_DEPTH = 6


class _Busy(threading.local):
    """Whether this thread is just looking at a call."""

    is_on = False


class Notes:
    """Tells of calls, each place once."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()
        self._busy = _Busy()

    def watched(
        self,
        _modules: object,
        _excluded: object,
        func: Callable[..., Any],
        name: str,
        can_block: Iterable[tuple[str, Iterable[str]]],
        predicate: Callable[..., bool],
    ) -> Callable[..., Any]:
        """What blockbuster puts in the place of `func`."""

        def watch(*args: Any, **options: Any) -> Any:  # noqa: ANN401  whatever it takes
            if not self._busy.is_on and asyncio._get_running_loop() is not None:  # noqa: SLF001
                self._busy.is_on = True
                try:
                    if not predicate(*args, **options):
                        self._look(name, can_block)
                finally:
                    self._busy.is_on = False
            return func(*args, **options)

        return watch

    def _look(self, name: str, can_block: Iterable[tuple[str, Iterable[str]]]) -> None:
        frames = list(_frames(sys._getframe(2)))  # noqa: SLF001  as blockbuster does
        for file, function, _ in frames:
            if any(file.endswith(end) and function in names for end, names in can_block):
                return
            if file.endswith(_OF_TESTS) or (file, function) in ALLOWED or (file, "*") in ALLOWED:
                return
        ours = [frame for frame in frames if frame[0].startswith("acphost/")]
        if not ours or (name, str(ours[0][:2])) in self._told:
            return
        self._told.add((name, str(ours[0][:2])))
        at = " < ".join(f"{file}:{line} {function}" for file, function, line in ours[:_DEPTH])
        line = json.dumps({"level": "error", "event": "blocking_call", "call": name, "at": at})
        os.write(2, f"{line}\n".encode())


def _frames(frame: FrameType | None) -> Iterator[tuple[str, str, int]]:
    while frame is not None:
        file = frame.f_code.co_filename
        # The folder of a checkout may well be called acphost, too.
        is_ours = file.startswith(f"{_ROOT}/acphost/")
        told = file.removeprefix(f"{_ROOT}/") if is_ours else file
        yield told, frame.f_code.co_name, frame.f_lineno
        frame = frame.f_back


def watch() -> None:
    """Look at every call from now on."""
    sys.path[0] = str(_ROOT)  # the sources that this file belongs to
    import_module("acphost.cli.main")
    setattr(buster, "_wrap_blocking", Notes().watched)  # noqa: B010  to be told, not to be stopped
    buster.BlockBuster().activate()


def be(words: list[str]) -> NoReturn:
    """Be `acphost` with these words."""
    from acphost.cli.main import main as acphost  # noqa: PLC0415  only now it can be found

    sys.argv = ["acphost", *words]
    code = acphost()
    # An interpreter whose own types were changed may crash when it takes itself apart.
    atexit._run_exitfuncs()  # noqa: SLF001
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main() -> NoReturn:
    """Watch, and be the daemon."""
    watch()
    be(sys.argv[4:])  # after `python -m acphost` come its own words


if __name__ == "__main__":
    main()
