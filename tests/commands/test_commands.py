"""Slash commands over the real wire: those of the server and of clients, executed or queued."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jumpseat.commands.running import BUILTINS
from tests.support.server import JsonObject, Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

HELLO = scripted({"text": "Hello!"}, {"text": "Hello again!"}, {"text": "And again!"})
DEPLOY = {"name": "deploy", "description": "Deploy the app"}
LOOKUP = {"name": "lookup", "description": "Look it up", "skipPermission": True}


async def execute(wire: Wire, session: str, name: str = "deploy", args: str = "production") -> int:
    return await wire.ask("session.commands.execute", {"sessionId": session, "commandName": name, "args": args})


async def enqueue(wire: Wire, session: str, command: str, **params: Any) -> str:
    answer = await wire.call("session.commands.enqueue", {"sessionId": session, "command": command, **params})
    assert answer == {"queued": True, "queueId": answer["queueId"]}
    return answer["queueId"]


async def queued_items(wire: Wire, session: str) -> list[tuple[str, str]]:
    items = (await wire.call("session.queue.pendingItems", {"sessionId": session}))["items"]
    return [(item["kind"], item["displayText"]) for item in items]


async def subscribe(wire: Wire, session: str) -> str:
    about = {"sessionId": session, "eventType": "command.queued"}
    return (await wire.call("session.eventLog.registerInterest", about))["handle"]


async def respond(wire: Wire, session: str, event: JsonObject, **result: bool) -> Any:
    about = {"sessionId": session, "requestId": event["data"]["requestId"], "result": result}
    return (await wire.call("session.commands.respondToQueuedCommand", about))["success"]


def types(wire: Wire, since: int = 0) -> list[str]:
    return [event["type"] for event in wire.events(since=since)]


# --- listing ----------------------------------------------------------------------------------------------------


async def test_the_list_has_the_servers_commands_and_the_clients(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO, commands=[DEPLOY, {"name": "/rollback"}, {"name": "usage"}])

        async def listed(**params: Any) -> dict[str, str]:
            found = await server.wire.call("session.commands.list", {"sessionId": session, **params})
            assert all(command["description"] is not None for command in found["commands"])
            return {command["name"]: command["kind"] for command in found["commands"]}

        own = {"deploy": "client", "rollback": "client", "usage": "client"}
        names = {builtin.name for builtin in BUILTINS} - {"usage"}
        builtin = dict.fromkeys(names, "builtin")
        assert await listed() == own | builtin
        assert await listed(includeBuiltins=False) == own
        assert await listed(includeClientCommands=False) == builtin
        for name in ("/", "  "):
            error = await server.wire.error_of("session.create", {"commands": [{"name": name}]})
            assert error["message"] == f"command name {name!r} is empty"
        bad: list[Any] = [[{"name": ""}], [{}], {"name": "x"}, ["x"]]
        for wrong in bad:
            assert (await server.wire.error_of("session.create", {"commands": wrong}))["code"] == -32602


async def test_clients_are_notified_when_commands_of_others_change(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as first:
        session = await first.create(HELLO)
        async with server.connect() as second:
            await second.call("session.resume", {"sessionId": session, "commands": [DEPLOY]})
            assert (await first.event("commands.changed"))["data"] == {"commands": [DEPLOY]}
            assert types(first).count("commands.changed") == 1
            since = len(first.messages)
        # It disconnected without detaching.
        assert (await first.event("commands.changed", since=since))["data"] == {"commands": []}


async def test_a_single_client_is_not_notified_of_its_own_commands(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO, commands=[DEPLOY])
        await server.wire.prompt(session)
        assert "commands.changed" not in types(server.wire)


# --- running at once --------------------------------------------------------------------------------------------


async def test_a_client_runs_its_command_and_the_caller_gets_the_result(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO, commands=[DEPLOY])
        request_id = await execute(server.wire, session)
        event = await server.wire.event("command.execute")
        assert event["ephemeral"] is True
        assert event["data"] == {
            "requestId": event["data"]["requestId"],
            "command": "/deploy production",
            "commandName": "deploy",
            "args": "production",
        }
        answer = {"sessionId": session, "requestId": event["data"]["requestId"]}
        assert await server.wire.call("session.commands.handlePendingCommand", answer) == {"success": True}
        assert (await server.wire.response(request_id))["result"] == {}

        invoked = await server.wire.ask("session.commands.invoke", {"sessionId": session, "name": "/Deploy"})
        event = await server.wire.event("command.execute", command="/deploy")
        failed = {"sessionId": session, "requestId": event["data"]["requestId"], "error": "no network"}
        await server.wire.call("session.commands.handlePendingCommand", failed)
        assert (await server.wire.response(invoked))["error"]["message"] == "no network"
        # Unknown requests get the same answer.
        late = await server.wire.call("session.commands.handlePendingCommand", failed | {"requestId": "nobody"})
        assert late == {"success": True}


async def test_a_command_goes_to_the_client_that_has_it_and_to_no_other(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as first, server.connect() as second:
        session = await first.create(HELLO, commands=[{"name": "other"}])
        await second.call("session.resume", {"sessionId": session, "commands": [DEPLOY]})
        request_id = await execute(first, session)
        event = await second.event("command.execute")
        answer = {"sessionId": session, "requestId": event["data"]["requestId"], "error": "it broke"}
        await second.call("session.commands.handlePendingCommand", answer)
        assert (await first.response(request_id))["result"] == {"error": "it broke"}
        assert "command.execute" not in types(first)


async def test_a_command_of_a_client_that_disconnected_fails(tmp_path: Path) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as first:
        session = await first.create(HELLO)
        async with server.connect() as second:
            await second.call("session.resume", {"sessionId": session, "commands": [DEPLOY]})
            request_id = await execute(first, session)
            await second.event("command.execute")
        assert (await first.response(request_id))["result"] == {
            "error": "the client that provides this command has disconnected"
        }
        again = await execute(first, session)
        assert (await first.response(again))["result"] == {"error": "unknown command '/deploy'"}


async def test_a_running_command_ends_with_its_session(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO, commands=[DEPLOY])
        request_id = await execute(server.wire, session)
        await server.wire.event("command.execute")
        await server.wire.call("session.delete", {"sessionId": session})
        assert "error" in (await server.wire.response(request_id))["result"]


async def test_the_servers_commands_work(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO, commands=[DEPLOY], model="first")

        async def said(name: str, text: str = "") -> str:
            about = {"sessionId": session, "name": name, "input": text}
            answer = await server.wire.call("session.commands.invoke", about)
            assert answer["kind"] == "text"
            return answer["text"]

        listed = await said("/HELP")
        assert "/deploy  Deploy the app" in listed
        assert "/model [name of a model]" in listed
        assert await said("usage") == "No model has been called yet."
        assert "first" in await said("model")
        await server.wire.prompt(session)
        assert "1 calls" in await said("usage")
        await said("model", "other")
        changed = await server.wire.event("session.model_change")
        assert changed["data"] == {"newModel": "other", "previousModel": "first", "source": "model_command"}
        await server.wire.response(await execute(server.wire, session, "/model", ""))
        assert "other" in (await server.wire.event("session.info", infoType="command"))["data"]["message"]
        unknown = await server.wire.error_of(
            "session.commands.invoke", {"sessionId": session, "name": "make coffee"}
        )
        assert unknown["message"] == "unknown command '/make coffee'"
        bad: list[tuple[str, JsonObject]] = [
            ("invoke", {}),
            ("invoke", {"name": ""}),
            ("execute", {"args": "x"}),
            ("enqueue", {}),
            ("enqueue", {"command": 7}),
            ("handlePendingCommand", {}),
            ("respondToQueuedCommand", {"requestId": "x", "result": {}}),
        ]
        for method, wrong in bad:
            error = await server.wire.error_of(f"session.commands.{method}", {"sessionId": session, **wrong})
            assert error["code"] == -32602, method


async def test_commands_show_the_context_plan_and_schedule(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(HELLO)

        async def invoke(name: str, text: str = "") -> Any:
            return await wire.call("session.commands.invoke", {"sessionId": session, "name": name, "input": text})

        assert (await invoke("context"))["text"].startswith("Context: about ")
        planned = await invoke("plan", "make it")
        assert (planned["kind"], planned["prompt"], planned["mode"]) == ("agent-prompt", "make it", "plan")
        assert (await invoke("plan"))["kind"] == "completed"
        assert await wire.call("session.mode.get", {"sessionId": session}) == "plan"
        assert (await invoke("every", "1h look again"))["text"].startswith("Schedule 1: next at ")
        assert (await invoke("after", "30m look once"))["kind"] == "text"
        entries = (await wire.call("session.schedule.list", {"sessionId": session}))["entries"]
        assert [(entry["prompt"], entry["recurring"]) for entry in entries] == [
            ("look again", True),
            ("look once", False),
        ]
        for text in ("", "1h", "soon look"):
            params = {"sessionId": session, "name": "every", "input": text}
            assert (await wire.error_of("session.commands.invoke", params))["message"]


# --- in the queue -----------------------------------------------------------------------------------------------


async def test_a_queued_command_goes_to_the_subscriber_and_later_ones_wait(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(HELLO)
        await subscribe(wire, session)
        await enqueue(wire, session, " /first --now ")
        offered = await wire.event("command.queued")
        assert offered["data"]["command"] == "/first --now"
        await enqueue(wire, session, "/second", displayText="Second")
        assert await queued_items(wire, session) == [("command", "Second")]
        assert await wire.call("session.queue.removeMostRecent", {"sessionId": session}) == {"removed": True}
        assert await queued_items(wire, session) == []
        await enqueue(wire, session, "/third")
        await wire.call("session.queue.clear", {"sessionId": session})
        assert await queued_items(wire, session) == []
        await enqueue(wire, session, "/fourth")
        assert await respond(wire, session, offered, handled=True) is True
        await wire.event("command.completed", requestId=offered["data"]["requestId"])
        assert (await wire.event("command.queued", command="/fourth"))["data"]["requestId"]
        assert await respond(wire, session, offered, handled=True) is False
        assert await respond(wire, session, {"data": {"requestId": "nobody"}}, handled=False) is False


async def test_a_client_can_hold_later_commands_until_the_next_request(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(HELLO)
        await subscribe(wire, session)
        for name in ("/one", "/two", "/three"):
            await enqueue(wire, session, name)
        first = await wire.event("command.queued", command="/one")
        since = len(wire.messages)
        await respond(wire, session, first, handled=True, stopProcessingQueue=True)
        await wire.event("session.idle", since=since)
        assert await queued_items(wire, session) == [("command", "/two"), ("command", "/three")]
        assert await wire.call("session.metadata.isProcessing", {"sessionId": session}) == {"processing": False}
        await wire.call("session.send", {"sessionId": session, "prompt": "hi"})
        second = await wire.event("command.queued", command="/two")
        assert await respond(wire, session, second, handled=False)
        three = await wire.event("command.queued", command="/three")
        since = len(wire.messages)
        await respond(wire, session, three, handled=True)
        await wire.event("assistant.message", since=since)
        await wire.event("session.idle", since=since)


async def test_a_command_waits_for_the_prompt_before_it_and_a_prompt_for_the_command(tmp_path: Path) -> None:
    script = scripted(calls("lookup"), {"text": "Found."}, {"text": "Later."})
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(script, tools=[LOOKUP], commands=[DEPLOY])
        await wire.call("session.send", {"sessionId": session, "prompt": "look"})
        request = await wire.event("external_tool.requested")
        await enqueue(wire, session, "/deploy now")
        await wire.call("session.send", {"sessionId": session, "prompt": "and then?"})
        assert await queued_items(wire, session) == [("command", "/deploy now"), ("message", "and then?")]
        answer = {"sessionId": session, "requestId": request["data"]["requestId"], "result": "it"}
        await wire.call("session.tools.handlePendingToolCall", answer)
        run = await wire.event("command.execute")
        command_result = {"sessionId": session, "requestId": run["data"]["requestId"]}
        await wire.call("session.commands.handlePendingCommand", command_result)
        await wire.event("assistant.message", content="Later.")
        await wire.event("session.idle")
    order = [
        event["data"].get("content") or event["type"]
        for event in wire.events(session)
        if event["type"] in ("assistant.message", "command.execute", "session.idle")
        and event["data"].get("content", "x")
    ]
    assert order == ["Found.", "command.execute", "Later.", "session.idle"]


async def test_an_unknown_queued_command_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(HELLO, model="first")
        await enqueue(server.wire, session, "/coffee black")
        await enqueue(server.wire, session, "/model second")
        warned = await server.wire.event("session.warning", warningType="command")
        assert warned["data"]["message"] == "/coffee black: unknown command '/coffee'"
        await server.wire.event("session.model_change", newModel="second")
        await server.wire.event("session.info", infoType="command")
        for text in ("coffee", "/", "", "/ x"):
            error = await server.wire.error_of("session.commands.enqueue", {"sessionId": session, "command": text})
            assert "expected a slash and a name" in error["message"]


@pytest.mark.parametrize("how", ["hangs up", "releases", "leaves"])
async def test_the_queue_continues_after_the_last_subscriber_left(tmp_path: Path, how: str) -> None:
    async with running_server(tmp_path, tcp=True) as server, server.connect() as first, server.connect() as second:
        session = await first.create(HELLO)
        await second.call("session.resume", {"sessionId": session})
        handle = await subscribe(second, session)
        await enqueue(first, session, "/anything")
        await second.event("command.queued")
        if how == "hangs up":
            await second.hang_up()
        elif how == "leaves":
            await second.call("session.destroy", {"sessionId": session})
        else:
            for _ in range(2):
                released = {"sessionId": session, "handle": handle}
                assert await second.call("session.eventLog.releaseInterest", released) == {"success": True}
        await first.event("command.completed")
        await first.prompt(session)


async def test_an_abort_ends_a_queued_command_and_drops_later_ones(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(HELLO)
        await subscribe(wire, session)
        await enqueue(wire, session, "/one")
        offered = await wire.event("command.queued")
        await enqueue(wire, session, "/two")
        assert await wire.call("session.abort", {"sessionId": session}) == {"success": True}
        assert (await wire.event("session.idle"))["data"]["aborted"] is True
        await wire.event("command.completed", requestId=offered["data"]["requestId"])
        assert await respond(wire, session, offered, handled=True) is False
        assert await queued_items(wire, session) == []
        events = await wire.prompt(session)
        assert events[-1]["type"] == "session.idle"


# --- skills -------------------------------------------------------------------------------------------------------


async def with_skills(wire: Wire, folder: Path, script: JsonObject = HELLO, **params: Any) -> str:
    for name, front in {
        "tea": "description: Make tea.\nargument-hint: '[kind]'",
        "usage": "description: Use it up.",
        "deploy": "description: Bring it out.",
        "models-only": "description: d\nuser-invocable: false",
        "off": "description: d",
    }.items():
        path = folder / "skills" / name / "SKILL.md"
        path.parent.mkdir(parents=True)
        path.write_text(f"---\n{front}\n---\n\nWarm the pot.\n")
    folders = [str(folder / "skills")]
    return await wire.create(script, commands=[DEPLOY], skillDirectories=folders, disabledSkills=["off"], **params)


async def test_user_invocable_skills_are_commands(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await with_skills(server.wire, tmp_path)
        about = {"sessionId": session}
        every = (await server.wire.call("session.commands.list", about))["commands"]
        without = (await server.wire.call("session.commands.list", {**about, "includeSkills": False}))["commands"]
        answer = await server.wire.call("session.commands.invoke", {**about, "name": "/Tea", "input": "green"})
        hidden = await server.wire.error_of("session.commands.invoke", {**about, "name": "models-only"})
    added = [command for command in every if command not in without]
    # Names that other commands have.
    assert [(command["name"], command["description"]) for command in added[:2]] == [
        ("project:deploy", "Bring it out. (/deploy is another command)"),
        ("project:usage", "Use it up. (/usage is another command)"),
    ]
    assert added[2:] == [
        {
            "name": "tea",
            "description": "Make tea.",
            "kind": "skill",
            "allowDuringAgentExecution": True,
            "input": {"hint": "[kind]"},
        }
    ]
    assert answer == {"kind": "agent-prompt", "prompt": "/tea green", "displayPrompt": "/tea green"}
    assert "unknown command" in hidden["message"]


async def test_an_executed_skill_is_sent_as_a_prompt(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await with_skills(wire, tmp_path)
        assert (await wire.response(await execute(wire, session, "tea", "green")))["result"] == {}
        await wire.event("session.idle", session=session)
        events = wire.events(session)
    prompt_message, skill_message = [event["data"] for event in events if event["type"] == "user.message"]
    assert (prompt_message["content"], skill_message["source"]) == ("/tea green", "skill-tea")


async def test_a_queued_skill_runs_before_later_entries(tmp_path: Path) -> None:
    script = scripted(calls("lookup"), {"text": "Found."}, {"text": "Tea."}, {"text": "Later."})
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await with_skills(wire, tmp_path, script, tools=[LOOKUP])
        await wire.call("session.send", {"sessionId": session, "prompt": "look"})
        request = await wire.event("external_tool.requested")
        await enqueue(wire, session, "/tea green")
        await wire.call("session.send", {"sessionId": session, "prompt": "and then?"})
        answer = {"sessionId": session, "requestId": request["data"]["requestId"], "result": "it"}
        await wire.call("session.tools.handlePendingToolCall", answer)
        await wire.event("assistant.message", content="Later.")
        await wire.event("session.idle")
        events = wire.events(session)
    messages = [
        event["data"] for event in events if event["type"] == "user.message" and not event["data"].get("source")
    ]
    assert [message["content"] for message in messages] == ["look", "/tea green", "and then?"]
