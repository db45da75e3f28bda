"""What agents say in numbers and in bulk: stored, delivered, and the same after a restart."""

import base64

import pytest

from tests.support.config import Table
from tests.support.daemon import Daemon, payload, running_daemon

#: As the agent writes it, and as every reader of strict JSON gets it.
NUMBERS = {
    "9223372036854775807": "9223372036854775807",
    "9223372036854775808": "9223372036854775808",
    "-9223372036854775809": "-9223372036854775809",
    "18446744073709551616": "18446744073709551616",
    "123456789012345678901234567890": "123456789012345678901234567890",
    "1e999": "1e999",
    "0.1000000000000000055511151231257827": "0.1000000000000000055511151231257827",
    "-0": "-0",
    "NaN": "null",
    "Infinity": "null",
    "-Infinity": "null",
}
SEALED: Table = {"journal": {"seal_after": 0}}


def told(place: int, number: str) -> str:
    """An update with that number at three depths."""
    deep = f'{{"a":{number},"b":[{number},{{"c":{number}}}]}}'
    call = f'"sessionUpdate":"tool_call","toolCallId":"c{place}","title":"t","rawInput":{deep}'
    return f"{{{call}}}"


def line(update: str) -> str:
    """The line of a script that sends it as it is."""
    params = f'{{"sessionId":"${{SESSION}}","update":{update}}}'
    return f"""    RAW '{{"jsonrpc":"2.0","method":"session/update","params":{params}}}\\n'\n"""


@pytest.mark.parametrize("host", [{}, SEALED], ids=["plain", "sealed"])
async def test_numbers_that_no_machine_type_holds(host: Table) -> None:
    """To the digit for all who read; what is no number at all is null for them, and marked."""
    said = [told(place, number) for place, number in enumerate(NUMBERS)]
    strict = [told(place, number).encode() for place, number in enumerate(NUMBERS.values())]
    script = "ON prompt\n" + "".join(map(line, said))
    async with running_daemon(script, host=host) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hi")
        live = [bytes(each.payload) for each in daemon.seen if each.kind == "tool.started"]
        await daemon.restart()

        async with daemon.wire() as wire:
            asked = {"hostRunId": run.host_run_id, "raw": True}
            page = (await wire.result("run/events", asked))["events"]
        events = [each for each in page if each["kind"] == "tool.started"]
        later = [bytes(each.payload) for each in await daemon.events(run, "tool.started")]

        assert run.status == "completed"
        assert live == later == strict
        raw = [base64.b64decode(each["payloadBase64"]).decode() for each in events]
        assert raw == said
        lossy = [(each.get("host") or {}).get("lossy", False) for each in events]
        assert lossy == [shown == "null" for shown in NUMBERS.values()]


async def test_a_line_of_32_megabytes() -> None:
    """Whole for who watches, for who asks for it later, and after a restart."""

    async def text(daemon: Daemon) -> str:
        (said,) = await daemon.history(session, "message.delta")
        return str(payload(said)["content"]["text"])

    async with running_daemon("ON prompt\n    BIG 32M\n", host=SEALED) as daemon:
        session = await daemon.session()
        run = await daemon.ask(session, "hi")
        assert run.status == "completed"
        (live,) = [event for event in daemon.seen if event.kind == "message.delta"]
        before = await text(daemon)
        await daemon.restart()

        assert len(before) == 32 << 20
        assert payload(live)["content"]["text"] == before
        assert await text(daemon) == before
