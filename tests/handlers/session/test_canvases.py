"""Canvases of clients over the real wire: opened and used by hosts and by the model, and found again on resume."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.callbacks import SILENT, THROWS, answering, server_request
from tests.support.events import data_of
from tests.support.fake_openai import MODEL, calls, fake_openai, says, texts
from tests.support.server import JsonObject, running_server, scripted
from tests.support.server import calls as scripted_call

pytestmark = pytest.mark.anyio

COUNTER: JsonObject = {
    "id": "counter",
    "displayName": "Counter",
    "description": "Counts things.",
    "inputSchema": {"type": "object", "properties": {"start": {"type": "number"}}},
    "actions": [{"name": "increment", "inputSchema": {"type": "object", "required": ["by"]}}, {"name": "reset"}],
}
DECLARED: JsonObject = {"canvases": [COUNTER], "requestCanvasRenderer": True}
SHOWN: JsonObject = {"url": "https://example.test/c1", "title": "One", "status": "ready"}
PLACE: JsonObject = {"instanceId": "c1", "extensionId": "connection:1", "canvasId": "counter"}
HELLO = scripted({"text": "Hello!"})


async def test_a_host_opens_a_canvas_uses_it_and_closes_it(tmp_path: Path) -> None:
    answers = {"canvas.open": [SHOWN], "canvas.action.invoke": [{"now": 5}], "canvas.close": [None]}
    async with running_server(tmp_path) as server, answering(server.wire, answers) as client:
        wire = server.wire
        created = await wire.call("session.create", {"provider": HELLO, **DECLARED})
        of: JsonObject = {"sessionId": created["sessionId"]}
        listed = await wire.call("session.canvas.list", of)
        place = {"canvasId": "counter", "instanceId": "c1"}
        opened = await wire.call("session.canvas.open", {**of, **place, "input": {"start": 2}})
        open_now = await wire.call("session.canvas.listOpen", of)
        action = {"instanceId": "c1", "actionName": "increment", "input": {"by": 3}}
        result = await wire.call("session.canvas.action.invoke", {**of, **action})
        closed = await wire.call("session.canvas.close", {**of, "instanceId": "c1"})
        left = await wire.call("session.canvas.listOpen", of)
        events = wire.events(of["sessionId"])
    assert created["capabilities"]["ui"]["canvases"] is True
    (canvas,) = listed["canvases"]
    described = {name: value for name, value in COUNTER.items() if name != "id"}
    assert canvas == {**described, "canvasId": "counter", "extensionId": "connection:1"}
    assert opened == {**PLACE, **SHOWN, "input": {"start": 2}}
    assert open_now == {"openCanvases": [opened]}
    assert result == {"result": {"now": 5}}
    assert (closed, left) == (None, {"openCanvases": []})
    request = {**of, **PLACE, "session": {"workingDirectory": str(tmp_path)}}
    assert client.requests == [
        ("canvas.open", {**request, "input": {"start": 2}}),
        ("canvas.action.invoke", {**request, "actionName": "increment", "input": {"by": 3}}),
        ("canvas.close", request),
    ]
    kinds = [event["type"] for event in events if "canvas" in event["type"]]
    assert kinds == [f"session.canvas.{kind}" for kind in ("opened", "recorded", "closed", "removed")]
    assert data_of(events, "session.canvas.recorded") == [{**PLACE, "title": "One", "input": {"start": 2}}]


async def test_a_request_that_does_not_fit_the_declaration_never_reaches_the_client(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, answering(server.wire, {"canvas.open": [SHOWN]}) as client:
        wire = server.wire
        of: JsonObject = {"sessionId": await wire.create(HELLO, **DECLARED)}

        async def refused(method: str, **params: object) -> str:
            return (await wire.error_of(f"session.canvas.{method}", {**of, **params}))["message"]

        await wire.call("session.canvas.open", {**of, "canvasId": "counter", "instanceId": "c1"})
        unknown = await refused("open", canvasId="zz", instanceId="c2")
        unfit = await refused("open", canvasId="counter", instanceId="c2", input={"start": "two"})
        action = await refused("action.invoke", instanceId="c1", actionName="zz")
        missing = await refused("action.invoke", instanceId="c1", actionName="increment")
        instance = await refused("action.invoke", instanceId="zz", actionName="reset")
        not_open = await refused("close", instanceId="zz")
        twice = await wire.error_of("session.create", {"provider": HELLO, "canvases": [COUNTER, COUNTER]})
    assert unknown == 'No canvas "zz" is registered'
    assert unfit == "Invalid input for canvas 'counter': /start: 'two' is not of type 'number'"
    assert action == 'Unknown action "zz" on canvas "counter". Known actions: [increment, reset]'
    assert missing == "Invalid input for action 'increment' of canvas 'counter': /: 'by' is a required property"
    assert instance == not_open == 'Canvas instance "zz" is not open. Currently open instances: ["c1"]'
    assert twice["message"] == "two canvases have the same id"
    assert client.names() == ["canvas.open"]


async def test_the_error_of_a_client_is_that_of_the_request_and_nothing_is_open(tmp_path: Path) -> None:
    answers = {"canvas.open": [THROWS, "no object"]}
    async with running_server(tmp_path) as server, answering(server.wire, answers):
        wire = server.wire
        of: JsonObject = {"sessionId": await wire.create(HELLO, **DECLARED)}
        place = {"canvasId": "counter", "instanceId": "c1"}
        thrown = await wire.error_of("session.canvas.open", {**of, **place})
        unreadable = await wire.error_of("session.canvas.open", {**of, **place})
        assert await wire.call("session.canvas.listOpen", of) == {"openCanvases": []}
    assert thrown["message"] == "it threw"
    assert unreadable["message"] == "the client's response to 'canvas.open' could not be read"


async def test_the_model_opens_canvases_only_where_a_client_shows_them(tmp_path: Path) -> None:
    turns = [
        calls("list_canvas_capabilities", canvasId="counter"),
        calls("open_canvas", canvasId="counter", instanceId="c1", input={"start": 1}),
        calls("invoke_canvas_action", instanceId="c1", actionName="reset"),
        calls("invoke_canvas_action", instanceId="c1", actionName="zz"),
        says("Done."),
    ]
    answers = {"canvas.open": [SHOWN], "canvas.action.invoke": [[1, 2]]}
    async with (
        fake_openai({"Count": turns, "Without": [says("ok")]}) as model,
        running_server(tmp_path) as server,
        answering(server.wire, answers),
    ):
        provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"}
        session = await server.wire.create(provider, model=MODEL, **DECLARED)
        events = await server.wire.prompt(session, "Count")
        without = await server.wire.create(provider, model=MODEL, canvases=[COUNTER])
        await server.wire.prompt(without, "Without")
    first, last, hidden = model.requests[0], model.requests[-2], model.requests[-1]
    offered = [{tool["function"]["name"] for tool in request["tools"]} for request in (first, hidden)]
    names = {"list_canvas_capabilities", "open_canvas", "invoke_canvas_action"}
    assert [names & some for some in offered] == [names, set()]
    assert "counter (Counter, of connection:1): Counts things." in texts(first, "system")[0]
    capabilities, opened, reset, failed = texts(last, "tool")
    assert '"name": "reset"' in capabilities
    assert '"status": "ready"' in opened
    assert reset == '{\n  "result": [\n    1,\n    2\n  ]\n}'
    assert failed.startswith('Unknown action "zz"')
    assert data_of(events, "permission.requested") == []


async def test_an_aborted_turn_withdraws_the_request_to_the_client(tmp_path: Path) -> None:
    turn = scripted_call("open_canvas", canvasId="counter", instanceId="c1")
    async with running_server(tmp_path) as server, answering(server.wire, {"canvas.open": [SILENT]}):
        wire = server.wire
        session = await wire.create(scripted(turn, {"text": "ok"}), **DECLARED)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        asked = await server_request(wire, "canvas.open")
        await wire.call("session.abort", {"sessionId": session})
        withdrawn = await wire.until(lambda message: message.get("method") == "$/cancelRequest")
        await wire.event("session.idle")
        assert await wire.call("session.canvas.listOpen", {"sessionId": session}) == {"openCanvases": []}
    assert withdrawn["params"]["id"] == asked["id"]


async def test_a_resumed_session_opens_its_canvases_again(tmp_path: Path) -> None:
    answers = {"canvas.open": [SHOWN, SHOWN, {"title": "Back"}], "canvas.close": [None]}
    async with running_server(tmp_path) as server, answering(server.wire, answers) as client:
        wire = server.wire
        session = await wire.create(HELLO, **DECLARED)
        of: JsonObject = {"sessionId": session}
        for name in ("gone", "c1"):
            await wire.call("session.canvas.open", {**of, "canvasId": "counter", "instanceId": name})
        await wire.call("session.canvas.close", {**of, "instanceId": "gone"})
        await wire.prompt(session)
        await wire.call("session.destroy", of)
        since = len(wire.messages)
        resumed = await wire.call("session.resume", {**of, "provider": HELLO, **DECLARED})
        await wire.event("session.canvas.opened", since=since, title="Back")
        (registry,) = data_of(wire.events(since=since), "session.canvas.registry_changed")
        again = await wire.call("session.canvas.listOpen", of)
    assert resumed["openCanvases"] == []
    assert [canvas["canvasId"] for canvas in registry["canvases"]] == ["counter"]
    assert again["openCanvases"] == [{**PLACE, "title": "Back", "input": {}}]
    assert [given["instanceId"] for given in client.inputs("canvas.open")] == ["gone", "c1", "c1"]


async def test_an_instance_waits_for_the_return_of_its_provider(tmp_path: Path) -> None:
    provider = {"canvasProvider": {"id": "app:window", "name": "App"}, **DECLARED}
    async with running_server(tmp_path, tcp=True) as server, server.connect() as host:
        session = await host.create(HELLO)
        of: JsonObject = {"sessionId": session}
        place = {"canvasId": "counter", "instanceId": "c1"}
        async with server.connect() as window, answering(window, {"canvas.open": [SHOWN]}):
            await window.call("session.resume", {**of, **provider})
            await host.event("session.canvas.registry_changed")
            await host.event("capabilities.changed", ui={"elicitation": False, "canvases": True})
            opened = await host.call("session.canvas.open", {**of, **place})
        await host.event("session.canvas.unavailable", instanceId="c1")
        gone = await host.error_of("session.canvas.action.invoke", {**of, **place, "actionName": "reset"})
        unknown = await host.error_of("session.canvas.open", {**of, **place})
        async with server.connect() as window, answering(window, {"canvas.open": [{"title": "Back"}]}):
            await window.call("session.resume", {**of, **provider})
            await host.event("session.canvas.opened", title="Back")
        await host.until(
            lambda message: sum("session.canvas.unavailable" in str(one) for one in host.messages) == 2
        )
        await host.call("session.canvas.close", {**of, "instanceId": "c1"})
        await host.event("session.canvas.removed", instanceId="c1")
    assert (opened["extensionId"], opened["extensionName"]) == ("app:window", "App")
    assert "'app:window', the provider of its canvas, is not connected" in gone["message"]
    assert unknown["message"] == 'No canvas "counter" is registered'
