"""The front door holds to the protocol, byte for byte, whatever the agent and the editor do."""

import json

from acp import schema

from tests.support.daemon import running_daemon
from tests.support.editor import Message, editor, front_door

OPTIONS = """
ON new
    ANSWER {
        "sessionId":"a1",
        "modes":{"currentModeId":"ask","availableModes":[
            {"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]},
        "configOptions":[
            {"id":"effort","name":"Effort","type":"select","currentValue":"low",
             "options":[{"value":"low","name":"Low"},{"value":"high","name":"High"}],
             "_meta":{"x":[1,2.50]}},
            {"id":"web","name":"Web","type":"boolean","currentValue":false}]
    }
ON session/set_mode
    ANSWER {}
ON session/set_config_option
    ANSWER {"configOptions":[
        {"id":"effort","name":"Effort","type":"select","currentValue":"high",
         "options":[{"value":"low","name":"Low"},{"value":"high","name":"High"}]}]}
"""
#: Spaces, order, an escape and a number that no program would write like this.
UPDATE = (
    '{"sessionUpdate":"agent_message_chunk", "content":{"type":"text","text":"\\u0041"},'
    '"_meta":{"b":1.50,"a":[ ]},"later":{"x" :null}}'
)

BEFORE_AFTER = ("before", "after")


async def test_stdout_is_the_protocol_and_nothing_else() -> None:
    """Prints, warnings and tracebacks of anything in the process go to stderr."""
    program = (
        "import sys, warnings, os, runpy\n"
        "from acphost.frontdoor import attachment\n"
        "take = attachment.Attachment._take\n"
        "def loud(self, event):\n"
        "    print('printed'); os.write(1, b'written to one'); warnings.warn('careful')\n"
        "    os.system('echo from a child')\n"
        "    return take(self, event)\n"
        "attachment.Attachment._take = loud\n"
        "sys.argv = ['acphost', *sys.argv[1:]]\n"
        "runpy.run_module('acphost', run_name='__main__')\n"
    )
    async with running_daemon() as daemon:
        python, _, _, *words = front_door(
            "--socket", str(daemon.socket), "--agent", "fake", "--no-autostart"
        )
        command = [python, "-c", program, *words]
        async with editor(daemon, command=command) as zed:
            session = await zed.new()
            await zed.prompt(session, "hello")
            assert await zed.close() == 0
    for line in zed.lines:
        assert json.loads(line)["jsonrpc"] == "2.0"
    for noise in (b"printed", b"written to one", b"careful", b"from a child"):
        assert noise in zed.stderr


async def test_what_comes_before_initialize_is_refused_and_a_newer_version_is_answered() -> None:
    """-32600 before; version 1 for whoever offers 2."""
    async with running_daemon() as daemon, editor(daemon, greet=False) as zed:
        error = await zed.error("session/new", cwd=zed.work, mcpServers=[])
        assert error["code"] == -32600
        await zed.write(b"no json\n")
        broken = await zed.until(lambda each: each.get("id", 0) is None)
        assert broken["error"]["code"] == -32700
        assert (await zed.result("initialize", protocolVersion=2))["protocolVersion"] == 1
        assert (await zed.error("session/unheard_of"))["code"] == -32601
        assert (await zed.error("session/prompt", sessionId="none"))["code"] == -32602
        for method in ("session/load", "session/resume"):
            error = await zed.error(method, sessionId="sess_none", cwd=zed.work, mcpServers=[])
            assert error["code"] == -32002
            assert error["data"]["sessionId"] == "sess_none"
        await zed.write(b"[]\n")
        array = await zed.until(lambda each: each.get("error", {}).get("code") == -32600,
                                after=len(zed.messages))  # fmt: skip
        assert array["id"] is None
        error = await zed.error("session/new", cwd="relative", mcpServers=[])
        assert error["code"] == -32602


