"""The fake agent itself: who gets what the host sent, and how blocks are played and stopped."""

import os
import threading
from collections.abc import Callable, Sequence

from acphost.demo import plain_json
from acphost.demo.books import Asked, Books, Incoming, Session
from acphost.demo.defaults import INITIALIZE, body_for, closing_body, unknown_session
from acphost.demo.expectations import MCP_ARRAYS, mcp_fault, violation
from acphost.demo.flow import ViolationError
from acphost.demo.inlet import Inlet
from acphost.demo.linear import Linear, subject
from acphost.demo.memory import Store
from acphost.demo.outlet import Outlet, Record
from acphost.demo.plain_json import NOTHING
from acphost.demo.script import Rule, Script, Step, holds
from acphost.demo.stage import InterruptedBlock, Stage
from acphost.demo.tokens import JsonObject, ScriptError
from acphost.demo.vocabulary import Vocabulary

_LAST_GRACE = 2.0
_SETTLE_GRACE = 0.1
_CANCELLED: JsonObject = {"result": {"stopReason": "cancelled"}}


class Agent:
    """One fake agent on one pair of pipes."""

    def __init__(
        self,
        script: Script,
        words: Vocabulary,
        inlet: Inlet,
        outlet: Outlet,
        *,
        store: Store,
        record: Record,
        values: dict[str, str],
    ) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.inlet = inlet
        self.outlet = outlet
        self.record = record
        self.books = Books(store, self.changed)
        self.values = values
        self.labels: dict[str, Incoming | Asked] = {}
        self.init: JsonObject = INITIALIZE
        self.own_names = script.own_names()
        self.expectations: set[str] = set()
        self.any_session = False
        self._script = script
        self._words = words
        self._stages: set[Stage] = set()
        self._linear = Linear(self, script.steps, lambda name: words[name].word)

    # -- what blocks ask for ----------------------------------------------------------------------

    def run(self, stage: Stage, steps: Sequence[Step]) -> None:
        """Play steps, one after the other."""
        for step in steps:
            stage.check()
            before, stage.remembering = stage.session_id, "memory" not in step.options
            if "session" in step.options:
                stage.session_id = stage.option(step, "session")
            try:
                self._words[step.word].run(stage, step)
            except ScriptError as exc:
                if str(exc).startswith(self._script.path):
                    raise
                raise ScriptError(f"{step.where}: {exc}") from exc
            if "session" in step.options:
                stage.session_id = before

    def block(self, name: str, where: str) -> Sequence[Step]:
        """A block by its name.

        Raises ScriptError where there is none.
        """
        if name not in self._script.blocks:
            raise ScriptError(f"{where}: nothing is defined as {name!r}")
        return self._script.blocks[name]

    def take(self, stage: Stage, step: Step) -> Incoming:
        """The next message kept for a receiving step."""
        return self._linear.take(stage, step)

    def drain(self, stage: Stage) -> None:
        """Wait until no other block is running."""
        stage.wait(lambda: not self._stages - {stage})

    # -- what the host says -----------------------------------------------------------------------

    def start(self) -> None:
        """Begin the linear part; nothing is read before it first waits."""
        self._stages.add(self._linear.stage)
        self._thread(self._play_linear)

    def _play_linear(self) -> None:
        self._linear.play()
        self._finish(self._linear.stage)
        self._linear.stage.settle()
        self.inlet.allow(allowed=True)
        for incoming in self._linear.close():
            self._by_rule(incoming)

    def receive(self, line: bytes) -> None:
        """Give one line of stdin to whom it concerns."""
        try:
            message = plain_json.decode(line)
        except ValueError:
            message = None
        self.record.read_line(line, message)
        text = line.decode(errors="replace")
        if not isinstance(message, dict):
            self._by_rule(Incoming("garbage", {}, line=text))
        elif isinstance(message.get("method"), str):
            params = message.get("params")
            body: JsonObject = params if isinstance(params, dict) else {}
            given = message.get("id", NOTHING)
            self._dispatch(Incoming(message["method"], body, given, text))
        elif "id" in message:
            self.books.settle(message)

    def _dispatch(self, incoming: Incoming) -> None:
        session = self.books.known(incoming.session_id)
        found = violation(self.expectations, incoming, session)
        if found is not None:
            raise ViolationError(found)
        if MCP_ARRAYS in self.expectations and "mcpServers" in incoming.params:
            fault = mcp_fault(incoming.params)
            if fault is not None:
                self._answer_once(incoming, {"error": {"code": -32602, "message": fault}})
                return
        if incoming.method == "session/prompt":
            self.books.enter_prompt(incoming)
        stage = self._linear.keep(incoming)
        if stage is None:
            self._by_rule(incoming)
        else:
            self._let_settle(stage)

    def _takes_prompts(self, session: Session | None) -> bool:
        return self.any_session or (session is not None and session.live)

    def _by_rule(self, incoming: Incoming) -> None:
        session = self.books.known(incoming.session_id)
        if incoming.method == "session/prompt" and not self._takes_prompts(session):
            self._answer_once(incoming, unknown_session(incoming.session_id))
            return
        if incoming.method in ("session/load", "session/resume"):
            session = self.books.session(incoming.session_id or "")
            session.disowned = False
        stage = Stage(self, incoming.session_id, incoming)
        rule = self._rule_for(incoming, stage)
        if incoming.method == "session/cancel":
            self._cancel(session, rule, stage)
        elif rule is not None:
            if not rule.deaf:
                self.books.hear(incoming)
            self._perform(stage, rule)
        elif incoming.is_request:
            if incoming.method in ("session/close", "session/delete") and session is not None:
                self._stop_prompts(session)
            self.books.hear(incoming)
            self._answer_once(incoming, body_for(stage, incoming))

    def _rule_for(self, incoming: Incoming, stage: Stage) -> Rule | None:
        count = stage.session.count if stage.session is not None else 0
        for rule in self._script.rules:
            if rule.event != incoming.method or rule.used or rule.nth not in (None, count):
                continue
            groups = rule.match.groups(subject(incoming))
            if groups is None or (rule.guard and not holds(rule.guard, stage.lookup)):
                continue
            rule.used = rule.once
            stage.values |= groups
            return rule
        return None

    # -- cancel -----------------------------------------------------------------------------------

    def _cancel(self, session: Session | None, rule: Rule | None, stage: Stage) -> None:
        if rule is None:
            if session is not None:
                self._stop_prompts(session)
            return
        dropped = []
        if session is not None and not rule.keep:
            running = [prompt.stage for prompt in session.open if prompt.stage is not None]
            dropped = [other for other in running if other.interrupt("drop")]
        self._perform(stage, rule, lambda: all(not o.running or o.stop is None for o in dropped))

    def _stop_prompts(self, session: Session) -> None:
        """Let every open prompt of a session end as cancelled."""
        for prompt in list(session.open):
            self._linear.give_back(prompt)
            if prompt.stage is None or not prompt.stage.interrupt("cancel"):
                self._answer_once(prompt, _CANCELLED)

    def _answer_once(self, incoming: Incoming, body: JsonObject) -> None:
        self.outlet.write(self.books.answer(incoming, body, once=True))

    # -- blocks -----------------------------------------------------------------------------------

    def _perform(self, stage: Stage, rule: Rule, ready: Callable[[], bool] = lambda: True) -> None:
        """Play a rule in a thread of its own."""
        if stage.request is not None:
            stage.request.stage = stage
        self._stages.add(stage)
        self._thread(lambda: self._play(stage, rule, ready))
        self._let_settle(stage)

    def _let_settle(self, stage: Stage) -> None:
        """Keep the order of what is read and what is done about it.

        The next line is read once the block has ended or waits; a block that cannot even write
        does not hold up the reading for longer than the grace.
        """
        with self.changed:
            self.changed.wait_for(lambda: stage.settled, _SETTLE_GRACE)

    def _play(self, stage: Stage, rule: Rule, ready: Callable[[], bool]) -> None:
        try:
            stage.wait(ready)
            self.run(stage, rule.block)
        except InterruptedBlock:
            stage.batch = None
        self._finish(stage)
        self._close_request(stage)
        stage.settle()

    def _close_request(self, stage: Stage) -> None:
        """Answer what the block has left unanswered."""
        request = stage.request
        if request is None or not request.is_request or stage.silent:
            return
        if stage.stop == "cancel":
            self._answer_once(request, _CANCELLED)
        elif stage.stop is None:
            self._answer_once(request, closing_body(self, request))

    def _finish(self, stage: Stage) -> None:
        with self.changed:
            stage.running = False
            self._stages.discard(stage)
            self.changed.notify_all()

    def _thread(self, play: Callable[[], None]) -> None:
        def guarded() -> None:
            try:
                play()
            except ScriptError as exc:
                self.fail(exc)
            except Exception:  # border: of a thread that the host waits for
                # A fault of ours, or of words a script brought along: no host may wait for it.
                import traceback  # noqa: PLC0415  hardly ever

                traceback.print_exc()
                os._exit(70)

        threading.Thread(target=guarded, daemon=True).start()

    def fail(self, exc: ScriptError) -> None:
        """A script that cannot go on ends the process with 2, a violation with 3."""
        is_violation = isinstance(exc, ViolationError)
        self.record.write(**{"violation" if is_violation else "error": str(exc)})
        os.write(2, f"acphost fake-agent: {exc}\n".encode())
        os._exit(3 if is_violation else 2)

    # -- the end ----------------------------------------------------------------------------------

    def signalled(self) -> None:
        """SIGTERM came and there is a rule for it."""
        self._by_rule(Incoming("term", {}))

    def end_of_input(self) -> None:
        """Stdin ended: the rule for it, or let running blocks come to their next wait."""
        self._linear.end_of_input()
        stage = Stage(self, None, None)
        rule = self._rule_for(Incoming("eof", {}), stage)
        if rule is not None:
            self.run(stage, rule.block)
            return
        for other in list(self._stages):
            other.interrupt("eof")
        with self.changed:
            self.changed.wait_for(lambda: not self._stages, _LAST_GRACE)
