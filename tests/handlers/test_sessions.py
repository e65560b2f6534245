"""``sessions.*``: maintaining the sessions on the disk, over the real wire."""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.server import RunningServer, Wire, running_server, scripted

pytestmark = pytest.mark.anyio

HELLO = scripted({"text": "Hello!"})
YEAR_S = 365 * 24 * 60 * 60


async def prompted(wire: Wire, **options: Any) -> str:
    """Create a session and run one prompt; returns its id."""
    session = await wire.create(HELLO, **options)
    await wire.prompt(session, "What is this about?")
    return session


async def stored(wire: Wire, **options: Any) -> str:
    """Create a session, run one prompt and detach; returns its id."""
    session = await prompted(wire, **options)
    await wire.call("session.destroy", {"sessionId": session})
    return session


def make_older(server: RunningServer, session: str, seconds: float) -> None:
    """Set the time of a session's last change to the past."""
    log = server.log_of(session)
    changed = log.stat().st_mtime - seconds
    os.utime(log, (changed, changed))


def folder(tmp_path: Path, name: str) -> str:
    made = tmp_path / name
    made.mkdir()
    return str(made)


def ids(result: dict[str, Any]) -> list[str]:
    return [session["sessionId"] for session in result["sessions"]]


# --- lookup -----------------------------------------------------------------------------------------------------


