"""The system message in requests to a loopback provider, over the real wire."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.callbacks import SILENT, THROWS, AnsweringClient, answering, server_request
from tests.support.fake_openai import MODEL, FakeOpenAI, fake_openai, says, texts
from tests.support.server import JsonObject, Wire, running_server

pytestmark = pytest.mark.anyio

Opening = Literal["created", "resumed"]

DEFAULT_LIMIT_BYTES = 8400
EMPTY_LIMIT_BYTES = 1024
# The options of the SDKs' mode "empty": for `session.create`, then for `session.options.update`.
EMPTY: JsonObject = {
    "systemMessage": {"mode": "customize", "sections": {"environment_context": {"action": "remove"}}},
    "availableTools": ["custom:*"],
    "enableHostGitOperations": False,
    "enableSkills": False,
}
EMPTY_UPDATE: JsonObject = {"skipCustomInstructions": True, "customAgentsLocalOnly": True, "installedPlugins": []}
IDENTITY = "You are a coding agent"
TONE = "Be brief"
CODE = "<code_change_instructions>"
CWD = "Current working directory:"


@pytest.fixture(params=["created", "resumed"])
def opening(request: pytest.FixtureRequest) -> Opening:
    """Return the method that gets the options: ``session.create`` or a later ``session.resume``."""
    return request.param


class Scene:
    def __init__(self, wire: Wire, client: AnsweringClient, model: FakeOpenAI, session: str) -> None:
        self.wire = wire
        self.client = client
        self.model = model
        self.session = session

    async def system(self) -> str:
        """Send a prompt and return the system message of its request."""
        await self.wire.prompt(self.session, "Hello")
        (text,) = texts(self.model.requests[-1], "system")
        return text


@asynccontextmanager
async def open_session(
    folder: Path,
    opening: Opening,
    answers: dict[str, list[Any]] | None = None,
    *,
    config: str | None = None,
    provider_options: JsonObject | None = None,
    **options: Any,
) -> AsyncGenerator[Scene]:
    async with (
        fake_openai({"Hello": [says("Hi.")] * 3}) as model,
        running_server(folder, config=config) as server,
        answering(server.wire, answers) as client,
    ):
        wire = server.wire
        setup: JsonObject = {
            "provider": {"type": "openai", "baseUrl": model.base_url, "apiKey": "key", **(provider_options or {})},
            "model": MODEL,
        }
        if opening == "created":
            session = await wire.create(**setup, **options)
        else:
            session = await wire.create(**setup, systemMessage={"mode": "replace", "content": "Something else."})
            await wire.prompt(session, "Hello")
            await wire.call("session.detach", {"sessionId": session})
            await wire.call("session.resume", {"sessionId": session, **setup, **options})
        yield Scene(wire, client, model, session)


def customized(**sections: str | tuple[str, str]) -> JsonObject:
    """Return a customized message; the edit of a section is an action, or an action with its content."""
    edits = {
        name: {"action": edit} if isinstance(edit, str) else {"action": edit[0], "content": edit[1]}
        for name, edit in sections.items()
    }
    return {"mode": "customize", "sections": edits}


# --- append, replace, customize -----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [{}, {"mode": "append"}])
async def test_content_goes_after_the_default_message(tmp_path: Path, opening: Opening, mode: JsonObject) -> None:
    async with open_session(tmp_path, opening, systemMessage={**mode, "content": "End with\n  a haiku."}) as scene:
        text = await scene.system()
    assert text.endswith("\n\nEnd with\n  a haiku.")
    assert all(part in text for part in (IDENTITY, "GitHub", TONE, CODE, f"{CWD} {tmp_path}"))


async def test_a_replaced_message_is_only_the_content(tmp_path: Path, opening: Opening) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    message = {"mode": "replace", "content": " Only this.\n"}
    async with open_session(tmp_path, opening, systemMessage=message) as scene:
        assert await scene.system() == " Only this.\n"


@pytest.mark.parametrize(
    ("sections", "there", "gone"),
    [
        ({"tone": ("replace", "Rhyme.")}, ["Rhyme.", IDENTITY], [TONE]),
        ({"tone": ("append", "Rhyme.")}, [TONE, "filler.\nRhyme."], []),
        ({"tone": ("prepend", "Rhyme.")}, [f"Rhyme.\n{TONE}"], []),
        ({"code_change_rules": "remove"}, [IDENTITY, TONE], ["<code_change_instructions>"]),
        ({"environment_context": "remove"}, [IDENTITY], [CWD, "Operating System:"]),
        ({"identity": ("replace", "I am me.")}, ["I am me.", CODE], [IDENTITY, TONE]),
        ({"identity": "remove", "tone": "preserve"}, [TONE, CODE], [IDENTITY]),
        ({"preamble": ("replace", "I am me.")}, ["I am me.", TONE], [IDENTITY]),
        ({"of_tomorrow": ("append", "Be kind.")}, [IDENTITY, "\n\nBe kind."], []),
        ({"of_tomorrow": "remove"}, [IDENTITY, TONE, CODE], []),
    ],
)
async def test_sections_are_edited_individually(
    tmp_path: Path, sections: dict[str, Any], there: list[str], gone: list[str]
) -> None:
    message = customized(**sections) | {"content": "At the very end."}
    async with open_session(tmp_path, "created", systemMessage=message) as scene:
        text = await scene.system()
    assert [part for part in there if part not in text] == []
    assert [part for part in gone if part in text] == []
    assert text.endswith("\n\nAt the very end.")


async def test_edits_of_a_resume_replace_earlier_ones(tmp_path: Path) -> None:
    async with open_session(tmp_path, "resumed", systemMessage=customized(tone=("replace", "Rhyme."))) as scene:
        text = await scene.system()
    assert "Rhyme." in text
    assert IDENTITY in text
    assert "Something else." not in text


async def test_an_unknown_action_is_refused_with_its_field(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        error = await server.wire.error_of("session.create", {"systemMessage": customized(tone="sing")})
    assert error["code"] == -32602
    assert "systemMessage.sections.tone.action" in error["message"]


# --- sections that the client rewrites ----------------------------------------------------------------------------

REWRITTEN = customized(identity="transform", tone="transform", safety=("replace", "Mind the gap."))


async def test_a_client_rewrites_the_sections_that_it_requested(tmp_path: Path, opening: Opening) -> None:
    answer = {"sections": {"identity": {"content": "I am me."}, "tone": {"content": "Rhyme,\n  please."}}}
    answers = {"systemMessage.transform": [answer]}
    async with open_session(tmp_path, opening, answers, systemMessage=REWRITTEN) as scene:
        text = await scene.system()
    (asked,) = scene.client.inputs("systemMessage.transform")
    assert asked["sessionId"] == scene.session
    assert list(asked["sections"]) == ["identity", "tone"]
    assert asked["sections"]["identity"]["content"].startswith(IDENTITY)
    assert asked["sections"]["tone"]["content"].startswith(TONE)
    assert [part for part in ("I am me.", "Rhyme,\n  please.", "Mind the gap.") if part not in text] == []
    assert [part for part in (IDENTITY, TONE) if part in text] == []


@pytest.mark.parametrize(
    "answer",
    [
        THROWS,
        None,
        {},
        [],
        "text",
        {"sections": {}},
        {"sections": {"tone": "Rhyme."}},
        {"sections": {"tone": {"content": 5}}},
        {"sections": {"safety": {"content": "Do as you like."}, "other": {"content": "Do as you like."}}},
    ],
    ids=str,
)
async def test_sections_stay_unchanged_if_the_client_fails_or_answers_invalidly(
    tmp_path: Path, answer: Any
) -> None:
    answers = {"systemMessage.transform": [answer]}
    async with open_session(tmp_path, "created", answers, systemMessage=REWRITTEN) as scene:
        text = await scene.system()
        assert "session.error" not in [event["type"] for event in scene.wire.events()]
    assert [part for part in (IDENTITY, TONE, "Mind the gap.") if part not in text] == []
    assert "Do as you like." not in text


async def test_sections_stay_unchanged_if_the_client_does_not_answer_in_time(tmp_path: Path) -> None:
    answers: dict[str, list[Any]] = {"systemMessage.transform": [SILENT]}
    config = "[hooks]\ntimeout_s = 0.25\n"
    async with open_session(tmp_path, "created", answers, config=config, systemMessage=REWRITTEN) as scene:
        text = await scene.system()
    assert [part for part in (IDENTITY, TONE, "Mind the gap.") if part not in text] == []


async def test_an_abort_does_not_wait_for_a_rewrite(tmp_path: Path) -> None:
    answers: dict[str, list[Any]] = {"systemMessage.transform": [SILENT]}
    async with open_session(tmp_path, "created", answers, systemMessage=REWRITTEN) as scene:
        await scene.wire.call("session.send", {"sessionId": scene.session, "prompt": "Hello"})
        await server_request(scene.wire, "systemMessage.transform")
        await scene.wire.call("session.abort", {"sessionId": scene.session})
        await scene.wire.event("session.idle", aborted=True)
        assert IDENTITY in await scene.system()


async def test_only_the_client_with_transforms_is_asked_to_rewrite(tmp_path: Path) -> None:
    answer = {"sections": {"tone": {"content": "Rhyme."}}}
    async with (
        fake_openai({"Hello": [says("Hi.")] * 2}) as model,
        running_server(tmp_path, tcp=True) as server,
        server.connect() as late,
    ):
        provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"}
        async with server.connect() as first:
            session = await first.create(provider, model=MODEL, systemMessage=REWRITTEN)
            await late.call("session.resume", {"sessionId": session, "provider": provider})
            async with (
                answering(first, {"systemMessage.transform": [answer]}),
                answering(late, {"systemMessage.transform": [SILENT]}) as other,
            ):
                await late.prompt(session, "Hello")
        # After it has left, no client rewrites sections.
        await late.prompt(session, "Hello")
    assert other.names() == []
    assert "Rhyme." in texts(model.requests[0], "system")[0]
    assert TONE in texts(model.requests[1], "system")[0]


# --- instructions -------------------------------------------------------------------------------------------------


async def test_instructions_of_the_project_and_of_named_folders_are_in_the_message(
    tmp_path: Path, opening: Opening
) -> None:
    team = tmp_path / "team"
    files = {
        tmp_path / "AGENTS.md": "Use tabs.",
        tmp_path / ".github" / "copilot-instructions.md": "Speak Latin.",
        team / ".github" / "instructions" / "deep" / "style.instructions.md": "No semicolons.",
        team / ".github" / "instructions" / "notes.md": "Not for agents.",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    options: JsonObject = {"instructionDirectories": [str(team)], "organizationCustomInstructions": "Be civil."}
    options["systemMessage"] = {"mode": "append"}
    async with open_session(tmp_path, opening, **options) as scene:
        text = await scene.system()
        await scene.wire.call(
            "session.options.update", {"sessionId": scene.session, "skipCustomInstructions": True}
        )
        skipped = await scene.system()
    wanted = ["Use tabs.", "Speak Latin.", "No semicolons."]
    assert [part for part in [*wanted, "Be civil."] if part not in text] == []
    assert "Not for agents." not in text
    assert [part for part in [*wanted, "Not for agents."] if part in skipped] == []


async def test_unreadable_instructions_are_skipped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "AGENTS.md")
    (tmp_path / ".github" / "copilot-instructions.md").mkdir(parents=True)
    folders = ["\0", "missing", str(tmp_path / "AGENTS.md"), "x" * 4000]
    async with open_session(tmp_path, "created", instructionDirectories=folders) as scene:
        assert IDENTITY in await scene.system()


# --- size ---------------------------------------------------------------------------------------------------------


async def test_the_first_request_with_the_default_tools_stays_small(tmp_path: Path) -> None:
    async with open_session(tmp_path, "created", requestUserInput=True) as scene:
        await scene.system()
    (request,) = scene.model.requests
    assert "bash" in [tool["function"]["name"] for tool in request["tools"]]
    assert _size(request) < DEFAULT_LIMIT_BYTES


@pytest.mark.parametrize("given", ["option", "configuration", "window"])
async def test_the_minimal_tools_take_at_most_900_tokens(tmp_path: Path, given: str) -> None:
    options: JsonObject = {"availableTools": ["@minimal"]} if given == "option" else {}
    config = '[tools]\noffered = "minimal"\n' if given == "configuration" else None
    provider = {"maxContextWindowTokens": 8192} if given == "window" else {}
    async with open_session(tmp_path, "created", config=config, provider_options=provider, **options) as scene:
        events = await scene.wire.prompt(scene.session, "Hello")
    (request,) = scene.model.requests
    assert {tool["function"]["name"] for tool in request["tools"]} == {"bash", "create", "edit", "grep", "view"}
    assert _size(request) <= 4 * 900
    used = next(event["data"] for event in events if event["type"] == "session.usage_info")
    assert used["systemTokens"] + used["toolDefinitionsTokens"] <= 900
    told = [event["data"]["message"] for event in events if event["type"] == "session.info"]
    assert len([text for text in told if "8,192 tokens" in text]) == (given == "window")


async def test_tools_are_named_beside_the_minimal_ones(tmp_path: Path) -> None:
    async with open_session(tmp_path, "created", availableTools=["@minimal", "glob", "builtin:web_fetch"]) as scene:
        await scene.system()
    (request,) = scene.model.requests
    names = {tool["function"]["name"] for tool in request["tools"]}
    assert names == {"bash", "create", "edit", "glob", "grep", "view", "web_fetch"}


async def test_all_tools_are_offered_in_spite_of_a_small_window(tmp_path: Path) -> None:
    provider = {"maxContextWindowTokens": 8192}
    async with open_session(tmp_path, "created", provider_options=provider, availableTools=["@all"]) as scene:
        await scene.system()
    (request,) = scene.model.requests
    assert "web_fetch" in {tool["function"]["name"] for tool in request["tools"]}


async def test_the_first_request_of_the_empty_mode_stays_tiny(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("x" * 2000)
    async with open_session(tmp_path, "created", **EMPTY) as scene:
        await scene.wire.call("session.options.update", {"sessionId": scene.session, **EMPTY_UPDATE})
        text = await scene.system()
    (request,) = scene.model.requests
    assert not request.get("tools")
    assert str(tmp_path) not in text
    assert _size(request) < EMPTY_LIMIT_BYTES


def _size(request: JsonObject) -> int:
    """Return the size of a request as it is sent, in bytes."""
    return len(json.dumps(request, separators=(",", ":"), ensure_ascii=False).encode())
