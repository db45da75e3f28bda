"""The methods of the socket as typed calls."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import UNSET, UnsetType

from acphost.client.asking import Listing, decoded, raws
from acphost.client.library import LibraryCalls
from acphost.client.queue import QueueCalls
from acphost.ids import mint
from acphost.wire import controls, host, params
from acphost.wire.agents import AgentCheck, AgentList, AgentProbe
from acphost.wire.base import Position, parse_position
from acphost.wire.daemon import BackupDone, Pong, ProcessRecord, Reloaded, RetentionDone
from acphost.wire.event import Event
from acphost.wire.grants import Access, Grant, GrantAddParams, GrantRemoveParams
from acphost.wire.jobs import Job, JobListParams, JobParams, JobsStopped, JobStopAllParams
from acphost.wire.logins import AgentAuthenticateParams, AgentLogin
from acphost.wire.runtime import RuntimeStarted
from acphost.wire.status import RuntimeReset, RuntimeStatus
from acphost.wire.trouble import RuntimeHealth, RuntimeLogs, RuntimeLogsParams
from acphost.wire.usage import UsageProjection


class RunEvents(NamedTuple):
    """A stretch of a run's events, and where the session stands."""

    events: list[Event]
    head_seq: int
    has_more: bool


class Calls(LibraryCalls, QueueCalls):
    """One method here is one method there; errors of the daemon are raised by their word.

    Calls that do no harm twice are sent again when the connection was lost before the answer.
    """

    # -- host and agents --------------------------------------------------------------------------

    async def ping(self) -> Pong:
        """Whether the daemon answers, and since when it runs."""
        return await self.request("host/ping", None, Pong, repeat=True)

    async def stats(self) -> dict[str, object]:
        """Counters of the daemon."""
        return await self.request("host/stats", None, dict[str, object], repeat=True)

    async def retention(self, *, dry_run: bool = False) -> RetentionDone:
        """Delete what the daemon's rules let go, or only ask what would go."""
        params = {"dryRun": dry_run}
        return await self.request("host/retention", params, RetentionDone)

    async def reload(self) -> Reloaded:
        """Have the daemon read its configuration again."""
        return await self.request("host/reload", None, Reloaded, repeat=True)

    async def backup(
        self, path: str, *, force: bool = False, with_secrets: bool = False
    ) -> BackupDone:
        """Have the daemon copy its store to an absolute path, as it is at one moment."""
        given = params.BackupParams(path=path, force=force, with_secrets=with_secrets)
        return await self.request("host/backup", given, BackupDone)

    async def shutdown(self, *, force: bool = False) -> None:
        """Have the daemon drain and end; with `force` cut running turns short."""
        given = params.ShutdownParams(force=force)
        await self.request("host/shutdown", given, host.Done)

    async def agents(self, profile: str | None = None) -> AgentList:
        """What is configured, and whether it can be started."""
        given = params.AgentListParams(profile=profile)
        return await self.request("agent/list", given, AgentList, repeat=True)

    # -- sessions ---------------------------------------------------------------------------------

    async def create_session(
        self,
        agent_id: str,
        cwd: str,
        *,
        title: str | None = None,
        profile: str | None = None,
        mcp_servers: Sequence[object] = (),
        start: bool = False,
    ) -> host.Session:
        """Record a session; its agent starts at first need, or at once with `start`."""
        given = params.SessionCreateParams(
            agent_id=agent_id,
            cwd=cwd,
            title=title,
            profile=profile,
            mcp_servers=raws(mcp_servers),
            start=start,
        )
        return await self.request("session/create", given, host.Session)

    async def session(self, session_id: str) -> host.Session:
        """One session."""
        given = params.SessionParams(session_id=session_id)
        return await self.request("session/get", given, host.Session, repeat=True)

    async def configure(
        self,
        session_id: str,
        *,
        mode: str | UnsetType | None = UNSET,
        model: str | UnsetType | None = UNSET,
        options: Mapping[str, str | bool | None] | None = None,
    ) -> host.Session:
        """Set mode, model or config options of the agent, and keep that for its next starts."""
        given = controls.SessionConfigureParams(
            session_id=session_id, mode=mode, model=model, config_option=dict(options or {})
        )
        return await self.request("session/configure", given, host.Session)

    async def list_sessions(
        self, filters: params.SessionListParams | None = None
    ) -> Listing[host.Session]:
        """A page of sessions, those with an active run first."""
        return await self.page("session/list", filters, host.Session)

    async def active_run(self, session_id: str) -> host.ActiveRun:
        """What a client that comes back asks first."""
        given = params.ActiveRunParams(session_id=session_id)
        return await self.request("session/activeRun", given, host.ActiveRun, repeat=True)

    # -- runs -------------------------------------------------------------------------------------

    async def create_run(
        self,
        prompt: str | Sequence[object],
        *,
        session_id: str | None = None,
        agent_id: str | None = None,
        cwd: str | None = None,
        request_id: str | None = None,
        hold_after: bool = False,
    ) -> host.Run:
        """Send a prompt, a text or ACP content blocks; a busy agent queues it.

        Without `session_id` a session is made for `agent_id` in `cwd`. `request_id` makes a repeat
        harmless, also that of another process; one is minted where none is given.
        """
        given = params.RunCreateParams(
            request_id=request_id or mint("client_req"),
            session_id=session_id,
            agent_id=agent_id,
            cwd=cwd,
            text=prompt if isinstance(prompt, str) else None,
            prompt=None if isinstance(prompt, str) else raws(prompt),
            hold_after=hold_after,
        )
        return await self.request("run/create", given, host.Run, repeat=True)

    async def run(self, run_id: str) -> host.Run:
        """One run."""
        given = params.RunGetParams(host_run_id=run_id)
        return await self.request("run/get", given, host.Run, repeat=True)

    async def list_runs(self, filters: params.RunListParams | None = None) -> Listing[host.Run]:
        """A page of runs, newest first."""
        return await self.page("run/list", filters, host.Run)

    async def run_events(
        self, run_id: str, *, after_seq: Position = 0, limit: int = 500
    ) -> RunEvents:
        """Events of a run behind `after_seq`, oldest first."""
        given = params.RunEventsParams(host_run_id=run_id, after_seq=after_seq, limit=limit)
        page = await self.request("run/events", given, host.EventsPage, repeat=True)
        return RunEvents(decoded(page.events, Event), parse_position(page.head_seq), page.has_more)

    async def wait(self, run_id: str, *, timeout_ms: int | None = None) -> host.Run:
        """The run once it is over, or as it is after `timeout_ms`."""
        given = params.RunWaitParams(host_run_id=run_id, timeout_ms=timeout_ms)
        return await self.request("run/wait", given, host.Run, repeat=True)

    async def cancel(self, run_id: str, *, hold_queue: bool = False) -> host.Run:
        """Ask for the end of a run; `wait` tells when it came."""
        given = params.RunCancelParams(host_run_id=run_id, hold_queue=hold_queue)
        return await self.request("run/cancel", given, host.Run, repeat=True)

    async def resume(
        self, run_id: str, *, resume_request_id: str | None = None, with_history: bool = False
    ) -> host.Run:
        """Try an interrupted run once more; returns the new run.

        `with_history` begins with the host's history instead of what the agent remembers.
        """
        given = params.RunResumeParams(
            host_run_id=run_id,
            resume_request_id=resume_request_id or mint("client_req"),
            with_history=with_history,
        )
        return await self.request("run/resume", given, host.Run, repeat=True)

    async def dismiss(self, run_id: str) -> host.Run:
        """Take note of an interrupted run; it is not offered for recovery any more."""
        given = params.RunParams(host_run_id=run_id)
        return await self.request("run/dismiss", given, host.Run, repeat=True)

    # -- agents -----------------------------------------------------------------------------------

    async def check_agent(self, agent_id: str) -> AgentCheck:
        """What can be told of an agent without starting it."""
        return await self.request("agent/check", params.AgentParams(agent_id=agent_id), AgentCheck)

    async def probe_agent(self, agent_id: str, *, prompts: bool = True) -> AgentProbe:
        """Try an agent out in a scratch folder; with prompts its model is asked twice."""
        given = params.AgentProbeParams(agent_id=agent_id, prompts=prompts)
        return await self.request("agent/probe", given, AgentProbe)

    async def authenticate(
        self, agent_id: str, method_id: str | None = None, *, completed: bool = False
    ) -> AgentLogin:
        """Log in to an agent, or ask how; `completed` after a login in a terminal."""
        given = AgentAuthenticateParams(agent_id=agent_id, method_id=method_id, completed=completed)
        return await self.request("agent/authenticate", given, AgentLogin)

    async def logout(self, agent_id: str) -> AgentLogin:
        """Log out of an agent that offers it."""
        return await self.request("agent/logout", params.AgentParams(agent_id=agent_id), AgentLogin)

    # -- decisions and status ---------------------------------------------------------------------

    async def list_decisions(
        self, filters: params.PermissionListParams | None = None
    ) -> Listing[host.Decision]:
        """A page of questions that agents put to people, pending ones if nothing else is said."""
        return await self.page("permission/list", filters, host.Decision)

    async def respond(self, permission_id: str, option_id: str) -> host.Decision:
        """Answer a question; raises AlreadyResolvedError if somebody was first."""
        given = params.PermissionRespondParams(permission_id=permission_id, option_id=option_id)
        return await self.request("permission/respond", given, host.Decision)

    async def respond_to_form(
        self,
        elicitation_id: str,
        action: Literal["accept", "decline", "cancel"],
        content: Mapping[str, object] | None = None,
    ) -> host.Decision:
        """Answer a form or an address; `content` is the form filled in."""
        given: dict[str, object] = {"elicitationId": elicitation_id, "action": action}
        if content is not None:
            given["content"] = content
        return await self.request("elicitation/respond", given, host.Decision)

    async def status(self, session_id: str) -> RuntimeStatus:
        """Which agent serves a session, does it remember, why is it still busy."""
        given = params.RuntimeStatusParams(session_id=session_id)
        return await self.request("runtime/status", given, RuntimeStatus, repeat=True)

    async def list_jobs(self, session_id: str | None = None) -> Listing[Job]:
        """The commands that agents run through the host."""
        return await self.page("job/list", JobListParams(session_id=session_id), Job)

    async def stop_job(self, job_id: str) -> Job:
        """End a command."""
        return await self.request("job/stop", JobParams(job_id=job_id), Job, repeat=True)

    async def stop_jobs(self, session_id: str | None = None) -> JobsStopped:
        """End the commands of a session, or all."""
        given = JobStopAllParams(session_id=session_id)
        return await self.request("job/stopAll", given, JobsStopped, repeat=True)

    async def list_grants(self) -> Listing[Grant]:
        """The folders that agents may use beside those of their sessions."""
        return await self.page("grant/list", params.NoParams(), Grant)

    async def add_grant(self, path: str, *, access: Access = "write") -> Grant:
        """Let agents use a folder."""
        given = GrantAddParams(path=path, access=access)
        return await self.request("grant/add", given, Grant, repeat=True)

    async def remove_grant(self, grant_id: str) -> Grant:
        """Take a folder back."""
        given = GrantRemoveParams(grant_id=grant_id)
        return await self.request("grant/remove", given, Grant)

    async def usage(
        self, session_id: str | None = None, *, run_id: str | None = None
    ) -> UsageProjection:
        """What a run, or a session and its last run, have used."""
        given = params.UsageGetParams(session_id=session_id, host_run_id=run_id)
        return await self.request("usage/get", given, UsageProjection, repeat=True)

    async def start(self, session_id: str) -> RuntimeStarted:
        """Have a session's agent started; raises why it cannot be had."""
        given = params.SessionParams(session_id=session_id)
        return await self.request("runtime/start", given, RuntimeStarted, repeat=True)

    async def reset(
        self,
        session_id: str,
        *,
        next: Literal["cold", "continue"] = "cold",  # noqa: A002
    ) -> RuntimeReset:
        """End a session's agent; the next run begins with the history, or with its own memory."""
        given = params.RuntimeResetParams(session_id=session_id, next=next)
        return await self.request("runtime/reset", given, RuntimeReset)

    async def processes(self, session_id: str | None = None) -> list[ProcessRecord]:
        """The agents' processes and what they started, with memory and age."""
        given = params.ProcessesParams(session_id=session_id)
        return (await self.page("runtime/processes", given, ProcessRecord)).items

    async def trouble(self, session_id: str | None = None, *, limit: int = 50) -> RuntimeLogs:
        """What went wrong lately, the newest first: complaints, failed tools, refusals."""
        given = RuntimeLogsParams(session_id=session_id, limit=limit)
        return await self.request("runtime/logs", given, RuntimeLogs)

    async def health(self) -> RuntimeHealth:
        """What the daemon rests on: whether agents can be started and events be kept."""
        return await self.request("runtime/health", None, RuntimeHealth)

    async def statuses(self) -> list[RuntimeStatus]:
        """The same of all sessions."""
        return (await self.page("runtime/status", None, RuntimeStatus)).items
