"""Diagnostics of the session's client in place of those of our own servers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from tests.lsp.parts import DONE, NOTED, edit, language_servers, project_with, results_of, word_config
from tests.support.server import JsonObject, Wire, running_server, scripted

pytestmark = pytest.mark.anyio

FILES: Final = {"a.words": "def one\ndef two\nuse old\nuse one\n", "b.words": "use two\nuse older\n"}
BROKEN: Final = [
    NOTED + "a.words:5:5: unknown name tow (words)",
    NOTED + "b.words:1:5: unknown name two (words)",
]
Say = Callable[[Path, JsonObject], Any]


def problems(project: Path) -> list[tuple[Path, int, str]]:
    """Return the uses of unknown names, as the language server of the other tests finds them."""
    texts = {path: path.read_text().splitlines() for path in sorted(project.glob("*.words"))}
    known = {line.split()[1] for lines in texts.values() for line in lines if line.startswith("def ")}
    return [
        (path, number, line.split()[1])
        for path, lines in texts.items()
        for number, line in enumerate(lines, 1)
        if line.startswith("use ") and line.split()[1] not in known
    ]


def as_lines(project: Path, _arguments: JsonObject) -> str:
    found = [f"{path.name}:{line}:5: error: unknown name {name} [words]" for path, line, name in problems(project)]
    return "\n".join(found) or "No diagnostics."


def as_json(project: Path, _arguments: JsonObject) -> str:
    entries = [
        {
            "uri": path.as_uri(),
            "diagnostics": [
                {
                    "message": f"unknown name {name}",
                    "severity": "Error",
                    "source": "words",
                    "range": {
                        "start": {"line": line - 1, "character": 4},
                        "end": {"line": line - 1, "character": 9},
                    },
                }
            ],
        }
        for path, line, name in problems(project)
    ]
    return json.dumps(entries)


def tool(name: str, *required: str, **properties: JsonObject) -> JsonObject:
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": "List problems", "parameters": parameters, "skipPermission": True}


VSCODE: Final = tool("vscode_diagnostics", path={"type": "string"}, wait_for={"type": "array"})
PLAIN: Final = tool("get_diagnostics", file={"type": "string"})
BY_FILE: Final = tool("ide-getDiagnostics", "uri", uri={"type": "string"})


@asynccontextmanager
async def client_with(wire: Wire, project: Path, say: Say) -> AsyncGenerator[list[JsonObject]]:
    """Answer calls of a client's tool with what ``say`` returns, unless that is ``None``; yield the arguments."""
    asked: list[JsonObject] = []

    async def answer() -> None:
        since = 0
        while True:
            message = await wire.until(
                lambda one: one.get("params", {}).get("event", {}).get("type") == "external_tool.requested",
                since=since,
            )
            since = wire.messages.index(message) + 1
            data = message["params"]["event"]["data"]
            asked.append(data["arguments"])
            if (result := say(project, data["arguments"])) is not None:
                reply = {"sessionId": data["sessionId"], "requestId": data["requestId"], "result": result}
                await wire.call("session.tools.handlePendingToolCall", reply)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(answer)
        yield asked
        tasks.cancel_scope.cancel()


EDITS: Final = [edit("a.words", "use one", "\nuse tow"), edit("a.words", "def two", "def too", "call-2")]


async def told(wire: Wire, project: Path, definition: JsonObject, *turns: JsonObject) -> list[str]:
    session = await wire.create(
        scripted(*(turns or EDITS), DONE), workingDirectory=str(project), tools=[definition]
    )
    return [text.partition("\n")[2] for text in results_of(await wire.prompt(session))]


@pytest.mark.parametrize(("definition", "say"), [(VSCODE, as_lines), (PLAIN, as_json), (PLAIN, as_lines)])
async def test_what_a_change_brings_is_told_by_the_client_and_no_server_of_ours_runs(
    definition: JsonObject, say: Say, tmp_path: Path
) -> None:
    project = project_with(tmp_path, FILES)
    async with running_server(tmp_path, config=word_config(project)) as server:
        async with client_with(server.wire, project, say) as asked:
            texts = await told(server.wire, project, definition)
        assert texts == [f"{BROKEN[0]}\n  5. use tow", BROKEN[1]]
        assert language_servers(server) == []
    if definition is VSCODE:
        assert asked == [{"wait_for": [str(project / "a.words")]}] * 4


async def test_a_tool_that_needs_a_file_is_asked_about_the_changed_one(tmp_path: Path) -> None:
    project = project_with(tmp_path, FILES)

    def say(project: Path, arguments: JsonObject) -> str:
        return json.dumps([one for one in json.loads(as_json(project, {})) if one["uri"] == arguments["uri"]])

    async with (
        running_server(tmp_path, config=word_config(project)) as server,
        client_with(server.wire, project, say),
    ):
        (text,) = await told(server.wire, project, BY_FILE, EDITS[0])
    assert text == f"{BROKEN[0]}\n  5. use tow"


async def test_what_an_editor_sees_late_is_told_with_its_present_lines(tmp_path: Path) -> None:
    project = project_with(tmp_path, FILES)
    before = as_lines(project, {})
    answers = iter([before, before, before])

    def say(project: Path, arguments: JsonObject) -> str:
        return next(answers, None) or as_lines(project, arguments)

    async with (
        running_server(tmp_path, config=word_config(project)) as server,
        client_with(server.wire, project, say),
    ):
        (text,) = await told(server.wire, project, PLAIN, EDITS[0])
    assert text.startswith(NOTED + "a.words:5:5: unknown name tow (words)")


async def test_a_slow_client_costs_no_more_than_the_wait_and_its_diagnostics(tmp_path: Path) -> None:
    project = project_with(tmp_path, FILES)
    async with running_server(tmp_path, config=word_config(project, wait_s=0.25)) as server:
        async with client_with(server.wire, project, lambda _project, _arguments: None) as asked:
            assert await told(server.wire, project, PLAIN) == ["", ""]
        assert len(asked) == 2
        assert language_servers(server) == []


@pytest.mark.parametrize(
    ("definition", "answer"),
    [
        (PLAIN, {"textResultForLlm": "The file is not open.", "resultType": "failure"}),
        (PLAIN, "something else"),
        (PLAIN, "[{}]"),
        # The model would be asked about.
        ({**PLAIN, "skipPermission": False}, "No diagnostics."),
        (tool("upload_diagnostics", path={"type": "string"}), "No diagnostics."),
        (tool("network_diagnostics", host={"type": "string"}), "No diagnostics."),
    ],
)
async def test_our_servers_are_used_where_a_client_has_no_diagnostics(
    definition: JsonObject, answer: Any, tmp_path: Path
) -> None:
    project = project_with(tmp_path, FILES)
    config = word_config(project).replace("allow_unasked = true", 'allow = ["write(**)", "read(**)"]')
    async with (
        running_server(tmp_path, config=config) as server,
        client_with(server.wire, project, lambda _project, _arguments: answer),
    ):
        (text,) = await told(server.wire, project, definition, EDITS[0])
        assert text.startswith(NOTED + "a.words:5:5: unknown name tow (words unknown)")
