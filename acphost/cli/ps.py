"""`acphost ps`: the agents' processes and what they started; and how to end one."""

import anyio

from acphost.cli.daemon import all_sessions, pick, reach
from acphost.cli.exits import Exit
from acphost.cli.ls import print_json
from acphost.cli.parser import Options
from acphost.cli.places import size
from acphost.cli.screen import err, one_line, out, short, table
from acphost.cli.status import duration
from acphost.client.client import Client
from acphost.client.connecting import PATIENCE
from acphost.wire.daemon import ProcessRecord
from acphost.wire.host import Run, RunStatus
from acphost.wire.params import RunListParams
from acphost.wire.status import RuntimeReset

_COMMAND = 200
#: So many sessions of one process are named.
_SESSIONS = 2


def run(options: Options) -> int:
    """Run the command."""
    if options.kill is not None:
        return _tell(anyio.run(_kill, options), options)
    records = anyio.run(_processes, options)
    if options.json:
        print_json({"items": records})
    elif records:
        _print(records)
    else:
        err().line("no agent runs")
    return Exit.OK


async def _processes(options: Options) -> list[ProcessRecord]:
    async with reach(options) as client:
        return await client.processes()


def _print(records: list[ProcessRecord]) -> None:
    pen, rows = out(), list[tuple[str, ...]]()
    for each in records:
        sessions = ", ".join(short(session_id) for session_id in each.session_ids[:_SESSIONS])
        if len(each.session_ids) > _SESSIONS:
            sessions += f" +{len(each.session_ids) - _SESSIONS}"
        memory = "" if each.memory_bytes is None else size(each.memory_bytes)
        rows.append(
            (
                "" if each.pid is None else str(each.pid),
                each.agent_id,
                sessions or short(each.session_id or ""),
                each.state,
                duration(each.age_ms),
                memory,
                one_line(each.command, _COMMAND),
            )
        )
        for below in each.descendants:
            mark = "own group" if below.pid in each.left_group else ""
            command = one_line(below.command, _COMMAND)
            figures = duration(below.age_ms), size(below.memory_bytes)
            rows.append((f"  {below.pid}", "", "", mark, *figures, command))
    head, *lines = table(
        ("PID", "AGENT", "SESSION", "STATE", "AGE", "MEMORY", "COMMAND"), rows, pen.width
    )
    pen.line(head, "bold")
    for line in lines:
        pen.line(line.rstrip())
    started = [below for each in records for below in each.descendants]
    total = sum(each.memory_bytes or 0 for each in records)
    total += sum(below.memory_bytes for below in started)
    agents, others = _many(len(records), "agent"), _many(len(started), "process")
    err().line(f"{agents}, {others} below them, {size(total)}")


def _many(count: int, what: str) -> str:
    plural = "es" if what.endswith("s") else "s"
    return f"{count} {what}{'' if count == 1 else plural}"


async def _kill(options: Options) -> Run | RuntimeReset:
    async with reach(options, patience=PATIENCE) as client:
        runs = await _open_runs(client)
        sessions = [each.session_id for each in await all_sessions(client)]
        found = pick(options.kill, [*runs, *sessions], "run or session")
        if found in runs:
            # The daemon uses force by itself once the agent's grace is over.
            await client.cancel(found)
            return await client.wait(found)
        return await client.reset(found, next="continue")


async def _open_runs(client: Client) -> list[str]:
    return [
        run.host_run_id
        for status in (RunStatus.RUNNING, RunStatus.PENDING)
        for run in (await client.list_runs(RunListParams(status=status, limit=200))).items
    ]


def _tell(ended: Run | RuntimeReset, options: Options) -> int:
    pen = out()
    if options.json:
        print_json(ended)
    elif isinstance(ended, Run):
        pen.line(f"run {short(ended.host_run_id)}: {ended.status}")
    elif ended.closed.pid is None:
        pen.line(f"session {short(ended.session_id)} had no agent")
    else:
        pen.line(f"session {short(ended.session_id)}: its agent (pid {ended.closed.pid}) is ended; "
                 "the next message loads it again")  # fmt: skip
    return Exit.OK
