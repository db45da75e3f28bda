"""Settings on their way to the agent: asked for by people, and set again after a new start."""

from collections.abc import Iterator
from typing import NamedTuple

import anyio
from msgspec import Raw, UnsetType

from acphost.errors import AcpHostError, AgentRefusedError, RemoteError
from acphost.ids import AcpSessionId
from acphost.journal.event import Draft
from acphost.journal.rows import RunRow
from acphost.provider.connection import AgentGoneError
from acphost.provider.process import AgentProcess
from acphost.session.controls import MODE, MODEL, Change, Controls, read_kept, write_kept
from acphost.session.scribe import Scribe, note
from acphost.session.state import SessionState
from acphost.wire.acp_controls import Value
from acphost.wire.controls import SessionConfigureParams
from acphost.wire.event import Kind, Origin


class Seat(NamedTuple):
    """Where the agent's side of the session is: a process and the id it has there."""

    process: AgentProcess
    acp_session_id: AcpSessionId


class Configurator:
    """Keeps a session's settings, its agent and its journal of one mind."""

    def __init__(self, state: SessionState, scribe: Scribe) -> None:
        self._state = state
        self._scribe = scribe
        self._row = scribe.row
        self.controls = Controls(read_kept(scribe.row.settings))
        # One change at a time: the agent's answers are complete lists, and the last one counts.
        self._turn = anyio.Lock()
        self._asked: Change | None = None
        #: The agent is set as people chose; what it says of itself from here on is meant.
        self._is_settled = False

    # -- what people want -------------------------------------------------------------------------

    async def configure(
        self, params: SessionConfigureParams, seat: Seat | None, origin: Origin
    ) -> None:
        """Set what is asked for, in the agent if there is one, else at its next start.

        Raises InvalidParamsError, AgentRefusedError, AgentUnavailableError, AgentGoneError.
        """
        with anyio.CancelScope(shield=True):
            # The client may go away; what the agent was told must be known here.
            async with self._turn:
                await self._configure(params, seat, origin)

    async def _configure(
        self, params: SessionConfigureParams, seat: Seat | None, origin: Origin
    ) -> None:
        wishes = [*self._wishes(params)]
        if isinstance(params.profile, str) and params.profile != self._row.profile:
            self._row.profile = params.profile
            changed = {"changed": {"profile": params.profile}}
            self._scribe.write([note(Kind.SESSION_CONFIG_UPDATED, changed, origin=origin)])
        for key, wish, where in wishes:
            if wish is None:
                self._forget(key, origin)
            elif seat is not None and seat.process.is_live:
                change = await self._set(seat, key, wish, where)
                self.controls.chosen[key] = change.value
                self._keep([self._told(change, origin=origin)])
            else:
                self.controls.chosen[key] = wish
                told = {"changed": {key: wish}, "pending": True}
                self._keep([note(Kind.SESSION_CONFIG_UPDATED, told, origin=origin)])

    def _wishes(self, params: SessionConfigureParams) -> Iterator[tuple[str, Value | None, str]]:
        """Key, value and place of each; the model first, other settings may hang on it."""
        given: list[tuple[str, Value | UnsetType | None, str]] = [
            (MODEL, params.model, "$.model"),
            *((key, wish, f"$.configOption.{key}") for key, wish in params.config_option.items()),
            (MODE, params.mode, "$.mode"),
        ]
        for key, wish, where in given:
            if wish is None:
                yield key, None, where
            elif not isinstance(wish, UnsetType):
                yield *self.controls.check(key, wish, where), where

    def _forget(self, key: str, origin: Origin) -> None:
        if self.controls.chosen.pop(key, None) is not None:
            told = {"changed": {key: None}}
            self._keep([note(Kind.SESSION_CONFIG_UPDATED, told, origin=origin)])

    async def _set(self, seat: Seat, key: str, value: Value, where: str) -> Change:
        change = self.controls.request(key, value, seat.acp_session_id)
        self._asked = change
        try:
            result = await seat.process.ask(change.method, change.params)
        except RemoteError as exc:
            raise AgentRefusedError(
                f"the agent refused {change.value!r}: {exc} - at `{where}`",
                agentError={"code": exc.remote_code, "message": str(exc)},
            ) from exc
        finally:
            self._asked = None
        self.controls.took(change, result)
        if change.method in seat.process.traits.usage_restarts_at:
            self._state.usage.restart()
        return change

    def _told(self, change: Change, *, origin: Origin | None) -> Draft:
        """What was changed, and how things stand: in the form in which agents tell it."""
        told: dict[str, object] = {"changed": {change.key: change.value}}
        if change.method == "session/set_mode":
            told["currentModeId"] = self.controls.mode
            return note(Kind.SESSION_MODE_UPDATED, told, origin=origin)
        if change.method == "session/set_model":
            told["currentModelId"] = self.controls.model
        else:
            told["configOptions"] = self.controls.offered.config_options or []
        return note(Kind.SESSION_CONFIG_UPDATED, told, origin=origin)

    # -- a new start of the agent -----------------------------------------------------------------

    def opened(self, result: Raw, *, is_new: bool) -> None:
        """The agent has the session, with settings of its own until `restore`."""
        self.controls.take_opened(result, is_new=is_new)
        self._keep_row()

    def inherit(self, other: "Configurator") -> None:
        """Begin with the choices of another session, and with what its agent offered."""
        self.controls.chosen = dict(other.controls.chosen)
        self.controls.offered = other.controls.offered
        self._keep([])

    def unbound(self) -> None:
        """The next binding begins with the agent's own settings."""
        self._is_settled = False

    async def restore(self, seat: Seat, run: RunRow | None) -> None:
        """Set again what a person chose; what cannot be is told, and the run goes on.

        Raises AgentGoneError.
        """
        restored: dict[str, Value] = {}
        failed: dict[str, object] = {}
        async with self._turn:
            for key in self.controls.to_restore():
                value = self.controls.chosen[key]
                try:
                    change = await self._set(seat, key, value, key)
                    # What was chosen before the agent was known is kept by its words from now on.
                    del self.controls.chosen[key]
                    self.controls.chosen[change.key] = restored[change.key] = change.value
                except AgentGoneError:
                    raise
                except AcpHostError as exc:
                    failed[key] = {"value": value, "error": str(exc)}
            self._is_settled = True
            self._state.remarks.pop("settings", None)
            drafts = []
            if restored:
                drafts.append(note(Kind.SESSION_CONFIG_UPDATED, {"restored": restored}, run=run))
            if failed:
                names = ", ".join(failed)
                remark = f"the agent was started anew and refused to be set: {names}"
                self._state.remarks["settings"] = remark
                told = {"code": "settings_not_restored", "message": remark, "settings": failed}
                drafts.append(note(Kind.ERROR, told, run=run))
            if drafts:
                self._keep(drafts)

    # -- what the agent says ----------------------------------------------------------------------

    def on_options(self, update: Raw) -> None:
        """`config_option_update`."""
        if self.controls.take_options(update):
            self._keep([])

    def on_mode(self, update: Raw) -> None:
        """`current_mode_update`.

        An agent that leaves a mode by itself, as plan mode is left, is not put back into it.
        """
        mode_id = self.controls.take_mode(update)
        chosen = self.controls.chosen.get(MODE)
        is_ours = self._asked is not None and self._asked.key == MODE
        if self._is_settled and not is_ours and mode_id is not None and chosen != mode_id:
            self.controls.chosen.pop(MODE, None)
        self._keep([])

    # -- what is kept -----------------------------------------------------------------------------

    def _keep_row(self) -> None:
        self._row.settings = write_kept(self._row.settings, self.controls.kept())
        self._row.resolved_model = self.controls.model or self._row.resolved_model

    def _keep(self, drafts: list[Draft]) -> None:
        self._keep_row()
        self._scribe.write(drafts)