async def test_a_session_that_is_not_there_is_named_whatever_is_asked_of_it() -> None:
    """-32002 with its id; leaving or deleting it is as good as done."""
    about: dict[str, Message] = {
        "session/prompt": {"prompt": [{"type": "text", "text": "hi"}]},
        "session/set_mode": {"modeId": "ask"},
        "session/set_config_option": {"configId": "effort", "value": "high"},
        "session/load": {"cwd": "/", "mcpServers": []},
        "session/resume": {"cwd": "/", "mcpServers": []},
        "session/fork": {"cwd": "/", "mcpServers": []},
    }
    async with running_daemon() as daemon, editor(daemon) as zed:
        for method, params in about.items():
            error = await zed.error(method, sessionId="sess_none", **params)
            assert error["code"] == -32002, (method, error)
            assert error["data"]["sessionId"] == "sess_none", method
        for method in ("session/close", "session/delete"):
            assert await zed.result(method, sessionId="sess_none") == {}
        await zed.notify("session/cancel", sessionId="sess_none")
        await zed.notify("session/cancel")
        assert await zed.result("session/list")


async def test_an_editors_words_arrive_byte_for_byte() -> None:
    """Unknown members, `_meta`, spaces and numbers of a prompt; of the request's own, its trace."""
    block = '{"type":"text", "text":"\\u0041","_meta":{"b":1.50,"a":[ ]},"later":{"x" :null}}'
    meta = '{"traceparent":"00-1-2-3","editor":{"z":1e2}}'
    script = 'ON prompt\n    MSG "${LINE}"\n'
    async with running_daemon(script) as daemon, editor(daemon) as zed:
        session = await zed.new()
        line = (
            f'{{"jsonrpc":"2.0","id":99,"method":"session/prompt",'
            f'"params":{{"sessionId":"{session}","prompt":[{block}],"_meta":{meta}}}}}\n'
        )
        await zed.write(line.encode())
        await zed.answer(99)
        heard = zed.said(session)
        assert block in heard
        assert '"_meta":{"traceparent":"00-1-2-3"}' in heard


async def test_the_answer_to_a_fork_or_resume_stands_before_what_is_told_of_the_session() -> None:
    """Also where an agent has told its commands, its mode and its usage before."""
    script = """
ON prompt
    UPDATE {"sessionUpdate":"available_commands_update","availableCommands":[]}
    UPDATE {"sessionUpdate":"usage_update","used":1,"size":2}
    MSG "done"
"""
    async with running_daemon(script) as daemon, editor(daemon) as zed:
        session = await zed.new()
        await zed.prompt(session, "hi")
        async with editor(daemon) as other:
            request = await other.ask(
                "session/resume", sessionId=session, cwd=other.work, mcpServers=[]
            )
            told = await other.until(lambda each: each.get("method") == "session/update")
            assert other.place(request) < other.messages.index(told)
            request = await other.ask(
                "session/fork", sessionId=session, cwd=other.work, mcpServers=[]
            )
            fork = (await other.answer(request))["result"]["sessionId"]
            await other.prompt(fork, "again")
            first = next(n for n, each in enumerate(other.messages)
                         if each.get("params", {}).get("sessionId") == fork)  # fmt: skip
            assert other.place(request) < first


async def test_ids_come_back_as_they_were_sent() -> None:
    """A string, a number, null, and a very large number."""
    async with running_daemon() as daemon, editor(daemon) as zed:
        for request_id in ("7", 7, 2**63 - 1):
            await zed.ask("session/list", request_id)
            assert "result" in await zed.answer(request_id)
        await zed.send(id=None, method="session/list", params={})
        assert "result" in await zed.until(lambda each: each.get("id", 0) is None)


