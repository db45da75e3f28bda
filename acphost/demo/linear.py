"""The linear part of a script: what the host sends is kept for the steps that receive it."""

from collections.abc import Callable, Iterator, Sequence

from acphost.demo.books import Incoming
from acphost.demo.memory import prompt_text
from acphost.demo.script import EVENTS, Match, Step, Word, parse_match
from acphost.demo.stage import Host, InterruptedBlock, Stage

_FOREVER = 1 << 60


def subject(incoming: Incoming) -> str:
    """What the text or pattern of a rule or receiving step is compared with."""
    match incoming.method:
        case "session/prompt":
            return prompt_text(incoming.params)
        case "garbage":
            return incoming.line
    return incoming.session_id or ""


class _Due:
    """A receiving step, and how many messages it still has a use for."""

    def __init__(self, step: Step, method: str, match: Match, left: int) -> None:
        self.step = step
        self.method = method
        self.match = match
        self.left = left


class Linear:
    """The one thread that plays from top to bottom, and the letters it has not opened yet."""

    def __init__(self, host: Host, steps: Sequence[Step], words: Callable[[str], Word]) -> None:
        self._host = host
        self._steps = steps
        self._words = words
        self._due = list(_receivers(steps, words, 1))
        self._inbox: list[tuple[_Due, Incoming]] = []
        self._waiting: Step | None = None
        self._ended = False
        self.stage = Stage(host, None, None)
        self.stage.linear = True

    def play(self) -> None:
        """Play all steps; after a cancel go on with the next one that receives."""
        stage, skipping = self.stage, False
        for step in self._steps:
            skipping = skipping and not self._words(step.word).receives
            if skipping:
                continue
            try:
                self._host.run(stage, [step])
            except InterruptedBlock as stopped:
                if stopped.reason == "eof":
                    return
                skipping = True
                self._after_interruption(stage, stopped.reason)

    def _after_interruption(self, stage: Stage, reason: str) -> None:
        stage.batch = None
        if reason == "cancel" and stage.session is not None:
            for prompt in [p for p in stage.session.open if p.stage is stage]:
                stage.write(
                    self._host.books.answer(
                        prompt, {"result": {"stopReason": "cancelled"}}, once=True
                    )
                )
        with self._host.changed:
            stage.stop = None
            self._host.changed.notify_all()

    def keep(self, incoming: Incoming) -> Stage | None:
        """Keep a message if a step still to come receives it; returns the stage it goes to."""
        with self._host.changed:
            for due in self._due:
                fits = due.left > 0 and due.method == incoming.method
                if fits and due.match.groups(subject(incoming)) is not None:
                    due.left -= 1
                    self._inbox.append((due, incoming))
                    self._host.books.hear(incoming)
                    return self._opened_by(due.step)
        return None

    def _opened_by(self, step: Step) -> Stage:
        self._host.changed.notify_all()
        if self._waiting is step:
            self.stage.settled = False
        return self.stage

    def give_back(self, incoming: Incoming) -> None:
        """Forget a message that is still unopened: it has been dealt with."""
        with self._host.changed:
            for item in [item for item in self._inbox if item[1] is incoming]:
                self._inbox.remove(item)
                item[0].left += 1

    def take(self, stage: Stage, step: Step) -> Incoming:
        """The next message kept for a receiving step; it is waited for."""
        self._host.inlet.allow(allowed=True)

        def arrived() -> bool:
            return self._ended or any(due.step is step for due, _ in self._inbox)

        with self._host.changed:
            self._waiting = step
        stage.wait(arrived)
        with self._host.changed:
            self._waiting = None
            for item in self._inbox:
                if item[0].step is step:
                    self._inbox.remove(item)
                    stage.values |= item[0].match.groups(subject(item[1])) or {}
                    item[1].stage = stage
                    return item[1]
        raise InterruptedBlock("eof")

    def close(self) -> list[Incoming]:
        """There is no step left; returns what nobody opened."""
        with self._host.changed:
            left = [incoming for _, incoming in self._inbox]
            self._inbox, self._due = [], []
        return left

    def end_of_input(self) -> None:
        """Nothing will come any more."""
        with self._host.changed:
            self._ended = True
            self._host.changed.notify_all()


def _receivers(steps: Sequence[Step], words: Callable[[str], Word], times: int) -> Iterator[_Due]:
    for step in steps:
        method = words(step.word).receives
        argument = step.args[0] if step.args else None
        if method == "*" and argument is not None:
            name = argument.plain()
            yield _Due(step, EVENTS.get(name, name), Match(), times)
        elif method:
            has_match = method not in ("initialize", "session/new", "session/cancel")
            match = parse_match(argument if has_match else None, step.where)
            yield _Due(step, method, match, times)
        inner = times
        if step.word == "REPEAT":
            count = step.args[0].plain()
            inner = times * int(count) if count.isdecimal() else _FOREVER
        yield from _receivers(step.block, words, inner)
        yield from _receivers(step.otherwise, words, inner)
