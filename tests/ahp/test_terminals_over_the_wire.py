"""The output of commands is that of terminals, which clients can only watch."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from jumpseat.ahp.states.values import JsonObject
from tests.ahp.client import Client, check_equal, connected, door_server, terminals_of
from tests.support.server import calls

pytestmark = pytest.mark.anyio

HELPER: Final[JsonObject] = {
    "id": "call-1",
    "name": "task",
    "arguments": {"name": "n", "agent_type": "task", "description": "d", "prompt": "run it"},
}
WAITS: Final = "until [ -e go ]; do sleep 0.05; done"
SCRIPT: Final[JsonObject] = {
    "prompts": [
        {
            "when": "count",
            "turns": [
                calls("bash", command=f"echo one; {WAITS}; echo two; exit 3", initial_wait=60),
                {"text": "Counted."},
            ],
        },
        {
            "when": "in the background",
            "turns": [
                calls("bash", command=f"echo begun; {WAITS}; echo over", mode="async"),
                calls("bash", "call-2", command="touch go"),
                {"text": "Started."},
                calls("read_bash", "call-3", shellId="0"),
                {"text": "Read."},
            ],
        },
        {
            "when": "goes on",
            "turns": [
                calls(
                    "bash",
                    command=f"echo one; {WAITS}; echo two; {WAITS.replace('go', 'stop')}; echo three; exit 4",
                    mode="async",
                    detach=True,
                ),
                {"text": "It goes on."},
            ],
        },
        {"when": "read it", "turns": [calls("read_bash", shellId="0"), {"text": "Read."}]},
        {
            "when": "delegate",
            "turns": [
                {"tool_calls": [HELPER]},
                {"text": "Delegated."},
            ],
        },
        {"when": "run it", "turns": [calls("bash", command="echo by an agent"), {"text": "Run."}]},
        {"turns": [calls("read_bash", "call-3", shellId="0"), {"text": "Read."}] * 3},
    ]
}


async def end_of_turn(client: Client) -> JsonObject:
    while client.states[client.chat].get("activeTurn") is not None:
        await client.any_action()
    return client.states[client.chat]["turns"][-1]


def text_of(terminal: JsonObject) -> str:
    return "".join(part["value"] for part in terminal["content"])


async def test_a_running_command_writes_to_a_terminal_that_is_there_after_a_restart(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        await client.create(config={"autoApprove": True})
        await client.prompt("t1", "count")
        await client.action("chat/toolCallContentChanged")
        (uri,) = terminals_of(client.states[client.chat])
        await client.subscribe(uri)
        while text_of(client.states[uri]) != "one":
            await client.any_action()
        assert (client.states[uri]["lifecycle"], client.states[uri]["isPty"]) == ({"status": "running"}, False)
        claim = client.states[uri]["claim"]
        assert (claim["chat"], claim["turnId"], claim["toolCallId"]) == (client.chat, "t1", "call-1")
        for kind in ("terminal/input", "terminal/resized", "chat/isReadChanged"):
            members: JsonObject = {"data": "x", "cols": 3, "rows": 4, "isRead": True}
            assert "rejectionReason" in await client.echo(await client.dispatch(kind, uri, **members))
        folder = client.states[client.session]["workingDirectories"][0].removeprefix("file://")
        (Path(folder) / "go").touch()
        await client.action("terminal/exited")
        call = (await end_of_turn(client))["responseParts"][0]["toolCall"]
        assert client.states[uri]["lifecycle"] == {"status": "exited", "exitCode": 3}
        assert call["content"][0]["result"] == {"exitCode": 3, "preview": "one\ntwo", "truncated": False}
        await check_equal(port, client)
        before = client
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        assert await client.subscribe(uri) == before.states[uri]
        await client.join(before.session)
        (turn,) = client.states[client.chat]["turns"]
        assert turn["responseParts"][0]["toolCall"]["content"] == call["content"]


async def until(client: Client, uri: str, text: str) -> None:
    while text not in text_of(client.states[uri]):
        await client.any_action()


async def test_a_command_in_the_background_shows_its_output_as_it_comes(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        await client.create(config={"autoApprove": True})
        await client.prompt("t1", "goes on")
        folder = Path(client.states[client.session]["workingDirectories"][0].removeprefix("file://"))
        while not (work := client.states[client.chat].get("backgroundWork")):
            await client.any_action()
        (shell,) = work
        assert (shell["kind"], shell["command"][:9]) == ("shell", "echo one;")
        await client.subscribe(shell["terminal"])
        await until(client, shell["terminal"], "one")
        (folder / "go").touch()
        await until(client, shell["terminal"], "one\ntwo")
        assert client.states[shell["terminal"]]["lifecycle"] == {"status": "running"}
        await check_equal(port, client)
        # The model has read the beginning, which does not come twice.
        await client.prompt("t2", "read it")
        await end_of_turn(client)
        assert text_of(client.states[shell["terminal"]]) == "one\ntwo"
        (folder / "stop").touch()
        await client.action("chat/backgroundWorkRemoved")
        terminal = client.states[shell["terminal"]]
        assert terminal["lifecycle"] == {"status": "exited", "exitCode": 4}
        assert text_of(terminal) == "one\ntwo\nthree"
        assert client.states[client.chat]["backgroundWork"] == []
        await check_equal(port, client)
        # The log, which has less of the output, is cut: the connection stays, and so does what the terminal shows.
        assert "rejectionReason" not in await client.echo(await client.dispatch("chat/truncated", turnId="t1"))
        await client.action("chat/turnsLoaded")
        await client.settle()
        assert client.states[shell["terminal"]] == terminal
        await check_equal(port, client)


async def test_commands_in_the_background_and_of_sub_agents_have_terminals(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        await client.create(config={"autoApprove": True})
        await client.prompt("t1", "in the background")
        await end_of_turn(client)
        # The model is told of the end, reads the output, and says so in another turn.
        while len(client.states[client.chat]["turns"]) < 2:
            await client.any_action()
        await client.join_parts()
        found = {text_of(state): state for uri, state in client.states.items() if uri.startswith("ahp-terminal:")}
        assert found["begun\nover"]["lifecycle"] == {"status": "exited", "exitCode": 0}
        await client.prompt("t9", "delegate")
        await end_of_turn(client)
        await client.join_parts()
        (terminal,) = (state for state in client.states.values() if "by an agent" in str(state.get("content")))
        assert terminal["claim"]["chat"] != client.chat
        await check_equal(port, client)