async def test_an_agents_words_arrive_byte_for_byte() -> None:
    """Unknown members, `_meta`, spaces and numbers; both ways, and in the answer of the prompt."""
    line = (
        '{"jsonrpc":"2.0","method":"session/update",'
        f'"params":{{"sessionId":"${{SESSION}}","update":{UPDATE}}}}}'
    ).replace("\\", "\\\\")
    script = f"""
ON prompt
    RAW '{line}\\n'
    PERM c1 yes:allow_once:Yes rawInput={{"n":1.50}} _meta={{"k":[2.0]}}
    END end_turn _meta={{"cost":0.10}}
"""
    async with running_daemon(script) as daemon, editor(daemon) as zed:
        session = await zed.new()
        request = await zed.ask(
            "session/prompt",
            sessionId=session,
            prompt=[{"type": "text", "text": "hi", "_meta": {"from": "editor"}}],
            _meta={"traceparent": "00-1"},
        )
        question = await zed.question()
        await zed.choose(question, "yes")
        answer = await zed.answer(request)
        assert answer["result"]["_meta"] == {"cost": 0.1}
        heard = [line for line in zed.lines if b'"later"' in line]
        assert [UPDATE.encode() in line for line in heard] == [True]
        (prompt,) = daemon.heard("session/prompt")
        assert prompt["params"]["prompt"][0]["_meta"] == {"from": "editor"}


async def test_an_agents_own_notifications_are_passed_on_under_the_editors_name() -> None:
    """Those that begin with `_`, among the updates, untouched but for the session's id; once."""
    said = (
        '{"sessionId":"${SESSION}","n":1.50, "deep":{"sessionId":"theirs","x":[ ]},"e":"\\u00e9"}'
    )
    line = f'{{"jsonrpc":"2.0","method":"_vendor.tld/news","params":{said}}}'.replace("\\", "\\\\")
    script = f"""
ON prompt
    MSG "before"
    RAW '{line}\\n'
    NOTIFY _vendor.tld/bare
    NOTIFY from/the_future {{"sessionId":"${{SESSION}}"}}
    NOTIFY $/odd {{"sessionId":"${{SESSION}}"}}
    MSG "after"
"""
    async with running_daemon(script) as daemon, editor(daemon) as zed, editor(daemon) as other:
        session = await zed.new()
        await other.load(session)
        await zed.prompt(session, "hi")
        await other.shows(session, "after")
        for each in (zed, other):
            told = [message for message in each.messages if "method" in message]
            (news,) = [message for message in told if message["method"] == "_vendor.tld/news"]
            assert news["params"]["sessionId"] == session
            assert "id" not in news
            (heard,) = [line for line in each.lines if b"_vendor.tld/news" in line]
            assert b'"n":1.50,' in heard
            assert b'"deep":{"sessionId":"theirs","x":[ ]}' in heard
            assert b'"e":"\\u00e9"' in heard
            texts = [message["params"].get("update", {}).get("content") for message in told]
            first, last = (texts.index({"type": "text", "text": word}) for word in BEFORE_AFTER)
            assert first < told.index(news) < last
            (bare,) = [message for message in told if message["method"] == "_vendor.tld/bare"]
            assert bare["params"] == {}
            assert {message["method"] for message in told} == {
                "session/update", "_vendor.tld/news", "_vendor.tld/bare"
            }  # fmt: skip
        async with editor(daemon) as late:
            await late.load(session)
            assert late.said(session) == "beforeafter"
            assert not [each for each in late.messages if "_vendor" in each.get("method", "")]


async def test_a_mistake_of_the_editor_is_no_error_of_ours() -> None:
    """-32602 with the word that says which: it is not the program that failed."""
    async with running_daemon() as daemon, editor(daemon) as zed:
        session = await zed.new()
        for word, method, params in (
            ("cursor_malformed", "session/list", {"cursor": "zzz"}),
            (
                "unsupported_content",
                "session/prompt",
                {"sessionId": session, "prompt": [{"type": "hologram"}]},
            ),
        ):
            error = await zed.error(method, **params)
            assert error["code"] == -32602, error
            assert error["data"]["code"] == word


