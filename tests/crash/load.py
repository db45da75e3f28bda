"""What clients do to a daemon that will die, and what they were promised before it did."""

import random
from dataclasses import dataclass, field

import anyio

from acphost.client.client import Client
from acphost.errors import (
    AcpHostError,
    ConflictError,
    ConnectionLostError,
    DaemonUnreachableError,
    StorageError,
    StorageFullError,
)
from tests.support.daemon import Daemon

SESSIONS = 3

SCRIPT = """
ON prompt ~"^flood (\\d+)"
    FLOOD ${1}
ON prompt ~"^ask"
    CALL c${N} pending kind=edit
    PERM c${N} yes:allow_once no:reject_once
    UPD c${N} completed
    MSG "decided ${OUTCOME}"
ON prompt
    CALL t${N} in_progress
    MSG "a short answer"
    UPD t${N} completed
"""


@dataclass(frozen=True, slots=True)
class Sent:
    """A prompt, as often as it has to be sent until somebody says that it was taken."""

    session: str
    text: str
    request: str


@dataclass(slots=True)
class Promises:
    """What the daemon has said to clients, and must keep whatever happens."""

    #: Run by request.
    accepted: dict[str, str] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)
    cancelled: set[str] = field(default_factory=set)
    #: The text that a run was given while it waited, by run.
    changed: dict[str, str] = field(default_factory=dict)
    backups: int = 0


class Load:
    """Floods, a queue that is changed, questions, cancels, backups; ended runs are sealed."""

    def __init__(self, daemon: Daemon, dice: random.Random) -> None:
        self._daemon = daemon
        self._dice = dice
        self._count = 0
        #: Sent, and not heard of since.
        self._unsure: list[Sent] = []
        self._sure: list[Sent] = []
        self.sessions: list[str] = []
        self.promises = Promises()

    async def run(self) -> None:
        """Until cancelled, or until the daemon is gone."""
        try:
            async with self._daemon.connect(patience=0) as client:
                await self._repeat(client)
                for _ in range(SESSIONS if not self.sessions else 1):
                    made = await client.create_session("fake", str(self._daemon.work))
                    self.sessions.append(made.session_id)
                # An old session has a queue that a death has held: the next send releases it.
                async with anyio.create_task_group() as tasks:
                    for session in self._dice.sample(self.sessions, SESSIONS):
                        tasks.start_soon(self._talk, client, session)
                    tasks.start_soon(self._answer, client)
                    if self._dice.random() < 0.3:
                        tasks.start_soon(self._back_up, client)
        except (AcpHostError, ExceptionGroup, OSError) as exc:
            # Only that the daemon has died, or its disk is full, is nothing to speak of.
            _, wrong = _split(exc)
            if wrong is not None:
                raise wrong from None

    def prompt(self, text: str) -> tuple[str, str]:
        """A text that no other prompt has, and the id of its request."""
        self._count += 1
        return f"{text} #{self._count}", f"request {self._count}"

    async def _repeat(self, client: Client) -> None:
        """Ask again where no answer came, and for good measure where one did."""
        known = self._dice.sample(self._sure, min(2, len(self._sure)))
        for sent in [*self._unsure, *known]:
            await self._send(client, sent)

    async def _talk(self, client: Client, session: str) -> None:
        for text in ("flood 3000", "ask", "hello", "flood 1500", "hello"):
            sent = Sent(session, *self.prompt(text))
            self._unsure.append(sent)
            run_id = await self._send(client, sent)
            if self._dice.random() < 0.2:
                await self._change(client, session, run_id)
            elif self._dice.random() < 0.1:
                await client.cancel(run_id)
                self.promises.cancelled.add(run_id)

    async def _change(self, client: Client, session: str, run_id: str) -> None:
        """Give a run that waits another text and another place."""
        items = {item.run_id: item for item in (await client.queue_list(session)).items}
        if run_id not in items:
            return
        text, _ = self.prompt("hello, changed")
        rev = items[run_id].rev
        try:
            rev = (await client.queue_edit(run_id, text, expected_rev=rev)).rev
            self.promises.changed[run_id] = text
            place = self._dice.randint(0, len(items))
            await client.queue_move(run_id, place, expected_rev=rev)
        except ConflictError:
            pass  # its turn has come

    async def _send(self, client: Client, sent: Sent) -> str:
        run = await client.create_run(sent.text, session_id=sent.session, request_id=sent.request)
        known = self.promises.accepted.setdefault(sent.request, run.host_run_id)
        assert known == run.host_run_id, f"{sent} made two runs: {known} and {run.host_run_id}"
        if sent in self._unsure:
            self._unsure.remove(sent)
            self._sure.append(sent)
        return run.host_run_id

    async def _answer(self, client: Client) -> None:
        while True:
            for question in (await client.list_decisions()).items:
                try:
                    await client.respond(question.permission_id, "yes")
                except AcpHostError as exc:
                    if _is_death(exc):
                        raise
                    continue  # its run was cancelled
                self.promises.answered.add(question.permission_id)
            await anyio.sleep(0.05)

    async def _back_up(self, client: Client) -> None:
        await client.backup(str(self._daemon.folder / "backup.db"), force=True)
        self.promises.backups += 1


def _is_death(exc: BaseException) -> bool:
    """Or the disk's: what cannot be kept is refused, and the client comes back in the next life."""
    gone = ConnectionLostError | DaemonUnreachableError | OSError
    return isinstance(exc, gone | StorageError | StorageFullError)


def _split(exc: BaseException) -> tuple[BaseException | None, BaseException | None]:
    """What tells of the daemon's death, and what of something else."""
    if isinstance(exc, BaseExceptionGroup):
        return exc.split(_is_death)
    return (exc, None) if _is_death(exc) else (None, exc)
