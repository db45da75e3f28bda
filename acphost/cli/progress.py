"""One line on a terminal that tells how far long work is; nothing elsewhere, nothing for short."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from acphost.cli.screen import Pen, err

#: Between two lines, in seconds: what is done sooner needs none.
QUIET = 0.5


class Progress:
    """The line; each call renews it, not more often than a person can read."""

    def __init__(self, pen: Pen, verb: str) -> None:
        self._pen = pen
        self._verb = verb
        self._next = time.monotonic() + QUIET
        self._is_shown = False

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """So much of something is done; None: nobody knows how much there is."""
        now = time.monotonic()
        if not self._pen.is_terminal or now < self._next:
            return
        self._next = now + QUIET
        self._is_shown = True
        part = "…" if not total else f"{done} of {total}"
        self._pen.stream.write(f"\r\x1b[K{self._verb} {what} {part}")
        self._pen.stream.flush()

    def clear(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._pen.stream.write("\r\x1b[K")
            self._pen.stream.flush()


@contextmanager
def working(verb: str, what: str) -> Generator[None]:
    """Say that something goes on for the length of the block, and for how long already."""
    pen = err()
    if not pen.is_terminal:
        yield
        return
    over = threading.Event()
    began = time.monotonic()

    def tell() -> None:
        shown = False
        while not over.wait(QUIET):
            shown = True
            pen.stream.write(f"\r\x1b[K{verb} {what} … {time.monotonic() - began:.0f} s")
            pen.stream.flush()
        if shown:
            pen.stream.write("\r\x1b[K")
            pen.stream.flush()

    # A thread: the work may be one long call that lets nobody else speak.
    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