async def test_what_an_editor_did_not_offer_to_show_is_left_out_or_put_otherwise() -> None:
    """The official parsers throw away a whole notification for one variant they do not know."""
    script = """
ON prompt
    UPDATE {"sessionUpdate":"notice","severity":"info","title":"Mind the gap"}
    UPDATE {"sessionUpdate":"from_the_future","x":1}
    UPDATE {"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[
        {"content":"one","priority":"high","status":"pending"}]}}
    UPDATE {"sessionUpdate":"current_mode_update","modeId":"code"}
    CALL c1 in_progress title="Run" content=[{"type":"terminal","terminalId":"t1"}]
    MSG "done"
"""
    capabilities: Message = {"session": {"notices": {}}, "plan": {}}
    async with (
        running_daemon(script) as daemon,
        editor(daemon) as plain,
        editor(daemon, capabilities=capabilities) as rich,
    ):
        kinds = []
        told: dict[str, Message] = {}
        for zed in (rich, plain):
            session = await zed.new()
            await zed.prompt(session, "hi")
            told = {each["sessionUpdate"]: each for each in zed.updates(session)}
            kinds.append(set(told))
    assert kinds[1] & {"notice", "plan_update", "from_the_future"} == set()
    assert told["plan"]["entries"][0]["content"] == "one"
    assert told["current_mode_update"]["currentModeId"] == "code"
    assert told["tool_call"]["content"][0]["type"] == "content"
    assert kinds[0] >= {"notice", "plan_update"}
    assert "from_the_future" not in kinds[0]


async def test_modes_and_options_are_shown_and_set() -> None:
    """Those of the agent as it told them, and the choice of the agent before them."""
    async with running_daemon(OPTIONS, others={"other": ""}) as daemon, editor(daemon) as zed:
        answer = await zed.result("session/new", cwd=zed.work, mcpServers=[])
        session = answer["sessionId"]
        assert answer["modes"]["currentModeId"] == "ask"
        choice, effort = answer["configOptions"]
        assert choice["category"] == "_acphost_agent"
        assert choice["currentValue"] == "fake"
        assert {"fake", "other"} <= {each["value"] for each in choice["options"]}
        assert effort["_meta"] == {"x": [1, 2.5]}
        await zed.result("session/set_mode", sessionId=session, modeId="code")
        assert (await daemon.hears("session/set_mode"))["params"]["modeId"] == "code"
        answer = await zed.result(
            "session/set_config_option", sessionId=session, configId="effort", value="high"
        )
        values = {each["id"]: each["currentValue"] for each in answer["configOptions"]}
        assert values == {"_acphost_agent": "fake", "effort": "high"}
        assert (await zed.error("session/set_mode", sessionId=session, modeId="x"))[
            "code"
        ] == -32602


async def test_a_switch_is_shown_to_an_editor_that_knows_switches() -> None:
    """Boolean options only where the editor said that it has them."""
    capabilities: Message = {"session": {"configOptions": {"boolean": {}}}}
    async with running_daemon(OPTIONS) as daemon, editor(daemon, capabilities=capabilities) as zed:
        answer = await zed.result("session/new", cwd=zed.work, mcpServers=[])
        assert "web" in {each["id"] for each in answer["configOptions"]}


async def test_another_agent_goes_on_with_a_session_and_is_told_its_past() -> None:
    """The choice of the agent is a config option; the editor keeps its session."""
    first = 'ON prompt\n    MSG "I am the first"\n'
    second = 'ON prompt\n    MSG "I am the second"\n'
    async with running_daemon(first, others={"other": second}) as daemon, editor(daemon) as zed:
        session = await zed.new()
        await zed.prompt(session, "who are you?")
        answer = await zed.result(
            "session/set_config_option",
            sessionId=session, configId="_acphost_agent", value="other",
        )  # fmt: skip
        assert answer["configOptions"][0]["currentValue"] == "other"
        await zed.prompt(session, "and you?")
        assert zed.said(session) == "I am the firstI am the second"
        (prompt,) = daemon.heard("session/prompt", "other")
        assert "I am the first" in prompt["params"]["prompt"][0]["text"]
        assert (await daemon.get(session)).agent_id == "other"
        error = await zed.error(
            "session/set_config_option",
            sessionId=session, configId="_acphost_agent", value="nobody",
        )  # fmt: skip
        assert "nobody" in error["message"]


