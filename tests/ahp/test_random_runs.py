"""Random runs of two clients: after each step, what a client has folded is what a newcomer is shown.

The official reducers fold beside ours, if they are built. ``AHP_RUNS`` and ``AHP_KILLS`` are the numbers of runs
and of kills of the server.
"""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from typing import Final

import pytest

from jumpseat.ahp.states.values import JsonObject
from tests.ahp.client import Client, check_equal, connected, door_server, raw
from tests.support.limits import WAIT_S
from tests.support.server import calls

pytestmark = [pytest.mark.anyio, pytest.mark.thorough]


def task(name: str, prompt: str, **arguments: str) -> JsonObject:
    """Return a turn that starts a sub-agent."""
    given = {"name": name, "agent_type": "task", "description": "Help", "prompt": prompt, **arguments}
    return {"tool_calls": [{"id": f"call-{name}", "name": "task", "arguments": given}]}


SCRIPT: Final[JsonObject] = {
    "prompts": [
        {"when": "hang on", "turns": [{"text": "I am", "hang": True}]},
        {
            "when": "make a file",
            "turns": [
                calls("create", path="a/made.txt", file_text="x"),
                calls("view", "call-2", path="."),
                {"text": "ok"},
            ],
        },
        {
            "when": "run commands",
            "turns": [
                calls("bash", command="echo at once; exit 3"),
                calls("bash", "call-2", command="echo later; exit 4", mode="async"),
                calls("read_bash", "call-3", shellId="1"),
                {"text": "run"},
            ],
        },
        {
            "when": "ask a helper",
            "turns": [
                task("helper", "look for it"),
                task("other", "look later", mode="background"),
                calls("write_agent", "call-3", agent_id="helper", message="look again"),
                {"text": "asked"},
            ],
        },
        {
            "when": "look for it",
            "turns": [calls("view", path="."), task("inner", "look deeper"), {"text": "there"}],
        },
        {
            "when": "ask me",
            "turns": [calls("ask_user", question="Which?", choices=["Red", "Blue"]), {"text": "Fine."}],
        },
        {"when": "use my tool", "turns": [calls("look_up", word="seat"), {"text": "It says so."}]},
        {"when": "look later", "turns": [{"text": "late"}]},
        {"when": "look again", "turns": [{"text": "still there"}]},
        {"when": "look deeper", "turns": [{"reasoning": "Hm.", "text": "deep"}]},
        {"turns": [{"reasoning": "Well.", "deltas": ["The ", "answer"]}] * 200},
    ]
}
RUNS: Final = int(os.environ.get("AHP_RUNS", "4"))
KILLS: Final = int(os.environ.get("AHP_KILLS", "4"))
ENDS: Final = ("chat/turnComplete", "chat/turnCancelled", "chat/error")
PROMPTS: Final = ("hang on", "make a file", "hello", "ask a helper", "run commands", "ask me", "use my tool")
TOOL: Final = {"name": "look_up", "inputSchema": {"type": "object", "properties": {"word": {"type": "string"}}}}


async def until_stable(client: Client) -> None:
    """Wait until the turn has ended, or waits for a person, or for nothing."""
    await client.settle()
    while True:
        active: JsonObject | None = client.states[client.chat].get("activeTurn")
        if active is None and not client.states[client.chat].get("queuedMessages"):
            return
        if active is not None:
            last: JsonObject = active["responseParts"][-1] if active["responseParts"] else {}
            if client.states[client.session].get("inputNeeded") or last.get("content") == "I am":
                return
        elif was_cancelled(client):
            return
        await client.any_action()


def was_cancelled(client: Client) -> bool:
    """Return whether the last turn that ended was cancelled, also if it was cut off later: then the queue waits."""
    for message in reversed(client.received):
        params: JsonObject = message.get("params") or {}
        if params.get("action", {}).get("type") in ENDS and "rejectionReason" not in params:
            return params["action"]["type"] == "chat/turnCancelled"
    turns = client.states[client.chat]["turns"]
    return bool(turns) and turns[-1]["state"] == "cancelled"


