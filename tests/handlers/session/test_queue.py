"""The queue of a session over the real wire, and the other ways to send prompts and to stop one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_copilot import ALICE, fake_copilot
from tests.support.server import JsonObject, Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

ANSWERS = scripted(*({"text": f"Answer {number}"} for number in range(1, 9)))
BUSY: JsonObject = {
    "type": "scripted",
    "script": {
        "prompts": [
            {"when": "first", "turns": [{"hang": True}]},
            {"turns": [{"text": "You said: {{last_user}}"}]},
        ]
    },
}


class At:
    """A session and its wire."""

    def __init__(self, wire: Wire, session: str) -> None:
        self.wire = wire
        self.session = session

    async def call(self, method: str, **params: Any) -> Any:
        return await self.wire.call(f"session.{method}", {"sessionId": self.session, **params})

    async def error_of(self, method: str, **params: Any) -> JsonObject:
        return await self.wire.error_of(f"session.{method}", {"sessionId": self.session, **params})

    async def shown(self) -> list[str]:
        return [item["displayText"] for item in (await self.call("queue.pendingItems"))["items"]]

    async def idle(self, since: int) -> None:
        await self.wire.event("session.idle", session=self.session, since=since)

    def prompts(self) -> list[JsonObject]:
        """Return the data of the messages of users so far."""
        return [event["data"] for event in self.wire.events(self.session) if event["type"] == "user.message"]

    def contents(self) -> list[str]:
        return [prompt["content"] for prompt in self.prompts()]


async def start(wire: Wire, provider: JsonObject, **options: Any) -> At:
    return At(wire, await wire.create(provider, **options))


async def busy(wire: Wire) -> At:
    """Return a session whose first prompt hangs."""
    at = await start(wire, BUSY)
    await at.call("send", prompt="first")
    await at.wire.event("assistant.turn_start")
    return at


async def test_a_paused_queue_is_arranged_and_runs_in_its_new_order(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire, ANSWERS)
        assert await at.call("queue.setDrainPaused", paused=True) is None
        one, two, three = [
            (await at.call("send", prompt=text, displayPrompt=shown))["messageId"]
            for text, shown in (("1", None), ("2", "Two"), ("3", None))
        ]
        front = await at.call("queue.insertAt", position=-5, message={"prompt": "0", "source": "command-zero"})
        assert await at.shown() == ["0", "1", "Two", "3"]
        assert await at.call("queue.moveItem", id=one, toPosition=99) == {"changed": True}
        assert await at.call("queue.moveItem", id=one, toPosition=99) == {"changed": False}
        copy = await at.call("queue.duplicateAt", id=two)
        assert copy["id"] != two
        assert await at.shown() == ["0", "Two", "Two", "3", "1"]
        update: dict[str, Any] = {"prompt": "two again", "displayPrompt": "Again"}
        assert await at.call("queue.updateText", id=copy["id"], **update) == {"updated": True}
        assert await at.call("queue.removeAt", id=three) == {"removed": True}
        snapshot = await at.call("queue.snapshot")
        assert (snapshot["itemOrders"], snapshot["items"][0]["source"]) == ([4, 2, 5, 1], "command-zero")
        assert snapshot["items"][0]["id"] == front["id"]
        assert await at.call("queue.hasPending") == {"hasPending": True}
        assert "user.message" not in [event["type"] for event in server.wire.events(at.session)]
        since = len(server.wire.messages)
        await at.call("queue.setDrainPaused", paused=False)
        await at.idle(since)
        assert at.contents() == ["0", "Two", "Again", "1"]
        assert [("two again" in prompt["transformedContent"]) for prompt in at.prompts()] == [
            False,
            False,
            True,
            False,
        ]
        assert at.prompts()[0]["source"] == "command-zero"
        assert [event["type"] for event in server.wire.events(at.session)].count("session.idle") == 1
        assert await at.call("queue.hasPending") == {"hasPending": False}


async def test_the_item_that_was_added_last_is_the_most_recent_wherever_it_is(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await busy(server.wire)
        for text in ("second", "third"):
            await at.call("send", prompt=text)
        await at.call("send", prompt="in front", prepend=True)
        assert await at.shown() == ["in front", "second", "third"]
        assert await at.call("queue.removeMostRecent") == {"removed": True}
        assert await at.shown() == ["second", "third"]
        await at.call("abort")
        assert await at.shown() == []
        # An abort empties a paused queue of an idle session, too.
        await at.call("queue.setDrainPaused", paused=True)
        await at.call("send", prompt="never")
        await at.call("abort")
        assert await at.shown() == []


async def test_a_queued_prompt_sent_now_steers_the_running_one(tmp_path: Path) -> None:
    script = scripted(calls("hold"), {"text": "Both done"}, {"text": "Rest"})
    tool = {"name": "hold", "description": "d", "parameters": {"type": "object"}, "skipPermission": True}
    async with running_server(tmp_path) as server:
        at = await start(server.wire, script, tools=[tool])
        await at.call("send", prompt="first")
        asked = (await server.wire.event("external_tool.requested"))["data"]["requestId"]
        item = (await at.call("send", prompt="and this"))["messageId"]
        assert await at.call("queue.sendNow", id=item) == {"steered": True}
        pending = await at.call("queue.pendingItems")
        assert (pending["items"], pending["steeringMessages"]) == ([], ["and this"])
        more: dict[str, Any] = {"messageId": item, "prompt": "and that"}
        assert await at.call("queue.appendSteering", expectedPrompt="other", **more) == {"updated": False}
        assert await at.call("queue.appendSteering", expectedPrompt="and this", **more) == {"updated": True}
        await at.call("tools.handlePendingToolCall", requestId=asked, result="held")
        await at.idle(0)
        assert at.contents() == ["first", "and this\n\nand that"]
        assert at.prompts()[1]["delivery"] == "steering"
        # Nothing runs: the item is the next to run, although the queue is paused.
        await at.call("queue.setDrainPaused", paused=True)
        item = (await at.call("send", prompt="later"))["messageId"]
        since = len(server.wire.messages)
        assert await at.call("queue.sendNow", id=item) == {"steered": False}
        await at.idle(since)
        assert at.contents()[-1] == "later"


async def test_a_prompt_sent_now_does_not_wait_for_a_command(tmp_path: Path) -> None:
    waiting = calls("bash", command="until [ -e go ]; do sleep 0.01; done; echo done", initial_wait=3600)
    script = scripted(waiting, {"text": "Steered"}, {"text": "Told"})
    async with running_server(tmp_path, args=["--yolo"]) as server:
        at = await start(server.wire, script, workingDirectory=str(tmp_path))
        await at.call("send", prompt="first")
        await server.wire.event("tool.execution_start")
        item = (await at.call("send", prompt="and this"))["messageId"]
        # The command may not have started yet: then there is nothing to move.
        while not (await at.call("tasks.list"))["tasks"]:
            pass
        assert await at.call("queue.sendNow", id=item) == {"steered": True}
        result = (await server.wire.event("tool.execution_complete"))["data"]["result"]["content"]
        assert "<still running with shellId: 0" in result
        await server.wire.event("assistant.message", content="Steered")
        assert at.contents() == ["first", "and this"]
        (task,) = (await at.call("tasks.list"))["tasks"]
        assert (task["status"], task["executionMode"]) == ("running", "background")
        (tmp_path / "go").touch()
        told = (await server.wire.event("system.notification"))["data"]["kind"]
        assert (told["type"], told["shellId"], told["exitCode"]) == ("shell_completed", "0", 0)
        await at.idle(0)


async def test_an_interrupted_turn_drops_or_runs_the_queued_prompts(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await busy(server.wire)
        assert (await at.call("send", prompt="by the way", mode="immediate"))["messageId"]
        await at.call("send", prompt="second")
        since = len(server.wire.messages)
        assert await at.call("interruptMainTurn", flushQueued=True) == {"interrupted": True}
        await server.wire.event("session.info", infoType="cancellation", since=since)
        await server.wire.event("session.idle", aborted=True, since=since)
        await server.wire.event("assistant.message", content="You said: second", since=since)
        assert at.contents() == ["first", "by the way", "second"]
        history = await at.call("getMessages")
        assert [event["data"]["reason"] for event in history["events"] if event["type"] == "abort"] == [
            "user_abort"
        ]
    async with running_server(tmp_path) as server:
        at = await busy(server.wire)
        await at.call("send", prompt="second")
        assert await at.call("interruptMainTurn") == {"interrupted": True}
        assert await at.shown() == []
        assert await at.call("interruptMainTurn") == {"interrupted": False}
        await server.wire.prompt(at.session, "third")
        assert at.contents() == ["first", "third"]


async def test_a_message_is_withdrawn_from_the_queue_or_from_its_turn(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await busy(server.wire)
        running = at.prompts()[0]["messageId"]
        queued = (await at.call("send", prompt="second"))["messageId"]
        steering = (await at.call("send", prompt="by the way", mode="immediate"))["messageId"]

        async def withdraw(message: str, prompt: str) -> tuple[bool, bool]:
            found = await at.call("queue.withdrawMessage", messageId=message, expectedPrompt=prompt)
            return found["removed"], found["interrupted"]

        assert await withdraw(queued, "edited") == (False, False)
        assert await withdraw(queued, "second") == (True, False)
        assert await withdraw(steering, "by the way") == (True, False)
        assert await withdraw(running, "first") == (False, True)
        assert await withdraw(running, "first") == (False, False)


async def test_messages_sent_together_are_answered_by_one_run(tmp_path: Path) -> None:
    script = scripted({"text": "{{ messages }}"}, {"text": "again"})
    async with running_server(tmp_path) as server:
        at = await start(server.wire, script)
        assert await at.call("sendMessages", messages=[]) == {"messageIds": []}
        items = [{"prompt": "one"}, {"prompt": "two", "displayPrompt": "Two"}, {"prompt": "three"}]
        sent = await at.call("sendMessages", messages=items, wait=True)
        assert [prompt["messageId"] for prompt in at.prompts()] == sent["messageIds"]
        assert at.contents() == ["one", "Two", "three"]
        bare, second, last = [prompt["transformedContent"] for prompt in at.prompts()]
        assert (bare, second) == ("one", "two")
        assert last.startswith("<current_datetime>")
        types = [event["type"] for event in server.wire.events(at.session)]
        assert (types.count("assistant.turn_start"), types.count("session.idle")) == (1, 1)
        await at.call("queue.setDrainPaused", paused=True)
        ids = (await at.call("sendMessages", messages=items))["messageIds"]
        rows = (await at.call("queue.pendingItems"))["items"]
        assert [row["messageId"] for row in rows] == ids
        assert len({row["id"] for row in rows}) == 1
        await at.call("queue.removeAt", id=rows[0]["id"])
        assert await at.shown() == []


async def test_a_notification_is_answered_like_a_prompt(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire, ANSWERS)
        assert await at.call("sendSystemNotification", message="note") is None
        await at.idle(0)
        (shown,) = at.prompts()
        assert (shown["source"], shown["content"]) == (
            "system",
            "<system_notification>\nnote\n</system_notification>",
        )
        since = len(server.wire.messages)
        await at.call("sendSystemNotification", message="done", kind={"type": "build_done", "buildId": 7})
        await at.idle(since)
        event = await server.wire.event("system.notification", since=since)
        assert event["data"]["kind"] == {"type": "build_done", "buildId": 7}
        assert len(at.prompts()) == 1


async def test_the_mode_of_a_prompt_can_be_an_agent_mode(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire, ANSWERS)
        await at.call("send", prompt="plan it", agentMode="plan", wait=True)
        # As a delivery mode, it is accepted, and not repeated.
        await at.call("send", prompt="plan it", mode="plan", wait=True)
        await at.call("mode.set", mode="plan")
        await at.call("send", prompt="plan it", wait=True)
        assert [prompt.get("agentMode") for prompt in at.prompts()] == ["plan", None, "plan"]
        assert (await at.error_of("send", prompt="x", mode="zz"))["code"] == -32602


async def test_a_run_without_a_required_tool_fails_before_the_model_is_called(tmp_path: Path) -> None:
    message = {"prompt": "x", "requiredTool": "gone"}
    async with running_server(tmp_path) as server:
        at = await start(server.wire, ANSWERS)
        await at.call("send", prompt="x", requiredTool="view", wait=True)
        await at.call("send", **message, wait=True)
        await at.call("sendMessages", messages=[message, {"prompt": "y"}], wait=True)
        since = len(server.wire.messages)
        await at.call("queue.insertAt", position=0, message=message)
        await server.wire.event("session.idle", since=since)
        events = server.wire.events(at.session)
    errors = [event["data"]["message"] for event in events if event["type"] == "session.error"]
    assert errors == ["Execution failed: requiredTool: the tool 'gone' is not available"] * 3
    assert [event["type"] for event in events].count("assistant.message") == 1


async def test_a_prompt_that_is_not_billable_is_no_request_of_the_user(tmp_path: Path) -> None:
    async with fake_copilot() as copilot, running_server(tmp_path, env=copilot.environ) as server:
        created = await server.wire.call("session.create", {"gitHubToken": ALICE, "model": "by-chat"})
        at = At(server.wire, created["sessionId"])
        free = {"prompt": "free", "billable": False}
        await at.call("send", prompt="paid", wait=True)
        await at.call("send", **free, wait=True)
        await at.call("sendMessages", messages=[free, free], wait=True)
        await at.call("sendMessages", messages=[{"prompt": "paid"}, free], wait=True)
        requests = [request for request in copilot.server.requests if request.path.endswith("/chat/completions")]
    assert [request.headers["x-initiator"] for request in requests] == ["user", "agent", "agent", "user"]


async def test_bad_calls_of_the_queue_are_refused(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        at = await start(server.wire, ANSWERS)
        named = {"moveItem": {"toPosition": 0}, "updateText": {"prompt": "x"}, "removeAt": {}, "duplicateAt": {}}
        for method, params in {**named, "sendNow": {}}.items():
            error = await at.error_of(f"queue.{method}", id="zz", **params)
            assert (error["code"], error["data"]) == (-32602, {"code": "unknown_id"}), method
            assert error["message"] == "unknown queue item id 'zz'"
        bad: list[tuple[str, dict[str, Any]]] = [
            ("queue.insertAt", {"position": 0}),
            ("queue.insertAt", {"position": 0, "message": {"prompt": 7}}),
            ("queue.setDrainPaused", {"paused": "yes"}),
            ("sendMessages", {}),
            ("sendMessages", {"messages": [{}]}),
            ("sendSystemNotification", {}),
            ("sendSystemNotification", {"message": "x", "kind": "word"}),
            ("interruptMainTurn", {"flushQueued": 1}),
        ]
        for method, params in bad:
            assert (await at.error_of(method, **params))["code"] == -32602, method
        error = await at.error_of("queue.insertAt", position=0, message={"prompt": "x", "source": "system"})
        assert "'system' is not allowed" in error["message"]
