"""Clients see what a session has changed, and take it back: all of it, a turn, or a file."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import pytest

from jumpseat.ahp.states.values import JsonObject
from jumpseat.ahp.translation.attachments import path_of
from jumpseat.ahp.translation.changesets import content_address, shown_files, turn_of
from jumpseat.ahp.translation.edits import with_edits
from jumpseat.ahp.translation.events import Translator
from jumpseat.ahp.translation.uris import kind_of, session_uri
from jumpseat.sessions.changesets import FileInSet, SideOfFile
from jumpseat.store.user.connection_tokens import ConnectionTokenFile
from jumpseat.tools.files import unified_diff
from jumpseat_protocol import events
from jumpseat_protocol.events import Event
from tests.ahp.client import Client, check_equal, connected, door_server, raw
from tests.support.server import RunningServer, calls

pytestmark = pytest.mark.anyio


def create(name: str, text: str) -> JsonObject:
    return calls("create", f"create-{name}", path=name, file_text=text)


def edit(name: str, old: str, new: str) -> JsonObject:
    return calls("edit", path=name, old_str=old, new_str=new)


SCRIPT: Final[JsonObject] = {
    "prompts": [
        {"when": "begin", "turns": [create("a.txt", "a\n"), create("b.txt", "b\n"), {"text": "Done."}]},
        {"when": "go on", "turns": [edit("a.txt", "a\n", "a\nmore\n"), create("c.txt", "c\n"), {"text": "Done."}]},
        {"when": "hang", "turns": [create("d.txt", "d\n"), {"text": "I am", "hang": True}]},
        {"turns": [{"text": "Done."}] * 9},
    ]
}
UNDO: Final = "invokeChangesetOperation"


@asynccontextmanager
async def opened(folder: Path, *prompts: str) -> AsyncGenerator[tuple[RunningServer, int, Client]]:
    """Run a server and a client whose session has run prompts; it may do everything."""
    async with door_server(folder, SCRIPT) as (server, port), connected(port, "a") as client:
        await client.create(config={"autoApprove": True})
        for number, prompt in enumerate(prompts):
            await run(client, f"t{number}", prompt)
        yield server, port, client


async def run(client: Client, turn: str, prompt: str) -> None:
    assert "rejectionReason" not in await client.prompt(turn, prompt)
    await client.action("chat/turnComplete")


def of(client: Client, turn: str | None = None) -> str:
    return f"{client.session}/changeset/{'session' if turn is None else f'turn/{turn}'}"


def names(state: JsonObject) -> list[str]:
    return [file["id"].rpartition("/")[2] for file in state["files"]]


def status(client: Client, uri: str) -> str:
    (operation,) = client.states[uri]["operations"]
    return operation["status"]


def said(client: Client) -> bool:
    """Return whether the running turn has a text."""
    parts: list[JsonObject] = client.states[client.chat].get("activeTurn", {}).get("responseParts", [])
    return any(part["kind"] == "markdown" for part in parts)


def file_of(folder: Path, name: str) -> JsonObject:
    return {"kind": "resource", "resource": (folder / name).as_uri()}


async def until_shown(client: Client, uri: str, *wanted: str) -> None:
    """Wait until a changeset has these files and can be undone, if it has any."""
    while names(client.states[uri]) != list(wanted):
        await client.action("changeset/contentChanged")
    while status(client, uri) != ("idle" if wanted else "disabled"):
        await client.action("changeset/operationStatusChanged")


@asynccontextmanager
async def again(port: int, before: Client) -> AsyncGenerator[Client]:
    """Connect as a client that comes back."""
    async with raw(port, before.client_id) as client:
        await client.reconnect(before)
        yield client


async def content(client: Client, side: JsonObject) -> str:
    found = await client.call("resourceRead", uri=side["content"]["uri"])
    assert found["contentType"] == side["content"]["contentType"] == "text/plain"
    assert len(found["data"]) == side["content"]["sizeHint"]
    return found["data"]


async def test_changes_are_shown_as_they_are_made(tmp_path: Path) -> None:
    async with opened(tmp_path) as (_, port, client):
        whole = of(client)
        assert [one["uriTemplate"] for one in client.states[client.session]["changesets"]] == [
            whole,
            of(client, "{turnId}"),
        ]
        assert (await client.subscribe(whole))["files"] == []
        assert status(client, whole) == "disabled"
        await run(client, "t/1", "begin")
        await until_shown(client, whole, "a.txt", "b.txt")
        await run(client, "t2", "go on")
        await until_shown(client, whole, "a.txt", "b.txt", "c.txt")

        # The turns, each by itself; templates are expanded with escapes and without.
        for uri in (of(client, "t/1"), of(client, quote("t/1", safe=""))):
            assert names(await client.subscribe(uri)) == ["a.txt", "b.txt"]
        changed, _ = (await client.subscribe(of(client, "t2")))["files"]
        edited = changed["edit"]
        assert edited["diff"] == {"added": 1, "removed": 0}
        assert [await content(client, edited[side]) for side in ("before", "after")] == ["a\n", "a\nmore\n"]
        new = client.states[whole]["files"][0]["edit"]
        assert "before" not in new
        assert await content(client, new["after"]) == "a\nmore\n"
        # Some clients decode the address of a content.
        plain = new["after"]["content"]["uri"].replace("%2F", "/")
        assert (await client.call("resourceRead", uri=plain))["data"] == "a\nmore\n"
        # A call shows its own change, also after an undo.
        parts = client.states[client.chat]["turns"][-1]["responseParts"]
        own = parts[0]["toolCall"]["content"][0]
        assert (own["type"], own["diff"]) == ("fileEdit", {"added": 1, "removed": 0})
        assert (await client.call(UNDO, of(client, "t2"), operationId="undo"))["message"] == "2 files undone."
        found = [await client.call("resourceRead", uri=own[side]["content"]["uri"]) for side in ("before", "after")]
        assert [one["data"] for one in found] == ["a\n", "a\nmore\n"]
        await check_equal(port, client)
        for unknown in (of(client, "t3"), f"{whole}/x", f"{client.session}/changeset/"):
            assert (await client.request("subscribe", unknown))["error"]["code"] == -32001, unknown
            assert (await client.request(UNDO, unknown, operationId="undo"))["error"]["code"] == -32008
        gone = new["after"]["content"]["uri"].replace("a.txt", "z.txt")
        other_call = own["after"]["content"]["uri"].replace("a.txt", "c.txt")
        for nothing in (other_call, gone, gone.replace("/session/", "/turn/t9/"), "ahp-session:/none/changeset/x"):
            assert "error" in await client.request("resourceRead", uri=nothing)
        refused = await client.echo(
            await client.dispatch("changeset/filesReviewChanged", whole, files=[changed["id"]], reviewed=True)
        )
        assert "rejectionReason" in refused


async def test_a_file_a_turn_and_all_changes_are_undone(tmp_path: Path) -> None:
    async with opened(tmp_path, "begin", "go on") as (_, port, client), connected(port, "b") as other:
        whole, first, last = of(client), of(client, "t0"), of(client, "t1")
        await other.join(client.session)
        for uri in (whole, first, last):
            await client.subscribe(uri)
            await other.subscribe(uri)

        answer = await client.call(UNDO, last, operationId="undo", target=file_of(tmp_path, "c.txt"))
        assert answer["message"] == "1 file undone."
        assert not (tmp_path / "c.txt").exists()
        # Clients have the outcome before the answer.
        assert names(client.states[last]) == ["a.txt"]
        assert names(client.states[whole]) == ["a.txt", "b.txt"]
        # The later turn has changed this file again.
        refused = (await client.request(UNDO, first, operationId="undo", target=file_of(tmp_path, "a.txt")))[
            "error"
        ]
        assert refused == {"code": -32011, "message": f"No file was undone. {tmp_path}/a.txt was changed since."}
        assert (await client.call(UNDO, first, operationId="undo"))["message"].startswith("1 file undone. ")
        assert not (tmp_path / "b.txt").exists()
        assert names(client.states[first]) == names(client.states[whole]) == ["a.txt"]
        assert await client.call(UNDO, whole, operationId="undo") == {"message": "1 file undone."}
        assert not (tmp_path / "a.txt").exists()
        assert await client.call(UNDO, whole, operationId="undo") == {"message": "There is nothing to undo."}
        for uri in (whole, first, last):
            await until_shown(client, uri)
            await until_shown(other, uri)
        await check_equal(port, client)
        await check_equal(port, other)


async def test_what_cannot_be_undone_is_refused_in_words(tmp_path: Path) -> None:
    async with opened(tmp_path, "begin") as (_, _port, client):
        whole = of(client)
        await client.subscribe(whole)

        async def refusal(**params: Any) -> tuple[int, str]:
            error = (await client.request(UNDO, whole, **params))["error"]
            return error["code"], error["message"]

        assert (await refusal(operationId="redo"))[0] == -32602
        assert (await refusal())[0] == -32602
        targets: list[Any] = [{"kind": "range", "resource": "file:///x"}, {"kind": "resource"}, "a.txt"]
        for target in targets:
            assert (await refusal(operationId="undo", target=target))[0] == -32602
        assert (await refusal(operationId="undo", target=file_of(tmp_path, "z.txt")))[0] == -32008
        (tmp_path / "a.txt").write_text("mine\n")
        code, words = await refusal(operationId="undo", target=file_of(tmp_path, "a.txt"))
        assert (code, "a.txt was changed since" in words) == (-32011, True)
        # A link in its place is not followed.
        (tmp_path / "other").write_text("b\n")
        (tmp_path / "b.txt").unlink()
        (tmp_path / "b.txt").symlink_to("other")
        code, words = await refusal(operationId="undo")
        assert (code, "b.txt was changed since" in words) == (-32011, True)
        assert [(tmp_path / name).read_text() for name in ("a.txt", "other")] == ["mine\n", "b\n"]

        await client.prompt("t9", "hang")
        while not said(client):
            await client.any_action()
        assert status(client, whole) == "disabled"
        assert (await refusal(operationId="undo"))[0] == -32004
        assert (tmp_path / "d.txt").exists()
        # The changes of a turn that still runs are shown.
        assert names(await client.subscribe(of(client, "t9"))) == ["d.txt"]
        await client.dispatch("chat/turnCancelled", turnId="t9", duration=1)
        await until_shown(client, of(client, "t9"), "d.txt")


async def test_an_undo_and_a_rewind_of_another_door_are_shown(tmp_path: Path) -> None:
    async with opened(tmp_path, "begin", "go on", "talk") as (server, port, client), server.connect() as sdk:
        whole, first, last, session = (
            of(client),
            of(client, "t0"),
            of(client, "t1"),
            client.session.removeprefix("ahp-session:/"),
        )
        await client.subscribe(whole)
        await client.subscribe(first)
        await client.subscribe(last)
        await sdk.call("session.resume", {"sessionId": session})
        (tmp_path / "c.txt").write_text("mine\n")
        outcome = await sdk.call("jumpseat.changes.undo", {"sessionId": session})
        assert outcome["left"] == [str(tmp_path / "c.txt")]
        await until_shown(client, whole, "a.txt", "b.txt")
        await until_shown(client, last)
        told = await sdk.event("session.changes_undone", session=session)
        assert told["data"] == {"undone": outcome["undone"], "left": outcome["left"]}
        # And the other way round.
        since = len(sdk.messages)
        await client.call(UNDO, whole, operationId="undo", target=file_of(tmp_path, "b.txt"))
        told = await sdk.event("session.changes_undone", session=session, since=since)
        assert told["data"] == {"undone": [str(tmp_path / "b.txt")], "left": []}
        await check_equal(port, client)

        # The turn of a changeset that is watched goes away, the changes of the session stay.
        told = (await sdk.call("session.getMessages", {"sessionId": session}))["events"]
        begun = next(event["id"] for event in told if event["data"].get("content") == "begin")
        await sdk.call("session.history.truncate", {"sessionId": session, "eventId": begun})
        await client.action("changeset/cleared")
        await client.settle()
        assert (await client.request("subscribe", first))["error"]["code"] == -32001
        await until_shown(client, whole, "a.txt")


async def test_changes_survive_a_restart_and_a_lost_connection(tmp_path: Path) -> None:
    async with door_server(tmp_path, SCRIPT) as (_, port), connected(port, "a") as client:
        await client.create(config={"autoApprove": True})
        await run(client, "t0", "begin")
        await client.subscribe(of(client))
        async with connected(port, "b") as before:
            await before.join(client.session)
            await before.subscribe(of(client))
        await client.call(UNDO, of(client), operationId="undo", target=file_of(tmp_path, "a.txt"))
        async with again(port, before) as after:
            shown = after.states[of(client)]
            assert names(shown) == ["b.txt"]
    async with door_server(tmp_path, SCRIPT) as (_, port), again(port, client) as later:
        assert later.states[of(client)] == client.states[of(client)] == shown
        assert names(later.states[of(client)]) == ["b.txt"]
        assert (await later.call(UNDO, of(client), operationId="undo"))["message"] == "1 file undone."
        assert not (tmp_path / "b.txt").exists()


async def test_two_tokens_see_no_changes_of_each_other(tmp_path: Path) -> None:
    tokens = ConnectionTokenFile(tmp_path / "home")
    ada_query, eve_query = (f"?tkn={tokens.add(name, all_sessions=False)}" for name in ("ada", "eve"))
    async with (
        door_server(tmp_path, SCRIPT, without_token=()) as (_, port),
        connected(port, "ada", ada_query) as ada,
        connected(port, "eve", eve_query) as eve,
    ):
        await ada.create(config={"autoApprove": True})
        await run(ada, "t0", "begin")
        await eve.create()
        for uri in (of(ada), of(ada, "t0")):
            state = await ada.subscribe(uri)
            assert (await eve.request("subscribe", uri))["error"]["code"] == -32001
            assert (await eve.request(UNDO, uri, operationId="undo"))["error"]["code"] == -32008
            ref = state["files"][0]["edit"]["after"]["content"]["uri"]
            assert (await eve.request("resourceRead", uri=ref))["error"]["code"] == -32008
            await eve.dispatch("changeset/filesReviewChanged", uri, files=[], reviewed=True)
        await eve.settle()
        assert (tmp_path / "a.txt").read_text() == "a\n"
        assert not any(of(ada) in str(message) and "error" not in message for message in eve.received)


def test_the_address_of_a_content_is_read_as_it_was_written() -> None:
    paths = [Path("/a b/ü#%?.txt"), Path(os.fsdecode(b"/\xff/x")), Path("/content/before/x")]
    for turn in (None, "t1", "a/b", "%2F", "content/after/x"):
        begin = f"{session_uri('s')}/changeset/"
        uri = f"{begin}session" if turn is None else f"{begin}turn/{quote(turn, safe='')}"
        assert turn_of(uri, ["t0", "t1", "a/b", "%2F", "content/after/x"]) == turn
        side = SideOfFile(1, "0")
        files = shown_files(uri, [FileInSet(one, side, side, 1, 2) for one in paths])
        for path, shown in zip(paths, files, strict=True):
            assert path_of(shown["id"]) == str(path)
            for name in ("before", "after"):
                address = content_address(shown["edit"][name]["content"]["uri"])
                assert address == (uri, path, name)
                assert kind_of(shown["edit"][name]["content"]["uri"]) == "changeset"
    for other in ("file:///x/content/before/y", "ahp-session:/s/changeset/session/content/before/", "x"):
        assert content_address(other) is None


def test_the_files_of_a_call_are_those_of_the_headers_of_its_diff() -> None:
    forged = unified_diff("/p/a.sql", "-- a/x\nb\n", "b\n++ b/x\n@@ -1 +1 @@\n")
    diff = forged + unified_diff("/p/new", None, "n") + unified_diff("/p/old", "o\n\n", None)
    result = events.ToolResult(content="Done.", detailed_content=diff)
    payloads: list[events.EventPayload] = [
        events.UserMessage(content="go", message_id="m", interaction_id="t"),
        events.ToolExecutionStart(tool_call_id="c", tool_name="edit", arguments={}),
        events.ToolExecutionComplete(tool_call_id="c", success=True, result=result),
    ]
    translator = Translator()
    found = [
        action
        for payload in payloads
        for action in with_edits("s", Event.of("e", "2026-11-28T00:00:00.000Z", None, payload), translator)
    ]
    content: list[JsonObject] = found[-1]["result"]["content"]
    blocks = [one for one in content if one["type"] == "fileEdit"]
    assert [one.get("diff") for one in blocks] == [
        {"added": 2, "removed": 1},
        {"added": 1, "removed": 0},
        {"added": 0, "removed": 2},
    ]
    sides = [[one[side]["uri"] for side in ("before", "after") if side in one] for one in blocks]
    assert sides == [["file:///p/a.sql"] * 2, ["file:///p/new"], ["file:///p/old"]]
    assert content[-1]["text"] == diff
