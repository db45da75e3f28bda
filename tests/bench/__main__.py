"""`python -m tests.bench [NAME …]`: speed and size of the daemon beside a bare loop.

Both are measured in one run, in turns, on the same disk; a figure is the median of its rounds. The
exit code tells whether everything worked, not whether a target was met.
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.bench import machine
from tests.bench.items import ITEMS, Plan
from tests.bench.report import BenchError, Item


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ITEMS)} (all)")
    parser.add_argument("--rounds", type=int, default=4, help="of each measurement (%(default)s)")
    parser.add_argument(
        "--window", type=float, default=60, help="seconds of rest to watch (%(default)g)"
    )
    parser.add_argument(
        "--dir",
        type=Path,
        default=Path("/var/tmp"),
        help="where journals are written: on the disk that is to be measured (%(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(ITEMS)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}, only {', '.join(ITEMS)}")
    return arguments


def main() -> int:
    """Measure what was asked for; 0 if all of it worked."""
    arguments = _arguments()
    for number in (signal.SIGTERM, signal.SIGINT):
        # As an exception, so that what was started is ended and removed.
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    began, folder = time.monotonic(), Path(tempfile.mkdtemp(prefix="ah-", dir=arguments.dir))
    plan = Plan(folder, arguments.rounds, arguments.window)
    items: list[Item] = []
    failures: dict[str, str] = {}
    try:
        about = machine.describe(folder)
        if not arguments.json:
            print("\n".join(f"{name:<8}{fact}" for name, fact in about.items()))
        for name in arguments.names or ITEMS:
            try:
                item = ITEMS[name](plan)
            except (BenchError, OSError, subprocess.SubprocessError) as exc:
                failures[name] = str(exc)
                print(f"{name}: did not work: {exc}", file=sys.stderr)
                continue
            items.append(item)
            if not arguments.json:
                print("\n".join(["", *item.lines()]), flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    seconds = time.monotonic() - began
    if arguments.json:
        told = {
            "machine": about, "items": [item.data() for item in items],
            "failures": failures, "seconds": seconds,
        }  # fmt: skip
        print(json.dumps(told, indent=2))
    else:
        print(f"\n{seconds:.0f} s; a ratio is ours by the other, medians of {plan.rounds} rounds")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