async def test_the_list_equals_session_list_with_less_metadata_beyond_the_limit(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        old, new = await stored(server.wire), await stored(server.wire)
        make_older(server, old, 10)
        whole = await server.wire.call("sessions.list", {})
        limited = await server.wire.call("sessions.list", {"metadataLimit": 1, "source": "all"})
        bare = await server.wire.call("sessions.list", {"metadataLimit": 0})
        assert whole == await server.wire.call("session.list", {})
        assert await server.wire.call("sessions.list", {"source": "remote"}) == {"sessions": []}
        for wrong in ({"source": "moon"}, {"metadataLimit": -1}, {"filter": "x"}):
            assert (await server.wire.error_of("sessions.list", wrong))["code"] == -32602
    assert ids(whole) == ids(limited) == [new, old]
    assert limited["sessions"][0] == whole["sessions"][0]
    for entry in [limited["sessions"][1], *bare["sessions"]]:
        assert set(entry) == {"sessionId", "startTime", "modifiedTime", "isRemote"}


async def test_the_list_can_be_filtered_by_context(tmp_path: Path) -> None:
    here, there = folder(tmp_path, "here"), folder(tmp_path, "there")
    async with running_server(tmp_path) as server:
        first, _ = (
            await stored(server.wire, workingDirectory=here),
            await stored(server.wire, workingDirectory=there),
        )
        found = await server.wire.call("sessions.list", {"filter": {"cwd": here}, "metadataLimit": 0})
        internal = await server.wire.call("sessions.getMetadata", {"sessionId": first})
        by_id = await server.wire.call("session.getMetadata", {"sessionId": first})
        non_empty = await server.wire.call("sessions.listNonEmptySessionIds", {"limit": 1})
        path = await server.wire.call("sessions.getEventFilePath", {"sessionId": first})
    assert ids(found) == [first]
    assert internal == by_id
    assert len(non_empty["sessionIds"]) == 1
    assert path == {"filePath": str(server.log_of(first))}


async def test_a_unique_prefix_finds_its_session(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        one, other, longer = "0badc0de-1-one", "0badc0de-2-other", "0badc0de-1-one-more"
        for session in (one, other, longer):
            await server.wire.create(HELLO, sessionId=session)

        async def found(prefix: str) -> Any:
            return await server.wire.call("sessions.findByPrefix", {"prefix": prefix})

        assert await found("0badc0de-2") == {"sessionId": other}
        assert await found("0badc0de") == {}
        assert await found(one) == {"sessionId": one}
        assert await found("0badc0de-3") == {}
        assert await found("../../etc") == {}
        assert (await server.wire.error_of("sessions.findByPrefix", {"prefix": "0bad"}))["code"] == -32602
        assert (await server.wire.error_of("sessions.findByPrefix", {}))["code"] == -32602


async def test_the_last_session_for_a_context_is_the_best_match(tmp_path: Path) -> None:
    here, there, nowhere = (folder(tmp_path, name) for name in ("here", "there", "nowhere"))
    async with running_server(tmp_path) as server:

        async def last(context: dict[str, Any] | None = None) -> Any:
            return await server.wire.call("sessions.getLastForContext", {"context": context} if context else {})

        assert await last() == await last({"cwd": here}) == {}
        first = await stored(server.wire, workingDirectory=here)
        second = await stored(server.wire, workingDirectory=here)
        newest = await stored(server.wire, workingDirectory=there)
        for seconds, session in ((30, first), (20, second), (10, newest)):
            make_older(server, session, seconds)
        assert await last({"cwd": here}) == {"sessionId": second}
        assert await last() == await last({"cwd": nowhere}) == {"sessionId": newest}
        assert (await server.wire.error_of("sessions.getLastForContext", {"context": {}}))["code"] == -32602


async def test_a_stored_log_is_read_in_pages_in_both_directions(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await stored(wire)
        whole = await wire.call("sessions.readPersistedEvents", {"sessionId": session, "max": 1000})
        expected = [event["id"] for event in whole["events"]]
        assert (whole["hasMore"], whole["cursorStatus"]) == (False, "ok")
        assert expected == [json.loads(line)["id"] for line in server.log_of(session).read_text().splitlines()]
        for direction in ("forward", "backward"):
            pages: list[list[str]] = []
            params: dict[str, Any] = {"sessionId": session, "max": 3, "direction": direction}
            while True:
                page = await wire.call("sessions.readPersistedEvents", params)
                pages.append([event["id"] for event in page["events"]])
                if not page["hasMore"]:
                    break
                params["cursor"] = page["cursor"]
            ordered = pages if direction == "forward" else pages[::-1]
            assert [event for part in ordered for event in part] == expected
        again = await wire.call("sessions.readPersistedEvents", params)
        assert (again["events"], again["hasMore"], again["cursorStatus"]) == ([], False, "expired")
        missing = await wire.error_of("sessions.readPersistedEvents", {"sessionId": "nobody"})
        assert missing["message"] == "Session not found: nobody"


async def test_a_read_of_a_log_ends_where_it_began_and_expires_when_the_log_is_cut(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(scripted({"text": "one"}, {"text": "two"}, {"text": "three"}))
        await wire.prompt(session, "first")
        params = {"sessionId": session, "max": 1}
        first, second = [await wire.call("sessions.readPersistedEvents", params) for _ in range(2)]
        await wire.prompt(session, "second")
        rest = await wire.call("sessions.readPersistedEvents", params | {"cursor": first["cursor"], "max": 1000})
        said = [event["data"]["content"] for event in rest["events"] if event["type"] == "user.message"]
        assert (said, rest["hasMore"]) == (["first"], False)
        prompts = (await wire.call("session.history.listRewindPoints", {"sessionId": session}))["points"]
        cut = {"sessionId": session, "eventId": prompts[0]["eventId"]}
        await wire.call("session.history.truncate", cut)
        await wire.prompt(session, "other")
        expired = await wire.call("sessions.readPersistedEvents", params | {"cursor": second["cursor"]})
        assert (expired["events"], expired["cursorStatus"]) == ([], "expired")


async def test_clients_keep_strings_with_a_session_all_or_nothing(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await prompted(wire)
        here = {"sessionId": session}
        update = here | {"set": {"app/colour": "red", "app/size": "2"}}
        assert await wire.call("session.metadata.updateClientMetadata", update) == update["set"]
        changed = here | {"remove": ["app/size", "none"], "set": {"app/name": "x"}}
        expected = {"app/colour": "red", "app/name": "x"}
        assert await wire.call("session.metadata.updateClientMetadata", changed) == expected
        for wrong, problem in (
            ({"set": {"copilot/x": "1"}}, "reserved"),
            ({"set": {"": "1"}}, "not empty"),
            ({"set": {"a": "x" * 20_000}}, "more than 16384 bytes"),
            ({"set": {str(number): "" for number in range(200)}}, "at most 128"),
            ({"clear": True, "remove": ["k" * 300]}, "at most 256 bytes"),
        ):
            refused = await wire.error_of("session.metadata.updateClientMetadata", here | wrong)
            assert problem in refused["message"]
        await wire.call("session.destroy", here)
        other = await stored(wire)
        server.log_of(other).with_name("client-metadata.json").write_text("{")
        asked = {"sessionIds": [other, "nobody", session], "keys": ["app/name"]}
        assert await wire.call("sessions.getClientMetadata", asked) == [
            {"sessionId": other, "status": "corrupt"},
            {"sessionId": "nobody", "status": "notFound"},
            {"sessionId": session, "status": "ok", "metadata": {"app/name": "x"}},
        ]
    async with running_server(tmp_path) as server:
        await server.wire.call("session.resume", here)
        assert await server.wire.call("session.metadata.getClientMetadata", here) == expected
        cleared = await server.wire.call("session.metadata.updateClientMetadata", here | {"clear": True})
        assert cleared == {}


async def test_hosts_see_the_settings_and_set_the_counts_of_changes(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await prompted(server.wire, clientName="mine", model="scripted-model")
        here = {"sessionId": session}
        found = await server.wire.call("session.settings.snapshot", here)
        assert (found["clientName"], found["model"]) == ("mine", {"model": "scripted-model"})
        assert (found["job"], found["validation"], found["onlineEvaluation"]) == ({}, {}, {})
        counts = here | {"linesAdded": 7, "linesRemoved": 2, "filesCount": 3}
        await server.wire.call("session.usage.setCodeChanges", counts)
        changes = (await server.wire.call("session.usage.getMetrics", here))["codeChanges"]
        assert (changes["linesAdded"], changes["linesRemoved"], changes["filesModifiedCount"]) == (7, 2, 3)


async def test_sizes_are_those_of_the_session_folders(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await prompted(server.wire)
        before = await server.wire.call("sessions.getSizes")
        await server.wire.call(
            "session.workspaces.createFile", {"sessionId": session, "path": "a", "content": "x" * 5000}
        )
        after = await server.wire.call("sessions.getSizes")
    assert before["sizes"].keys() == {session}
    assert before["sizes"][session] > server.log_of(session).stat().st_size / 2
    assert after["sizes"][session] >= before["sizes"][session] + 5000


async def test_metadata_that_a_list_left_out_can_be_completed(tmp_path: Path) -> None:
    here = folder(tmp_path, "here")
    async with running_server(tmp_path) as server:
        session = await stored(server.wire, workingDirectory=here)
        empty = await server.wire.create(HELLO, workingDirectory=here)
        (sessions,) = (await server.wire.call("sessions.list", {}))["sessions"]
        (bare,) = (await server.wire.call("sessions.list", {"metadataLimit": 0}))["sessions"]
        unknown = {**bare, "sessionId": str(uuid.uuid4())}
        blank = {**bare, "sessionId": empty}
        named = {**blank, "name": "Mine", "clientName": "host", "mcTaskId": "7"}
        complete = {**sessions, "summary": "As it was"}

        async def enrich(*given: dict[str, Any]) -> list[dict[str, Any]]:
            return (await server.wire.call("sessions.enrichMetadata", {"sessions": given}))["sessions"]

        assert await enrich(bare) == [sessions]
        assert await enrich(unknown, blank, complete) == [unknown, complete]
        assert await enrich(named) == [{**named, "summary": "Mine", "context": {"cwd": here}}]
        bad: list[Any] = [{}, {"sessions": [{"sessionId": session}]}, {"sessions": {}}]
        for wrong in bad:
            assert (await server.wire.error_of("sessions.enrichMetadata", wrong))["code"] == -32602


# --- in use, saved, closed --------------------------------------------------------------------------------------


async def test_sessions_marked_by_another_running_process_are_in_use(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, await anyio.open_process(["sleep", "60"]) as other:
        own, foreign = await prompted(server.wire), await stored(server.wire)
        (server.log_of(foreign).parent / f"inuse.{other.pid}.lock").touch()
        params = {"sessionIds": [own, foreign, str(uuid.uuid4()), "../x", ""]}
        assert await server.wire.call("sessions.checkInUse", params) == {"inUse": [foreign]}
        assert (await server.wire.error_of("sessions.checkInUse", {"sessionIds": "x"}))["code"] == -32602
        other.kill()


async def test_a_live_session_keeps_its_mark_until_it_is_closed(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await prompted(server.wire)
        marks = server.log_of(session).parent
        assert list(marks.glob("inuse.*.lock"))
        for session_id in (session, session, "nobody", "../x"):
            assert await server.wire.call("sessions.releaseLock", {"sessionId": session_id}) == {}
        assert list(marks.glob("inuse.*.lock"))
        await server.wire.prompt(session)
        await server.wire.call("session.destroy", {"sessionId": session})
        assert not list(marks.glob("inuse.*.lock"))


async def test_a_saved_session_stays_live_with_a_complete_log(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await prompted(server.wire)
        for session_id in (session, "nobody"):
            assert await server.wire.call("sessions.save", {"sessionId": session_id}) == {}
        await server.wire.prompt(session)
        history = await server.wire.call("session.getMessages", {"sessionId": session})
        assert len(server.log_of(session).read_bytes().splitlines()) == len(history["events"])


async def test_closing_emits_shutdown_keeps_the_files_and_succeeds_twice(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await prompted(server.wire)
        for _ in range(2):
            assert await server.wire.call("sessions.close", {"sessionId": session}) == {}
        assert await server.wire.event("session.shutdown", shutdownType="routine")
        gone = await server.wire.error_of("session.send", {"sessionId": session, "prompt": "?"})
        assert gone["message"] == f"Session not found: {session}"
        assert not list(server.log_of(session).parent.glob("inuse.*.lock"))
        await server.wire.call("session.resume", {"sessionId": session, "provider": HELLO})


async def test_two_requests_that_close_a_session_during_its_hooks_both_succeed(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        wire = server.wire
        session = await wire.create(HELLO, hooks=True)
        closing = [await wire.ask("sessions.close", {"sessionId": session}) for _ in range(2)]
        hooks: list[dict[str, Any]] = []
        for _ in closing:
            since = wire.messages.index(hooks[-1]) + 1 if hooks else 0
            hooks.append(await wire.until(lambda message: message.get("method") == "hooks.invoke", since=since))
        for hook in hooks:
            await wire.answer(hook, {})
        assert [(await wire.response(request))["result"] for request in closing] == [{}, {}]
        assert len([event for event in wire.events(session) if event["type"] == "session.shutdown"]) == 1


# --- deleting ---------------------------------------------------------------------------------------------------


async def test_bulk_delete_returns_the_freed_bytes(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        live, kept, old = (
            await prompted(server.wire),
            await prompted(server.wire),
            await stored(server.wire),
        )
        size = (await server.wire.call("sessions.getSizes"))["sizes"][old]
        unknown = str(uuid.uuid4())
        freed = (await server.wire.call("sessions.bulkDelete", {"sessionIds": [live, unknown, old, "../x", live]}))[
            "freedBytes"
        ]
        assert freed == {live: freed[live], unknown: 0, old: size, "../x": 0}
        assert freed[live] > 0
        assert ids(await server.wire.call("sessions.list", {})) == [kept]
        for session in (live, old):
            assert not server.log_of(session).parent.exists()
            await server.wire.until(
                lambda message, session=session: (
                    message.get("params", {}).get("type") == "session.deleted"
                    and message["params"]["sessionId"] == session
                )
            )
        await server.wire.call("sessions.delete", {"sessionId": kept})
        error = await server.wire.error_of("sessions.delete", {"sessionId": kept})
        assert error["message"] == f"Session not found: {kept}"


async def test_pruning_deletes_old_unnamed_sessions_that_are_not_in_use(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        old, new, excluded = [await stored(server.wire) for _ in range(3)]
        named = await prompted(server.wire)
        await server.wire.call("session.name.set", {"sessionId": named, "name": "Dear to me"})
        await server.wire.call("session.destroy", {"sessionId": named})
        live = await prompted(server.wire)
        for session in (old, excluded, named, live):
            make_older(server, session, YEAR_S)
        size = (await server.wire.call("sessions.getSizes"))["sizes"][old]
        params = {"olderThanDays": 30, "excludeSessionIds": [excluded]}

        dry = await server.wire.call("sessions.pruneOld", {**params, "dryRun": True})
        assert {**dry, "skipped": sorted(dry["skipped"])} == {
            "deleted": [],
            "candidates": [old],
            "skipped": sorted([named, live]),
            "freedBytes": size,
            "dryRun": True,
        }
        assert server.log_of(old).exists()

        result = await server.wire.call("sessions.pruneOld", params)
        assert (result["deleted"], result["candidates"], result["freedBytes"]) == ([old], [], size)
        assert not server.log_of(old).exists()

        with_named = await server.wire.call("sessions.pruneOld", {**params, "includeNamed": True})
        assert (with_named["deleted"], with_named["skipped"]) == ([named], [live])
        assert set(ids(await server.wire.call("sessions.list", {}))) == {new, excluded, live}
        for wrong in ({}, {"olderThanDays": -1}, {"olderThanDays": "x"}):
            assert (await server.wire.error_of("sessions.pruneOld", wrong))["code"] == -32602


# --- opening ----------------------------------------------------------------------------------------------------


async def test_a_session_is_opened_by_id_by_context_or_new(tmp_path: Path) -> None:
    here, there = folder(tmp_path, "here"), folder(tmp_path, "there")
    async with running_server(tmp_path) as server:

        async def opened(kind: str, **params: Any) -> Any:
            return await server.wire.call("sessions.open", {"kind": kind, **params})

        assert await opened("resumeLast") == {"status": "not_found"}
        made = await opened("create", options={"provider": HELLO, "workingDirectory": here, "name": "Mine"})
        session = made["sessionId"]
        assert made == {"status": "created", "sessionId": session, "startupPrompts": []}
        assert await server.wire.call("session.name.get", {"sessionId": session}) == {"name": "Mine"}
        await server.wire.prompt(session)
        resumed: dict[str, Any] = {"status": "resumed", "sessionId": session, "startupPrompts": []}
        assert await opened("attach", sessionId=session) == resumed

        await server.wire.call("session.destroy", {"sessionId": session})
        assert await opened("attach", sessionId=session) == {"status": "not_found"}
        assert await opened("resume", sessionId=session[:8], options={"provider": HELLO}) == resumed
        await server.wire.event("session.resume", session=session)
        await server.wire.prompt(session)

        await server.wire.call("session.destroy", {"sessionId": session})
        await stored(server.wire, workingDirectory=there)
        since = len(server.wire.messages)
        assert await opened("resumeLast", options={"provider": HELLO}) == {"status": "not_found"}
        last = await opened("resumeLast", context={"cwd": here}, resume=False, options={"provider": HELLO})
        assert last == resumed
        await server.wire.prompt(session)
        assert "session.resume" not in [event["type"] for event in server.wire.events(session, since=since)]


async def test_an_opened_session_streams_if_the_client_asks_for_it(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        for wanted in (True, False):
            options = {"provider": HELLO, "enableStreaming": wanted}
            made = await server.wire.call("sessions.open", {"kind": "create", "options": options})
            events = await server.wire.prompt(made["sessionId"])
            assert ("assistant.message_delta" in [event["type"] for event in events]) is wanted


async def test_a_session_that_cannot_be_opened_is_not_found_or_rejected(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        for session in ("nobody-at-all", "../../etc", "x" * 300):
            for kind in ("resume", "attach"):
                answer = await server.wire.call("sessions.open", {"kind": kind, "sessionId": session})
                assert answer == {"status": "not_found"}
        assert await server.wire.call("sessions.open") == {"status": "not_found"}
        for kind in ("remote", "cloud", "handoff"):
            error = await server.wire.error_of("sessions.open", {"kind": kind, "sessionId": "x"})
            assert error["message"] == f"sessions.open of kind {kind!r} is not supported by this server"
        assert "sessionId" in (await server.wire.error_of("sessions.open", {"kind": "resume"}))["message"]
        error = await server.wire.error_of("sessions.open", {"kind": "create", "options": {"sessionId": "../x"}})
        assert "'../x'" in error["message"]
        for wrong in ({"kind": "guess"}, {"kind": "create", "options": 7}):
            assert (await server.wire.error_of("sessions.open", wrong))["code"] == -32602