async def test_the_sessions_are_listed_that_were_used() -> None:
    """By folder; one that an editor only opened is not shown."""
    async with running_daemon() as daemon, editor(daemon) as zed:
        await zed.new()
        used = await zed.new()
        await zed.prompt(used, "hello")
        listed = (await zed.result("session/list", cwd=zed.work))["sessions"]
        assert [each["sessionId"] for each in listed] == [used]
        assert listed[0]["cwd"] == zed.work
        assert (await zed.result("session/list", cwd="/nowhere"))["sessions"] == []
        await zed.result("session/close", sessionId=used)
        assert (await zed.error("session/prompt", sessionId=used, prompt=[]))["code"] == -32002
        await zed.load(used, "session/resume")
        assert (await zed.prompt(used, "again"))["stopReason"] == "end_turn"


async def test_a_request_that_is_taken_back_is_answered_all_the_same() -> None:
    """`$/cancel_request` for a prompt ends its run; for an unknown id it is ignored."""
    script = "ON prompt\n    MSG working\n    STAY\n"
    async with running_daemon(script) as daemon, editor(daemon) as zed:
        session = await zed.new()
        await zed.notify("$/cancel_request", requestId=77)
        request = await zed.begin(session, "hi")
        await zed.shows(session, "working")
        await zed.notify("$/cancel_request", requestId=request)
        assert (await zed.answer(request))["result"]["stopReason"] == "cancelled"


async def test_what_goes_wrong_is_told_in_words_and_in_the_protocols_codes() -> None:
    """An agent's own error is passed on whole; one that died leaves a text and an end."""
    script = """
ON prompt "fail"
    FAIL -32011 "no credit" {"left":0}
ON prompt "die"
    MSG "half"
    EXIT 3
"""
    async with running_daemon(script) as daemon, editor(daemon) as zed:
        session = await zed.new()
        answer = await zed.answer(await zed.begin(session, "fail"))
        assert answer["error"]["code"] == -32011
        assert answer["error"]["message"] == "no credit"
        assert answer["error"]["data"] == {"left": 0}
        result = await zed.prompt(session, "die")
        assert result["stopReason"] == "end_turn"
        assert "Interrupted" in zed.said(session)
        assert zed.said(session).startswith("half")


async def test_an_editor_that_answers_what_needs_no_answer_does_no_harm() -> None:
    """Toad answers a notification that it does not know with an error that has no id."""
    async with running_daemon() as daemon, editor(daemon) as zed:
        session = await zed.new()
        for answer in (
            '{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"not one of mine"}}',
            '{"jsonrpc":"2.0","id":4711,"result":{}}',
        ):
            await zed.write(answer.encode() + b"\n")
        assert (await zed.prompt(session, "hi"))["stopReason"] == "end_turn"
        assert zed.said(session) == "ok"


async def test_a_session_whose_agent_cannot_be_had_is_refused_with_the_reason() -> None:
    """The editor learns it from session/new, not from a prompt that hangs."""
    agent = {"command": ["/nowhere/agent"]}
    async with running_daemon(agent=agent) as daemon, editor(daemon) as zed:
        error = await zed.error("session/new", cwd=zed.work, mcpServers=[])
        assert error["code"] == -32603
        assert error["data"]["code"] == "agent_unavailable"
        assert error["data"]["details"] == error["message"]


async def test_servers_of_the_editor_reach_the_agent() -> None:
    """MCP servers are passed on as they are."""
    server = {
        "name": "s",
        "command": "/bin/cat",
        "args": ["-u"],
        "env": [{"name": "A", "value": "b"}],
    }
    async with running_daemon() as daemon, editor(daemon) as zed:
        await zed.new(mcpServers=[server])
        assert server in daemon.heard("session/new")[0]["params"]["mcpServers"]


