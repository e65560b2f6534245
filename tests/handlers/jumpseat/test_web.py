"""``jumpseat.web.*`` over the real wire: search, and the questions that were asked before a page was opened."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jumpseat.agent.blocks import JsonObject
from jumpseat.store.user.connection_tokens import ConnectionTokenFile
from tests.support.server import calls, running_server, scripted

pytestmark = pytest.mark.anyio


async def test_sessions_are_found_by_the_words_of_their_prompts_and_answers(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        first = await wire.create(scripted({"text": "Use a Quetzalcoatlus, *of course*."}))
        await wire.prompt(first, "Which animal is large?")
        second = await wire.create(
            scripted(calls("bash", command="echo quetzalcoatlus"), {"text": "Done."}), requestPermission=False
        )
        await wire.prompt(second, "Run it, and say ÜBER")
        with server.log_of(second).open("ab") as log:
            log.write(b'{"type":"user.message","data":{"content":"quetz')

        async def event_of(text: str) -> str | None:
            result = await wire.call("jumpseat.web.search", {"text": text, "sessionIds": [first]})
            return result["matches"][0].get("eventId")

        answer = await wire.event("assistant.message", session=first)
        assert await event_of("quetzalcoatlus") == answer["id"]

        async def find(text: str) -> list[tuple[str, str]]:
            ids = [second, first, "unknown"]
            result = await wire.call("jumpseat.web.search", {"text": text, "sessionIds": ids})
            return [(match["sessionId"], match["excerpt"]) for match in result["matches"]]

        assert await find("quetzalcoatlus LARGE") == [(first, "Which animal is large?")]
        assert await find("course*") == [(first, "Use a Quetzalcoatlus, *of course*.")]
        assert [session for session, _ in await find("über")] == [second]
        assert await find("quetzalcoatlus run") == []
        error = await wire.error_of("jumpseat.web.search", {"text": "x", "sessionIds": ["y"] * 201})
        assert "at most 200" in error["message"]


async def test_a_client_that_comes_later_learns_the_open_questions_and_answers_them(tmp_path: Path) -> None:
    asked = calls("ask_user", question="Which colour?", choices=["red", "blue"])
    async with (
        running_server(tmp_path, tcp=True) as server,
        server.connect() as first,
        server.connect() as later,
    ):
        session = await first.create(scripted(asked, {"text": "{{last_tool_result}}"}), requestUserInput=True)
        await first.call("session.send", {"sessionId": session, "prompt": "go"})
        question = await first.event("user_input.requested")
        form = await first.ask(
            "session.ui.elicitation",
            {"sessionId": session, "message": "Name?", "requestedSchema": {"type": "object"}},
        )
        assert "error" in await first.response(form)
        await later.call(
            "session.resume", {"sessionId": session, "disableResume": True, "requestElicitation": True}
        )
        form = await later.ask(
            "session.ui.elicitation",
            {"sessionId": session, "message": "Name?", "requestedSchema": {"type": "object"}},
        )
        await later.event("elicitation.requested")
        found = await later.call("jumpseat.web.openQuestions", {"sessionId": session})
        assert [one["type"] for one in found["questions"]] == ["user_input.requested", "elicitation.requested"]
        assert found["questions"][0]["data"] == question["data"]
        (_, elicitation) = found["questions"]
        assert elicitation["data"]["message"] == "Name?"
        await later.call(
            "session.ui.handlePendingElicitation",
            {"sessionId": session, "requestId": elicitation["data"]["requestId"], "result": {"action": "decline"}},
        )
        await later.call(
            "session.ui.handlePendingUserInput",
            {
                "sessionId": session,
                "requestId": question["data"]["requestId"],
                "response": {"answer": "blue", "wasFreeform": False},
            },
        )
        await first.event("session.idle")
        assert (await later.response(form))["result"]["action"] == "decline"
        assert await later.call("jumpseat.web.openQuestions", {"sessionId": session}) == {"questions": []}


async def test_a_decision_names_the_client_and_the_token_of_the_person_who_made_it(tmp_path: Path) -> None:
    ada = ConnectionTokenFile(tmp_path / "home").add("ada", all_sessions=True)
    async with (
        running_server(tmp_path, tcp=True, without_token=(), limit_s=60) as server,
        server.connect(token=ada) as wire,
        server.connect(token=ada) as other,
    ):
        turns = scripted(*(calls("bash", f"call-{n}", command="true") for n in range(3)), {"text": "ok"})
        session = await wire.create(turns, requestPermission=True, clientName="editor")
        await other.call("session.resume", {"sessionId": session, "disableResume": True, "clientName": "page"})
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        by: list[object] = []
        for decider, kind in ((other, "approve-once"), (wire, "approve-for-session")):
            since = len(wire.messages)
            open_ids = {
                item["requestId"]
                for item in (await wire.call("session.permissions.pendingRequests", {"sessionId": session}))[
                    "items"
                ]
            }
            if not open_ids:
                question = await wire.event("permission.requested", since=since)
                open_ids = {question["data"]["requestId"]}
            (request_id,) = open_ids
            await decider.call(
                "session.permissions.handlePendingPermissionRequest",
                {"sessionId": session, "requestId": request_id, "result": {"kind": kind}},
            )
            completed = await wire.event("permission.completed", since=since, requestId=request_id)
            by.append(completed["data"]["decidedBy"])
        await wire.event("session.idle")
        assert by == [{"client": "page", "token": "ada"}, {"client": "editor", "token": "ada"}]
        assert '"decidedBy":{"client":"page","token":"ada"}' in server.log_of(session).read_text()


async def test_every_server_keeps_the_usage_of_each_call_with_its_agent_unless_told_not_to(tmp_path: Path) -> None:
    task = {"name": "scout", "agent_type": "explore", "description": "Look", "prompt": "Look around"}
    delegate = {"tool_calls": [{"name": "task", "arguments": task}]}
    usage = {"input": 70, "output": 7, "cache_read": 60, "cache_write": 5, "reasoning": 3}
    turns = ({**delegate, "usage": usage}, {"text": "Found."}, {"text": "Done."})
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted(*turns), requestPermission=False)
        await server.wire.prompt(session, "Delegate it")
        kept = (await server.wire.call("jumpseat.web.modelCalls", {"sessionId": session}))["calls"]
        first = kept[0]
        assert first.keys() - {"costUsd", "firstTokenMs"} == {
            *("time", "purpose", "model", "durationMs", "finishReason", "contextWindow"),
            *("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens", "reasoningTokens"),
        }
        assert [value for name, value in first.items() if name.endswith("Tokens")] == [70, 7, 60, 5, 3]
        agents = [call.get("agentId") for call in kept]
        assert agents[0] is None
        assert agents[-1] is None
        assert any(agents[1:-1])
    async with running_server(tmp_path, args=["--no-keep-model-calls"]) as server:
        session = await server.wire.create(scripted({"text": "Hello"}))
        await server.wire.prompt(session, "Hi")
        assert (await server.wire.call("jumpseat.web.modelCalls", {"sessionId": session}))["calls"] == []


async def test_a_draft_outlives_the_server_and_is_not_stored_with_a_secret(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted({"text": "ok"}))
        attachment = {"name": "a.txt", "wire": {"type": "blob", "data": "YQ=="}}
        saved = {"sessionId": session, "text": "First line\n✎"}
        result = await wire.call("jumpseat.web.saveDraft", {**saved, "attachments": [attachment]})
        assert result == {"stored": True}
        await wire.call("jumpseat.web.saveDraft", {**saved, "text": "Later"})
    # The session has no prompt yet: it stays for the sake of its draft.
    async with running_server(tmp_path) as server:
        wire = server.wire
        await wire.call("session.resume", {"sessionId": session})
        found = await wire.call("jumpseat.web.draft", {"sessionId": session})
        assert found == {"text": "Later", "attachments": [attachment]}
        await wire.call("secrets.addFilterValues", {"values": ["hunter2hunter2"]})
        secret: JsonObject = {"sessionId": session, "text": "use hunter2hunter2", "attachments": []}
        assert await wire.call("jumpseat.web.saveDraft", secret) == {"stored": False}
        found = await wire.call("jumpseat.web.draft", {"sessionId": session})
        assert found == {"text": "", "attachments": []}
        assert not any(b"hunter2" in path.read_bytes() for path in server.log_of(session).parent.glob("*.json"))


async def test_the_usage_of_all_sessions_is_summed_by_day_and_model_for_each_token(tmp_path: Path) -> None:
    tokens = ConnectionTokenFile(tmp_path / "home")
    ada, bob = (tokens.add(name, all_sessions=False) for name in ("ada", "bob"))
    turn = {"text": "ok", "usage": {"input": 100, "output": 20, "cache_read": 60}}
    async with (
        running_server(tmp_path, tcp=True, without_token=()) as server,
        server.connect(token=ada) as wire,
        server.connect(token=bob) as other,
    ):
        session = ""
        for _ in range(2):
            session = await wire.create(scripted(turn, turn))
            await wire.prompt(session, "go")
        await wire.call("session.detach", {"sessionId": session})
        (one,) = (await wire.call("jumpseat.web.usage", {"days": 0}))["usage"]
        assert (one["model"], one["calls"], one["inputTokens"], one["cacheReadTokens"]) == ("scripted", 2, 200, 120)
        # What an earlier version has stored has no days: it counts on the day of the session's creation.
        file = server.log_of(session).parent / "workspace.yaml"
        old = re.sub(r"usage_days: .*\n", "", file.read_text())
        file.write_text(re.sub("created_at: .*", 'created_at: "2020-01-01T00:00:00.000Z"', old))
        (one,) = (await wire.call("jumpseat.web.usage", {"days": 30}))["usage"]
        assert one["calls"] == 1
        assert (await other.call("jumpseat.web.usage", {}))["usage"] == []
        error = await wire.error_of("jumpseat.web.usage", {"days": 1000})
        assert "days" in error["message"]


async def test_a_client_that_stands_in_is_asked_while_no_other_one_is(tmp_path: Path) -> None:
    ask = calls("ask_user", question="Which colour?", choices=["red", "blue"])
    async with (
        running_server(tmp_path, tcp=True) as server,
        server.connect() as other,
        server.connect() as page,
    ):
        options = {"requestUserInput": True}
        session = await other.create(
            scripted(ask, {"text": "{{last_tool_result}}"}, ask, {"text": "end"}), **options
        )
        await page.call(
            "session.resume", {"sessionId": session, "disableResume": True, "standsIn": True, **options}
        )
        await other.call("session.send", {"sessionId": session, "prompt": "go"})
        # The client that came first is asked, and its answer counts.
        request = await other.until(asks_for_input)
        await other.answer(request, {"answer": "red", "wasFreeform": False})
        await page.event("session.idle")
        await other.call("session.detach", {"sessionId": session})
        await page.call("session.send", {"sessionId": session, "prompt": "again"})
        assert (await page.until(asks_for_input))["params"]["question"] == "Which colour?"


def asks_for_input(message: JsonObject) -> bool:
    return message.get("method") == "userInput.request"
