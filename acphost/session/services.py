"""What a session's agent may ask of the host beside permission: files, and what comes with them."""

from collections.abc import Callable, Mapping

import msgspec

from acphost.provider.switchboard import AgentRequest
from acphost.session.deeds import Deeds
from acphost.session.errands import Errands
from acphost.session.files import FileDesk
from acphost.session.gate import Gate
from acphost.session.listener import Listener
from acphost.session.receipts import Receipts
from acphost.session.scribe import Scribe
from acphost.session.state import SessionState
from acphost.session.surroundings import Surroundings
from acphost.session.terminals import TerminalDesk
from acphost.workspace.roots import Roots


class Services:
    """The handlers of one session, and what they have open."""

    def __init__(
        self,
        state: SessionState,
        scribe: Scribe,
        listener: Listener,
        around: Surroundings,
    ) -> None:
        settings = around.settings
        traits = around.pool.traits(state.row.agent_id, state.row.runtime)
        self._row = row = state.row
        self._grants = around.grants
        self.errands = Errands(around.tasks)
        self._gate = Gate(state.desk.consents, listener.open_question, listener.withdraw_question)
        deeds = Deeds(state, scribe, around.now)
        # The daemon's own folder is kept out of both: nothing in it is an agent's.
        self.receipts = Receipts(
            row, around.tasks, state.desk.consents,
            is_watching=lambda: settings().files.watch and not traits.is_stateless,
            roots=self.roots,
            keep_out=around.vault.home,
        )  # fmt: skip
        self._files = FileDesk(
            row.session_id, around.editors, self._gate, deeds,
            settings=lambda: settings().files,
            roots=self.roots,
            on_written=self.receipts.note_written,
            keep_out=around.vault.home,
        )  # fmt: skip
        self.terminals = TerminalDesk(
            row, around.writer, around.tasks, self._gate, deeds,
            settings=lambda: settings().terminals,
            roots=self.roots,
            environment=lambda: around.pool.environment(row.agent_id),
            on_started=self.receipts.note_command,
            now=around.now,
        )  # fmt: skip

    @property
    def handlers(self) -> Mapping[str, Callable[[AgentRequest], object]]:
        """By method; each is an offer (`provider.offers`)."""
        handler, terminals = self.errands.handler, self.terminals
        return {
            "fs/read_text_file": handler(self._files.read),
            "fs/write_text_file": handler(self._files.write),
            "terminal/create": handler(terminals.create),
            "terminal/output": handler(terminals.output),
            "terminal/wait_for_exit": handler(terminals.wait_for_exit),
            "terminal/kill": handler(terminals.kill),
            "terminal/release": handler(terminals.release),
        }

    async def roots(self, *, reading: bool = False) -> Roots:
        """The folders that the session's agent may use: its own, and those that were granted."""
        more = msgspec.json.decode(self._row.additional_directories, type=list[str])
        granted = self._grants.folders(self._row.actor_id)
        return Roots([self._row.cwd, *more, *granted.write, *(granted.read if reading else ())])

    def end(self) -> None:
        """The binding is over: nobody waits for what its agent has asked for."""
        self.errands.abandon()
        self.terminals.end_all()
        self._gate.forget()
