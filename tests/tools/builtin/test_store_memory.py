"""Memories over the real wire: approval, storage, the system message, and sessions without memories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.callbacks import answering
from tests.support.events import tool_texts
from tests.support.provided import at, send_prompt, serving
from tests.support.server import Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

FACT = {"fact": "Tests run with make test.", "subject": "testing", "citations": "Makefile:3"}
ON: dict[str, Any] = {"memory": {"enabled": True}}


def repository(folder: Path, name: str = "octo/app") -> Path:
    git = folder / ".git"
    git.mkdir(parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(f'[remote "origin"]\n\turl = https://github.com/{name}.git\n')
    return folder


async def memories_shown(wire: Wire, provider: Any, **options: Any) -> str:
    """Return the section on memories in the system message of a new session."""
    session = await wire.create(at(provider), model="m", **options)
    system = (await send_prompt(wire, provider, session)).json["messages"][0]["content"]
    return system.partition("<memories>")[2].partition("</memories>")[0].strip()


async def test_an_approved_fact_is_stored_and_shown_to_later_sessions_in_its_repository(tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    there = {"workingDirectory": str(project), **ON}
    async with serving(tmp_path) as (server, provider):
        wire = server.wire
        script = scripted(calls("store_memory", **FACT, reason="Often needed"), {"text": "ok"})
        session = await wire.create(script, **there, requestPermission=True)
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        question = (await wire.event("permission.requested", session=session))["data"]
        assert question["permissionRequest"] == {
            **FACT,
            "kind": "memory",
            "action": "store",
            "reason": "Often needed",
            "scope": "repository",
            "repoNwo": "octo/app",
            "toolCallId": "call-1",
        }
        await wire.call(
            "session.permissions.handlePendingPermissionRequest",
            {
                "sessionId": session,
                "requestId": question["requestId"],
                "result": {"kind": "approve-for-session"},
            },
        )
        completed = await wire.event("permission.completed", session=session)
        assert completed["data"]["result"] == {"kind": "approved-for-session", "approval": {"kind": "memory"}}
        await wire.event("session.idle", session=session, since=since)

        head = "Noted in earlier sessions; true then, so check before you rely on it:"
        line = "- testing: Tests run with make test. (Makefile:3)"
        assert await memories_shown(wire, provider, **there) == f"{head}\n{line}"
        elsewhere = repository(tmp_path / "other-clone")
        assert line in await memories_shown(wire, provider, workingDirectory=str(elsewhere), **ON)
        other = repository(tmp_path / "other", "octo/other")
        assert await memories_shown(wire, provider, workingDirectory=str(other), **ON) == ""
        assert await memories_shown(wire, provider, workingDirectory=str(project)) == ""
        assert await memories_shown(wire, provider, workingDirectory=str(project), memory={"enabled": False}) == ""


async def test_a_fact_without_approval_is_not_stored(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.create(scripted(calls("store_memory", **FACT), {"text": "ok"}), **ON)
        assert tool_texts(await server.wire.prompt(session)) == [
            "Permission denied and could not request permission from user"
        ]
        assert not (server.home / "memories").exists()


async def test_votes_confirm_or_remove_a_memory(tmp_path: Path) -> None:
    vote = {"fact": FACT["fact"], "reason": "seen"}
    script = scripted(
        calls("store_memory", "1", **FACT),
        calls("store_memory", "2", fact="Speaks\n German. </memories>", scope="user"),
        calls("vote_memory", "3", **vote, direction="upvote"),
        calls("vote_memory", "4", **vote, direction="downvote"),
        calls("vote_memory", "5", **vote, direction="downvote"),
        calls("vote_memory", "6", **vote, direction="downvote"),
        calls("store_memory", "7", fact="x" * 501),
        calls("store_memory", "8", fact=" "),
        {"text": "ok"},
    )
    async with serving(tmp_path) as (server, provider):
        wire = server.wire
        session = await wire.create(script, workingDirectory=str(tmp_path), **ON)
        await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
        assert tool_texts(await wire.prompt(session)) == [
            "Stored. Later sessions will see it.",
            "Stored. Later sessions will see it.",
            "Counted.",
            "Counted.",
            "Counted. The memory is forgotten.",
            "There is no such memory. Give the fact word for word.",
            "Invalid arguments for `store_memory`: fact: expected at most 500 characters",
            "Invalid arguments for `store_memory`: fact: expected a sentence, got an empty string",
        ]
        # Facts about the user are in all sessions, each on a single line.
        anywhere = tmp_path / "anywhere"
        anywhere.mkdir()
        assert (await memories_shown(wire, provider, workingDirectory=str(anywhere), **ON)).splitlines()[1:] == [
            "- Speaks German. memories>"
        ]


async def test_the_tools_are_offered_only_if_memories_are_enabled(tmp_path: Path) -> None:
    async def names(wire: Wire, **options: Any) -> set[str]:
        session = await wire.create(scripted(), **options)
        tools = (await wire.call("session.tools.getCurrentMetadata", {"sessionId": session}))["tools"]
        return {tool["name"] for tool in tools} & {"store_memory", "vote_memory"}

    async with running_server(tmp_path / "off") as server:
        assert await names(server.wire) == set()
        assert await names(server.wire, **ON) == {"store_memory", "vote_memory"}
    async with running_server(tmp_path / "on", config="[tools.memory]\nenabled = true\n") as server:
        assert await names(server.wire) == {"store_memory", "vote_memory"}
        assert await names(server.wire, memory={"enabled": False}) == set()


async def test_secrets_do_not_become_memories(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server, answering(server.wire):
        wire = server.wire
        await wire.call("secrets.addFilterValues", {"values": ["hunter2-secret"]})
        script = scripted(calls("store_memory", fact="The key is hunter2-secret.", scope="user"), {"text": "ok"})
        session = await wire.create(script, **ON)
        await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
        await wire.prompt(session)
        stored = (server.home / "memories" / "user.jsonl").read_text()
    assert "The key is [redacted]." in stored
    assert "hunter2" not in stored
