"""How a session gets an agent that remembers it: the ladder of contract section 7, rung by rung."""

from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec

from acphost.errors import AcpHostError, AgentUnavailableError, AuthRequiredError, RemoteError
from acphost.ids import AcpSessionId, Clock, mint
from acphost.journal.rows import BindingRow, RunRow
from acphost.journal.statements import save_binding
from acphost.provider.connection import AgentGoneError
from acphost.provider.pool import AgentPool
from acphost.provider.process import AgentProcess
from acphost.provider.switchboard import Sink
from acphost.provider.traits import LoadStatus, Rung
from acphost.session.binding import Binding, Replay, check_alive, other_session, remote_error
from acphost.session.configure import Configurator
from acphost.session.keepsakes import ADOPTED, keep, kept
from acphost.session.mcp import McpDesk
from acphost.session.packet import Packet
from acphost.session.scribe import Scribe, note
from acphost.wire.event import Kind
from acphost.wire.host import ContinuityCode, Mode, RunStatus

#: What `session/load` is called on which rung.
_METHODS = {Rung.RESUME: "session/resume", Rung.LOAD: "session/load"}
#: The agent had the session before: what it does not say of its settings is as it was.
_REOPENED = frozenset({Kind.BINDING_RESUMED, Kind.BINDING_LOADED})
#: So many processes are started for one run, when they die before they have the session.
MAX_PROCESSES = 3
#: A rung that failed so often for one run is left out.
MAX_TRIES = 2


