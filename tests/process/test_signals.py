"""Signals of the daemon: all are heard, and none ends it once it is on its way out."""

import os
import signal
import subprocess
import sys

import anyio
import pytest

from acphost.transport.signals import heeded
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.anyio
#: Goes in and out as it is told to on stdin, under signals that come all the time.
REVOLVING = """
import signal, sys
from acphost.transport.signals import heeded
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
for _ in range(20_000):
    with heeded([signal.SIGTERM]):
        pass
"""


async def test_each_is_told_and_others_are_not() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    try:
        with heeded([signal.SIGUSR1]) as signals, anyio.fail_after(PATIENCE):
            os.kill(os.getpid(), signal.SIGWINCH)
            os.kill(os.getpid(), signal.SIGUSR1)
            assert await anext(signals) is signal.SIGUSR1
            os.kill(os.getpid(), signal.SIGUSR1)
            assert await anext(signals) is signal.SIGUSR1
        assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
        os.kill(os.getpid(), signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_there_is_no_moment_in_which_one_is_deadly() -> None:
    with subprocess.Popen([sys.executable, "-c", REVOLVING], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        while process.poll() is None:
            process.send_signal(signal.SIGTERM)
        assert process.returncode == 0
