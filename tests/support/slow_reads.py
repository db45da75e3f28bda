"""The daemon, where the store takes its time over one read that stands between two steps.

    python slow_reads.py SECONDS python -m acphost serve …

An agent that answers and dies does so while the daemon looks up what to make of the answer.
"""

import sys
from pathlib import Path

import anyio


def slow_down(seconds: float) -> None:
    """Have the count of the turns that an agent should know take so much longer."""
    from acphost.journal.reader import Reader  # noqa: PLC0415  the path to it is known by now

    really = Reader.turns_in

    async def turns_in(self: Reader, session_key: int, acp_session_id: str) -> int:
        count = await really(self, session_key, acp_session_id)
        await anyio.sleep(seconds)
        return count

    Reader.turns_in = turns_in  # type: ignore[method-assign]


def main() -> None:
    """Slow it down, and be what follows."""
    _, seconds, _, *rest = sys.argv
    sys.path[0] = str(Path(__file__).parents[2])  # the sources that this file belongs to
    from tests.support.becoming import become  # noqa: PLC0415  only now it can be found

    slow_down(float(seconds))
    become(rest)


if __name__ == "__main__":
    main()