async def test_an_editor_that_opens_a_known_session_brings_its_servers() -> None:
    """On load, resume and fork; one that has none leaves those there are."""
    server = {
        "name": "s",
        "command": "/bin/cat",
        "args": [],
        "env": [{"name": "KEY", "value": "very-secret"}],
    }
    async with running_daemon() as daemon, editor(daemon) as zed:
        session = await zed.new()
        await zed.prompt(session, "one")
        async with editor(daemon) as other:
            await other.load(session, mcpServers=[server])
            await other.prompt(session, "two")
            assert daemon.heard("session/resume")[-1]["params"]["mcpServers"] == [server]
            assert "very-secret" not in daemon.log()
        async with editor(daemon) as third:
            await third.load(session, "session/resume")
            await third.prompt(session, "three")
            fork = await third.result(
                "session/fork",
                sessionId=session, cwd=third.work, mcpServers=[{**server, "name": "t"}],
            )  # fmt: skip
            await third.prompt(fork["sessionId"], "four")
        opened = [
            each
            for method in ("new", "resume", "load")
            for each in daemon.heard(f"session/{method}")
        ]
        names = [[each["name"] for each in one["params"]["mcpServers"]] for one in opened]
        assert names == [[], ["t"], ["s"]]


async def test_an_unsaved_buffer_of_the_editor_is_what_the_agent_reads() -> None:
    """The daemon asks the editor; its answer goes to the agent."""
    script = """
ON prompt
    ASK fs/read_text_file {"sessionId":"${SESSION}","path":"${CWD}/a.txt"}
    MSG "${ANSWER}"
"""
    capabilities = {"fs": {"readTextFile": True, "writeTextFile": True}}
    async with running_daemon(script) as daemon:
        (daemon.work / "a.txt").write_text("on disk")
        async with editor(daemon, capabilities=capabilities) as zed:
            session = await zed.new()
            request = await zed.begin(session, "read")
            asked = await zed.until(lambda each: each.get("method") == "fs/read_text_file")
            assert asked["params"] == {"sessionId": session, "path": f"{zed.work}/a.txt"}
            await zed.send(id=asked["id"], result={"content": "unsaved"})
            await zed.answer(request)
            assert "unsaved" in zed.said(session)
            await zed.close()


async def test_the_end_of_stdin_is_the_end_of_the_program() -> None:
    """Within a second, with a turn running, which goes on."""
    script = "ON prompt\n    MSG working\n    GATE ${DIR}/gate\n    MSG done\n"
    async with running_daemon(script) as daemon:
        async with editor(daemon) as zed:
            session = await zed.new()
            await zed.begin(session, "hi")
            await zed.shows(session, "working")
            assert await zed.close() == 0
        seen = await daemon.get(session)
        assert seen.status == "running"
        daemon.open("gate")
        await daemon.until(session, lambda each: each.last_run_status == "completed", "the end")


async def test_what_the_editor_is_told_fits_the_official_models() -> None:
    """Every kind of line the front door writes, read by the official SDK."""
    script = """
ON prompt
    THOUGHT "hm"
    PLAN pending:one
    CALL c1 pending title="Edit" kind=edit content=[{"type":"diff","path":"/a","newText":"b"}]
    PERM c1 yes:allow_once:Yes no:reject_once:No
    UPD c1 completed
    UPDATE {"sessionUpdate":"usage_update","used":1,"size":2}
    UPDATE {"sessionUpdate":"session_info_update","title":"T"}
    UPDATE {"sessionUpdate":"available_commands_update","availableCommands":[]}
    MSG "done"
"""
    async with running_daemon(script) as daemon, editor(daemon) as zed:
        schema.InitializeResponse.model_validate(await zed.initialize())
        opened = await zed.result("session/new", cwd=zed.work, mcpServers=[])
        schema.NewSessionResponse.model_validate(opened)
        session = opened["sessionId"]
        request = await zed.begin(session, "hi")
        question = await zed.question()
        schema.RequestPermissionRequest.model_validate(question["params"])
        await zed.choose(question, "yes")
        schema.PromptResponse.model_validate((await zed.answer(request))["result"])
        schema.LoadSessionResponse.model_validate(await zed.load(session))
        schema.ListSessionsResponse.model_validate(await zed.result("session/list"))
        told = [each["params"] for each in zed.messages if each.get("method") == "session/update"]
        for params in told:
            schema.SessionNotification.model_validate(params)
        assert {each["update"]["sessionUpdate"] for each in told} >= {
            "user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "plan", "tool_call",
            "tool_call_update", "usage_update", "session_info_update", "available_commands_update",
        }  # fmt: skip
