"""A log that perhaps nobody reads."""

import os

from acphost.daemon.log_stream import Unhurried


def test_what_was_left_out_is_counted() -> None:
    """Long lines are cut where the room ends; as soon as there is some again, it is told."""
    out, into = os.pipe()
    with os.fdopen(out, "rb", buffering=0) as reader, os.fdopen(into, "wb", buffering=0):
        log = Unhurried(into)
        assert not log.isatty()
        for number in range(200):
            log.write(f"{number} {'x' * 10_000}\n")
        assert reader.read(1 << 20).startswith(b"0 xxx")
        log.write("and on\n")
        told, line = reader.read(1 << 20).decode().splitlines()
        assert "lines of the log were left out" in told
        assert 100 < int(told.split()[1]) < 200
        assert line == "and on"
        log.write("é\udce9\n")
        assert reader.read(1 << 20).decode() == "é?\n"