class Binder:
    """Finds or makes the binding of one session, and writes down which way it went."""

    def __init__(
        self,
        scribe: Scribe,
        pool: AgentPool,
        sink: Sink,
        *,
        now: Clock,
        history: Callable[[RunRow | None], Awaitable[Packet | None]],
        mcp: McpDesk,
        turns_in: Callable[[str], Awaitable[int]],
        history_told: Callable[[], Awaitable[int]],
        configurator: Configurator,
        remarks: dict[str, str],
    ) -> None:
        self._scribe = scribe
        self._row = scribe.row
        self._pool = pool
        self.sink = sink
        self._now = now
        self._history = history
        self._mcp = mcp
        self._turns_in = turns_in
        self._history_told = history_told
        self._configurator = configurator
        self._remarks = remarks
        self.binding: Binding | None = None
        self._previous: AgentProcess | None = None
        #: Started, but it wants a login before it makes a session.
        self.parked: AgentProcess | None = None
        #: Set while what the agent says is history, not news.
        self.replay: Replay | None = None
        #: Told when a binding is over, with all that its agent had open.
        self.on_unbound: Callable[[], None] = lambda: None

    @property
    def is_live(self) -> bool:
        """Whether the next prompt can go to the binding there is."""
        return self.binding is not None and self.binding.process.is_live

    @property
    def is_outdated(self) -> bool:
        """Whether the agent has servers that are replaced, and can go on with its session anew."""
        can_go_on = self._row.supports_load or self._row.supports_resume
        return self.is_live and self._mcp.is_changed and bool(can_go_on)

    @property
    def model_id(self) -> str | None:
        """The model that the agent has set for the session."""
        return self._configurator.controls.model

    def is_made_for(self, run: RunRow) -> bool:
        """Whether the binding there is was made for this run."""
        return self.is_live and self.binding is not None and self.binding.row.run_id == run.run_id

    async def ensure(self, run: RunRow | None) -> Binding:
        """The binding for this run, by the first rung that holds.

        Raises AgentUnavailableError, AuthRequiredError, RemoteError, AgentGoneError.
        """
        if self.binding is not None and self.is_live:
            if not self.binding.process.traits.is_stateless:
                self._row.mode = Mode.NATIVE_LIVE
            self._row.continuity_code = ContinuityCode.CONTINUOUS
            self._row.continuity_reason = None
            return self.binding
        self._bury()
        if self._previous is not None and not self._previous.is_live:
            # Two processes would fight over what the agent keeps of this session.
            await self._previous.ended.wait()
        tries: Counter[Rung] = Counter()
        for attempt in range(1, MAX_PROCESSES + 1):
            process = await self._acquire()
            try:
                self.binding = binding = await self._climb(process, run, tries)
                await self._configurator.restore(binding.seat, _unless_over(run))
                check_alive(process)
            except AgentGoneError:
                self._bury()
                if attempt == MAX_PROCESSES:
                    raise
            except AuthRequiredError:
                self.parked = process
                raise
            except BaseException:
                process.stop_unless_shared()
                raise
            else:
                return binding
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _bury(self) -> None:
        """End a binding whose process went before it was one: nobody was told of that."""
        if self.binding is not None and not self.is_live:
            self.unbind("the agent's process ended", status="lost")

    async def _acquire(self) -> AgentProcess:
        """The process that was logged in to, or another."""
        parked, self.parked = self.parked, None
        if parked is not None and parked.is_live:
            return parked
        return await self._pool.acquire(
            self._row.agent_id, session_id=self._row.session_id, cwd=self._row.cwd
        )

    def leave_parked(self) -> None:
        """Nobody will log in to the process that asked for it."""
        parked, self.parked = self.parked, None
        if parked is not None:
            parked.stop_unless_shared()

    async def _climb(
        self, process: AgentProcess, run: RunRow | None, tries: Counter[Rung]
    ) -> Binding:
        row = self._row
        capabilities = process.greeting.agent_capabilities
        row.supports_load = capabilities.load_session
        row.supports_resume = capabilities.offers("resume")
        rungs = self._pool.ladder(process)
        known = None if row.acp_session_id is None else AcpSessionId(row.acp_session_id)
        reason: str | None = None
        if known is not None:
            for rung in self._reopening():
                if rung not in rungs:
                    continue
                if tries[rung] >= MAX_TRIES:
                    reason = f"{_METHODS[rung]} failed {MAX_TRIES} times"
                    continue
                tries[rung] += 1
                binding, reason = await self._reopen(process, rung, known, run)
                if binding is not None:
                    return binding
            if not {Rung.RESUME, Rung.LOAD} & set(rungs):
                row.load_status = LoadStatus.UNSUPPORTED
                reason = "the agent offers no way to load a session"
        if process.traits.is_stateless:
            return await self._begin_stateless(process, run)
        packet = await self._history(run)
        return await self._begin(process, run, packet, reason)

    def _reopening(self) -> tuple[Rung, ...]:
        """Ways to open it again; one that began elsewhere is loaded once: it has a history."""
        if kept(self._row.settings, ADOPTED, bool):
            return Rung.LOAD, Rung.RESUME
        return Rung.RESUME, Rung.LOAD

    async def _history_shown(self) -> int | None:
        """How much was shown of what a session that began elsewhere has to tell; None: all of it.

        An agent that dies in the middle tells it from the beginning.
        """
        if not kept(self._row.settings, ADOPTED, bool):
            return None
        await self._scribe.durable(self._scribe.write([]))
        return await self._history_told()

    # -- the rungs --------------------------------------------------------------------------------

    async def _reopen(
        self, process: AgentProcess, rung: Rung, known: AcpSessionId, run: RunRow | None
    ) -> tuple[Binding | None, str | None]:
        """Resume or load; the reason if that did not bring the session back."""
        row, method = self._row, _METHODS[rung]
        row.load_attempted = True
        self.replay = replay = Replay(shown=await self._history_shown())
        try:
            result = await process.reopen(method, known, self.sink, await self.params(process))
        except AgentGoneError as exc:
            self._load_failed(run, LoadStatus.FAILED, method, exc)
            raise
        except AuthRequiredError:
            raise
        except (RemoteError, AgentUnavailableError) as exc:
            status = process.traits.judge_load_error(exc)
            self._load_failed(run, status, method, exc)
            return None, f"{method}: {exc}"
        status = process.traits.judge_opened(result)
        other = other_session(result, known)
        if other is not None:
            # A new one instead of an error, and nothing remembered (SL-2).
            process.close_session(other)
            status = LoadStatus.NOT_FOUND
        if status is not LoadStatus.LOADED:
            process.detach(known)
            refusal = AcpHostError(
                f"the agent answered with another session, {other!r}"
                if other is not None
                else "the agent answered, but does not know the session"
            )
            self._load_failed(run, status, method, refusal, response=bytes(result))
            return None, f"{method}: {refusal}"
        row.load_status = LoadStatus.LOADED
        if replay.count:
            # What comes behind the answer repeats the end of it.
            replay.shown = None
        turns = await self._turns_in(known)
        # From here on nothing is awaited: the row and the event tell the same of the replay.
        row.replay_seen, row.replay_count = replay.count > 0, replay.count
        row.replay_seq = replay.last_seq
        if rung is Rung.RESUME:
            mode, kind = Mode.RESUMED, Kind.BINDING_RESUMED
        else:
            mode = Mode.REPLAY_SEEN if replay.count else Mode.LOADED
            kind = Kind.BINDING_LOADED
        reason = None
        if replay.count > 0 and replay.users < turns:
            reason = f"the agent told {replay.users} of {turns} turns again"
        return self._bound(
            process, known, run, mode, kind, ContinuityCode.CONTINUOUS, reason, result,
            {"replayCount": replay.count, "userMessages": replay.users, "turnsInJournal": turns},
        ), None  # fmt: skip

    async def _begin(
        self, process: AgentProcess, run: RunRow | None, packet: Packet | None, reason: str | None
    ) -> Binding:
        """A new agent session, told the history if there is one."""
        row = self._row
        self.replay = None
        params = await self.params(process)
        try:
            acp_session_id, result = await process.new_session(self.sink, params)
        except AgentUnavailableError as exc:
            raise self._mcp.suspected(exc) from exc
        if packet is not None:
            row.cold_packet_bytes, row.cold_truncated_reason = packet.size, packet.truncated_reason
            binding = self._bound(
                process, acp_session_id, run, Mode.COLD_RESUMED, Kind.BINDING_COLD_RESUMED,
                ContinuityCode.HISTORY_FALLBACK, reason, result,
                {
                    "packetBytes": packet.size,
                    "turns": packet.turns,
                    "truncatedReason": packet.truncated_reason,
                },
            )  # fmt: skip
            binding.prelude = packet.text
            return binding
        failed = row.load_attempted and row.load_status != LoadStatus.LOADED and reason is not None
        mode = Mode.LOAD_FAILED_NEW if failed else Mode.NEW_SESSION
        code = ContinuityCode.LOAD_FAILED_NEW if failed else ContinuityCode.NO_CONTEXT
        return self._bound(
            process, acp_session_id, run, mode, Kind.BINDING_STARTED, code, reason, result, {}
        )

    async def _begin_stateless(self, process: AgentProcess, run: RunRow | None) -> Binding:
        """A session of an agent that is told everything with each prompt."""
        self.replay = None
        session_id, result = await process.new_session(self.sink, await self.params(process))
        return self._bound(
            process, session_id, run, Mode.SERVER_TRANSCRIPT, Kind.BINDING_STARTED,
            ContinuityCode.CONTINUOUS, None, result, {},
        )  # fmt: skip

    async def params(self, process: AgentProcess) -> dict[str, object]:
        """What a session is opened with."""
        servers = await self._mcp.servers(process.greeting.agent_capabilities)
        params: dict[str, object] = {"cwd": self._row.cwd, "mcpServers": servers}
        extra = msgspec.json.decode(self._row.additional_directories, type=list[str])
        self._remarks.pop("directories", None)
        if extra and process.greeting.agent_capabilities.offers("additionalDirectories"):
            params["additionalDirectories"] = extra
        elif extra:
            self._remarks["directories"] = (
                f"the agent takes no additional directories and was not told of {len(extra)}"
            )
        return params

    # -- what is written down ---------------------------------------------------------------------

    def _bound(
        self,
        process: AgentProcess,
        acp_session_id: AcpSessionId,
        run: RunRow | None,
        mode: Mode,
        kind: Kind,
        code: ContinuityCode,
        reason: str | None,
        result: msgspec.Raw,
        extra: dict[str, object],
    ) -> Binding:
        row = self._row
        row.mode, row.continuity_code, row.continuity_reason = mode, code, reason
        row.acp_session_id = acp_session_id
        if kept(row.settings, ADOPTED, bool):
            row.settings = keep(row.settings, ADOPTED, value=False)
        self._configurator.opened(result, is_new=kind not in _REOPENED)
        binding_row = BindingRow(
            binding_id=mint("bind"),
            session_key=row.key,
            acp_session_id=acp_session_id,
            launch_id=process.plan.launch_id,
            mode=mode,
            run_id=None if run is None else run.run_id,
            created_at=self._now(),
        )
        payload = {
            "acpSessionId": acp_session_id,
            "mode": mode,
            "reason": reason,
            "pid": process.pid,
            "agent": {"name": process.greeting.agent_info.name,
                      "version": process.greeting.agent_info.version},
            "agentCapabilities": msgspec.Raw(process.capabilities or b"{}"),
            **extra,
            **({"remarks": [*self._remarks.values()]} if self._remarks else {}),
            "response": result,
        }  # fmt: skip
        draft = note(kind, payload, run=_unless_over(run))
        self._scribe.write([draft], statements=[save_binding(binding_row)])
        return Binding(process, acp_session_id, binding_row)

    def _load_failed(
        self,
        run: RunRow | None,
        status: LoadStatus,
        method: str,
        error: AcpHostError,
        response: bytes | None = None,
    ) -> None:
        self._row.load_status = status
        self.replay = None
        payload: dict[str, object] = {
            "acpSessionId": self._row.acp_session_id,
            "method": method,
            "loadStatus": status,
            "reason": str(error),
        }
        if isinstance(error, RemoteError):
            payload["agentError"] = remote_error(error)
        if response is not None:
            payload["response"] = msgspec.Raw(response)
        self._scribe.write([note(Kind.BINDING_LOAD_FAILED, payload, run=_unless_over(run))])

    def forget(self) -> None:
        """Do not try to load the agent's session again; the journal still names it."""
        self._row.acp_session_id = None

    def unbind(self, reason: str, *, status: str) -> Binding | None:
        """The binding is over: write it down, and return what it was."""
        binding, self.binding, self.replay = self.binding, None, None
        if binding is None:
            return None
        self._configurator.unbound()
        binding.row.status, binding.row.reason = status, reason
        binding.row.ended_at = self._now()
        if status == "closed":
            binding.process.close_session(binding.acp_session_id)
        binding.process.detach(binding.acp_session_id)
        self._previous = binding.process
        kind = Kind.BINDING_LOST if status == "lost" else Kind.BINDING_CLOSED
        payload = {"acpSessionId": binding.acp_session_id, "reason": reason}
        self._scribe.write([note(kind, payload)], statements=[save_binding(binding.row)])
        self.on_unbound()
        return binding


def _unless_over(run: RunRow | None) -> RunRow | None:
    """The run that a binding is made for; it may have been cancelled meanwhile."""
    return run if run is not None and run.status == RunStatus.PENDING else None
