"""`acphost demo`: the show on this terminal, or as plain lines."""

import signal

import anyio

from acphost.cli.exits import Exit
from acphost.cli.parser import Options
from acphost.cli.render import Renderer
from acphost.cli.screen import Pen, out
from acphost.demo.show import Fact, show
from acphost.wire.event import Event


def run(_: Options) -> int:
    """Run the command."""
    return anyio.run(_demo)


async def _demo() -> int:
    shown: bool | None = None
    async with anyio.create_task_group() as tasks:
        # Cancelled rather than killed, so that nothing of the demo is left behind.
        tasks.start_soon(_cancel_on_signal, tasks.cancel_scope)
        shown = await show(_Terminal(out()))
        tasks.cancel_scope.cancel()
    if shown is None:
        return Exit.INTERRUPTED
    return Exit.OK if shown else Exit.FAILURE


async def _cancel_on_signal(scope: anyio.CancelScope) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for _ in signals:
            scope.cancel()


class _Terminal:
    """The show as text; pleasant where there are colours, plain where there are none."""

    def __init__(self, pen: Pen) -> None:
        self._pen = pen
        self._renderer = Renderer(pen, pen)

    def heading(self, text: str) -> None:
        """A new scene begins."""
        self._renderer.finish()
        self._pen.line()
        self._pen.line(text, "bold")

    def say(self, text: str) -> None:
        """The narrator speaks."""
        self._renderer.finish()
        self._pen.line(f"-- {text}", "yellow")

    def event(self, event: Event) -> None:
        """An event reached a client."""
        self._renderer.show(event)

    def facts(self, facts: list[Fact]) -> None:
        """The end: what was shown."""
        for fact in facts:
            mark = self._pen.paint("✓", "green") if fact.holds else self._pen.paint("✗", "red")
            self._pen.line(f"  {mark} {fact.text}")
        self._pen.line()
        if all(fact.holds for fact in facts):
            self._pen.line(
                "Nothing of this demo is left. Next: acphost serve, then acphost send hello"
            )
        else:
            self._pen.line("Something was not as promised.", "red")