async def step(random: Random, client: Client, number: int) -> None:
    chat = client.states[client.chat]
    active: JsonObject | None = chat.get("activeTurn")
    turn = active["id"] if active is not None else f"t{number}"
    text = random.choice(PROMPTS)
    message = {"text": text, "origin": {"kind": "user"}}
    needed: list[JsonObject] = client.states[client.session].get("inputNeeded") or []
    queued = [one["id"] for one in chat.get("queuedMessages") or ()]
    match random.randrange(14):
        case 0 | 1:
            await client.prompt(f"t{number}", text)
        case 2:
            await client.echo(await client.dispatch("chat/turnCancelled", turnId=turn, duration=1))
        case 3 | 4 if needed:
            await answer(random, client, needed[0])
        case 5:
            kind = random.choice(("queued", "steering"))
            sent = await client.dispatch("chat/pendingMessageSet", kind=kind, id=f"q{number}", message=message)
            await client.echo(sent)
        case 6 if queued:
            name = random.choice(queued)
            await client.echo(await client.dispatch("chat/pendingMessageRemoved", kind="queued", id=name))
        case 7:
            await client.echo(await client.dispatch("session/titleChanged", title=f"Title {number}"))
        case 8 if active is None and chat["turns"]:
            last = random.choice(chat["turns"])["id"]
            if last != chat["turns"][-1]["id"]:
                await client.echo(await client.dispatch("chat/truncated", turnId=last))
        case 9:
            # Refused while the session works, or if there is nothing.
            await client.request(
                "invokeChangesetOperation", f"{client.session}/changeset/session", operationId="undo"
            )
        case 10:
            config = {"mode": random.choice(("plan", "interactive")), f"k{random.randrange(3)}": number}
            replace = random.random() < 0.3
            await client.echo(await client.dispatch("session/configChanged", config=config, replace=replace))
        case 11:
            await client.echo(await client.dispatch("chat/draftChanged", draft={**message, "text": f"d{number}"}))
        case 12 if len(queued) > 1 and (order := random.sample(queued, len(queued))) != queued:
            await client.echo(await client.dispatch("chat/queuedMessagesReordered", order=order))
        case 13:
            # An action that changes nothing would have no echo.
            tools = [{**TOOL, "name": random.choice(("look_up", "other")), "description": f"Since {number}"}]
            active_client = {"clientId": client.client_id, "tools": tools}
            await client.echo(await client.dispatch("session/activeClientSet", activeClient=active_client))
        case _:
            pass


async def answer(random: Random, client: Client, needed: JsonObject) -> None:
    """Answer a question, or a call of a tool of a client, which is refused to the others."""
    match needed:
        case {"kind": "toolConfirmation", "turnId": turn, "toolCall": {"toolCallId": call}}:
            members = {"turnId": turn, "toolCallId": call, "approved": random.random() < 0.6}
            sent = await client.dispatch("chat/toolCallConfirmed", **members)
        case {"kind": "toolClientExecution", "turnId": turn, "toolCall": {"toolCallId": call}}:
            result: JsonObject = {"success": random.random() < 0.8, "pastTenseMessage": "Looked up", "content": []}
            sent = await client.dispatch("chat/toolCallComplete", turnId=turn, toolCallId=call, result=result)
        case {"kind": "chatInput", "request": {"id": request}}:
            value = {"kind": "selected", "value": random.choice(("choice-0", "choice-1"))}
            draft = {"state": "draft", "value": value}
            answers: JsonObject = needed["request"].get("answers") or {}
            if answers.get("answer") != draft and random.random() < 0.5:
                changed = {"requestId": request, "questionId": "answer", "answer": draft}
                await client.echo(await client.dispatch("chat/inputAnswerChanged", **changed))
            # Refused without an answer.
            members = {"requestId": request, "response": random.choice(("accept", "decline", "cancel"))}
            if random.random() < 0.5:
                members["answers"] = {"answer": {"state": "submitted", "value": value}}
            sent = await client.dispatch("chat/inputCompleted", **members)
        case _:
            raise AssertionError(f"unknown kind: {needed}")
    await client.echo(sent)


@pytest.mark.timeout(10 * WAIT_S)
@pytest.mark.parametrize("seed", range(RUNS))
async def test_random_runs(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    async with door_server(tmp_path, SCRIPT, limit_s=10 * WAIT_S) as (_, port), connected(port, "b") as b:
        await b.create()
        await b.subscribe(f"{b.session}/changeset/session")
        number, away = 0, b
        for round_number in range(4):
            async with raw(port, "a") as a:
                if round_number:
                    await a.reconnect(away)
                else:
                    await a.initialize()
                    await a.join(b.session)
                for _ in range(8):
                    number += 1
                    await step(random, random.choice((a, b)), number)
                    await until_stable(b)
                    await a.join_parts()
                    await b.join_parts()
                    await check_equal(port, a, b)
                away = a
            await step(random, b, number + 1000)
            await until_stable(b)


@pytest.mark.timeout(120 + 30 * KILLS)
async def test_kills_of_the_server(tmp_path: Path) -> None:
    random, number = Random(7), 0
    before: Client | None = None
    for _ in range(KILLS):
        async with door_server(tmp_path, SCRIPT) as (server, port):
            async with raw(port, "a") as a:
                if before is None:
                    await a.initialize()
                    await a.create()
                else:
                    ended: list[JsonObject] = [
                        turn for turn in before.states[before.chat]["turns"] if is_whole(turn)
                    ]
                    assert await a.reconnect(before) == "snapshot"
                    kept = {turn["id"]: turn for turn in a.states[a.chat]["turns"]}
                    assert all(kept[turn["id"]]["message"] == turn["message"] for turn in ended)
                    await check_equal(port, a)
                for _ in range(random.randrange(1, 4)):
                    number += 1
                    await step(random, a, number)
                    await until_stable(a)
                    await a.join_parts()
                    await check_equal(port, a)
                # Somewhere in a turn, or behind it.
                number += 1
                await a.prompt(f"t{number}", random.choice(PROMPTS))
                await a.read_actions(random.randrange(12))
                before = a
            await server.kill()


def is_whole(turn: JsonObject) -> bool:
    return turn["state"] == "complete"
