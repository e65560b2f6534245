"""The examples in the pages work: each is run, loaded or looked up."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, cast

import anyio
import pytest
import yaml

from jumpseat.adapters.adapter import Endpoint
from jumpseat.adapters.providers import load_adapter
from jumpseat.adapters.recording.recordings import Ending, read_folder
from jumpseat.adapters.scripted import Script
from jumpseat.agent.blocks import AssistantMessage, TextBlock, UserMessage
from jumpseat.agent.model import Completed, ModelRequest
from jumpseat.agent.permissions.paths import PathScope
from jumpseat.agent.permissions.permissions import Permissions, Policy
from jumpseat.agent.settings import SessionSettings
from jumpseat.config import ToolsConfig, WebFetchConfig, load_config
from jumpseat.mcp.catalogue import check_servers
from jumpseat.services.web import ConfiguredWeb
from jumpseat.store.project.project_rules import read_rules
from jumpseat.store.project.skills import Place, find_skills
from jumpseat.store.session.database import SessionDatabase
from jumpseat.tools.builtin import BUILTIN_NAMES
from jumpseat.tools.shell.sandbox_needs import shell_permission
from jumpseat.tools.tool import BuiltinTool
from jumpseat_protocol.events import ToolExecutionComplete
from jumpseat_testkit.steps import STEPS
from jumpseat_testkit.steps import Script as PlayedScript
from tests.support.commands import run_command
from tests.support.model_server import ModelServer, event_stream, json_reply
from tests.support.pages import code_blocks, contains
from tests.support.server import RunningServer, frame, running_server
from tests.support.sessions import make_session

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]


@cache
def pages() -> tuple[Path, ...]:
    """Return the pages of the repository, without those of installed packages."""
    found: list[Path] = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "node_modules"]
        found += [Path(folder, name) for name in files if name.endswith(".md")]
    return tuple(sorted(found))


@pytest.mark.anyio
async def test_the_server_answers_as_the_exchange_in_the_readme_shows(tmp_path: Path) -> None:
    (exchange,) = code_blocks("README.md", "wire")
    async with running_server(tmp_path, handshake=False) as server:
        for line in exchange.splitlines():
            direction, message = line[:2], json.loads(line[3:])
            if direction == "->":
                await server.wire.send(frame({"jsonrpc": "2.0", **message}))
                continue

            def expected(actual: dict[str, Any], wanted: Any = message) -> bool:
                return contains(actual, wanted)

            await server.wire.until(expected, what=line)


def test_the_configurations_in_the_page_about_local_models_are_valid(tmp_path: Path) -> None:
    examples = code_blocks("docs/local-models.md", "toml")
    (tmp_path / "config.toml").write_text("\n".join(examples))
    config = load_config(tmp_path)
    assert {adapter.type for adapter in config.adapters.values()} == {"openai_compatible", "ollama"}
    assert {"llama", "ollama", "lmstudio", "vllm", "litellm"} <= config.adapters.keys()
    assert all(
        load_adapter(adapter.type or "").unknown_option(adapter.options) is None
        for adapter in config.adapters.values()
    )
    for options in re.findall(r"`options = (\{.*?\})`", (ROOT / "docs" / "local-models.md").read_text()):
        given = tomllib.loads(f"options = {options}")["options"]
        assert load_adapter("openai_compatible").unknown_option(given) is None


def test_the_configuration_of_built_in_tools_in_their_page_is_valid_and_has_every_key(tmp_path: Path) -> None:
    (example,) = code_blocks("docs/builtin-tools.md", "toml")
    (tmp_path / "config.toml").write_text(example)
    config = load_config(tmp_path)
    assert ConfiguredWeb(config, {}).can_search()
    shown = tomllib.loads(example)
    assert set(shown["tools"]) == set(ToolsConfig.model_fields)
    assert set(shown["tools"]["web_fetch"]) == set(WebFetchConfig.model_fields)
    values = {name: value for name, value in shown["tools"]["web_fetch"].items() if name != "allowed_hosts"}
    # The page shows the defaults.
    assert WebFetchConfig().model_dump(exclude={"allowed_hosts"}) == values


def test_the_skill_in_the_page_of_the_built_in_tools_is_valid(tmp_path: Path) -> None:
    (example,) = code_blocks("docs/builtin-tools.md", "markdown")
    (tmp_path / "SKILL.md").write_text(example)
    found = find_skills([Place(tmp_path, "custom")])
    (skill,) = found.items
    assert (found.warnings, found.errors) == ([], [])
    assert (skill.name, skill.allowed_tools, skill.argument_hint) == (
        "release-notes",
        ("view", "edit"),
        "[version]",
    )
    assert (skill.user_invocable, skill.for_models) == (True, True)


@pytest.mark.anyio
async def test_the_sql_statements_in_the_page_of_the_built_in_tools_run(tmp_path: Path) -> None:
    (example,) = code_blocks("docs/builtin-tools.md", "sql")
    database = SessionDatabase(tmp_path / "session.db")
    await database.run(example)
    found = await database.todos()
    assert [(row["id"], row["status"]) for row in found.todos] == [("parser", "in_progress"), ("tests", "pending")]
    assert found.dependencies == [{"todo_id": "tests", "depends_on": "parser"}]


def test_the_page_of_the_built_in_tools_names_every_tool() -> None:
    (first, *_) = (ROOT / "docs" / "builtin-tools.md").read_text().split("## ")
    named = {
        name for row in re.findall(r"^\| (`.*?) \|", first, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert named == BUILTIN_NAMES


def test_the_recording_in_the_recordings_page_can_be_read(tmp_path: Path) -> None:
    (example,) = code_blocks("docs/recordings.md", "jsonl")
    (tmp_path / "x.jsonl").write_text(example)
    (recording,) = read_folder(tmp_path)
    assert (recording.status, len(recording.pieces), recording.ending) == (200, 2, Ending("end"))


def test_the_script_in_the_adapters_page_is_valid() -> None:
    (example,) = code_blocks("docs/adapters.md", "yaml")
    script = Script.model_validate(yaml.safe_load(example))
    assert script.prompts is not None
    assert [entry.when for entry in script.prompts] == ["order", "."]


def test_the_wire_in_the_page_of_new_parts_writes_a_request_and_decodes_a_response() -> None:
    (example,) = (block for block in code_blocks("docs/new-parts.md", "python") if "class EchoAdapter" in block)
    names: dict[str, Any] = {}
    exec(compile(example, "docs/new-parts.md", "exec"), names)
    adapter = names["EchoAdapter"]()
    request = ModelRequest("m", "system", [UserMessage([TextBlock("hello")])])
    http_request = adapter.request(Endpoint("http://localhost:8080"), request)
    assert (http_request.url, http_request.body) == ("http://localhost:8080/echo", {"text": "hello"})
    assert adapter.decoder(request).whole({"text": "hi"}) == [
        Completed(AssistantMessage([TextBlock("hi")]), stop_reason="end_turn")
    ]


def write_declaration(folder: Path, name: str, text: str, kind: str = "adapters") -> None:
    """Write a file into the folder for ``kind`` in the server's home folder."""
    (folder / "home" / kind).mkdir(parents=True)
    (folder / "home" / kind / name).write_text(text)


async def answer_of(server: RunningServer, **send: Any) -> str:
    """Create a session, send a prompt and return the answer."""
    await server.wire.call("session.create", {"sessionId": "s", "streaming": True})
    result = await server.wire.call("session.sendAndWait", {"sessionId": "s", "prompt": "hi", **send})
    return result["response"]["data"]["content"]


@pytest.mark.anyio
async def test_the_adapter_in_toml_in_the_adapters_page_answers_a_session(tmp_path: Path) -> None:
    example, *_ = code_blocks("docs/adapters.md", "toml")
    assert len(example.splitlines()) <= 21
    chunk = {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]}
    reply = event_stream(f"data: {json.dumps(chunk)}\n\n".encode(), b"data: [DONE]\n\n")
    async with ModelServer(reply) as model:
        example = example.replace("https://llm.example.com", model.url).replace("pass show work/llm", "echo a-key")
        write_declaration(tmp_path, "work.toml", example)
        async with running_server(tmp_path, env={"WORK_TEAM": "blue"}) as server:
            assert await answer_of(server, adapterSettings={"temperature": 0.2}) == "Hello."
            models = (await server.wire.call("models.list", {}))["models"]

    (request,) = model.requests
    assert (request.headers["x-team"], request.headers["authorization"]) == ("blue", "Bearer a-key")
    assert (request.json["model"], request.json["temperature"]) == ("large", 0.2)
    assert [model["id"] for model in models] == ["work/large", "work/small"]


@pytest.mark.anyio
async def test_the_adapter_in_python_in_the_adapters_page_answers_a_session(tmp_path: Path) -> None:
    (example,) = (block for block in code_blocks("docs/adapters.md", "python") if "ADAPTER = " in block)
    async with ModelServer(json_reply({"answer": "42."})) as model:
        write_declaration(tmp_path, "answers.py", example.replace("https://answers.example.com", model.url))
        async with running_server(tmp_path) as server:
            assert await answer_of(server) == "42."

    (request,) = model.requests
    assert (request.path, request.json["team"]) == ("/ask", "blue")


async def run_call(server: RunningServer, tool: str, arguments: dict[str, Any], prompt: str) -> dict[str, Any]:
    """Run a scripted call of a tool and approve it.

    Returns the prompt as the model receives it, the permission request, and the result.
    """
    wire = server.wire
    script = {"turns": [{"tool_calls": [{"name": tool, "arguments": arguments}]}, {"text": "done"}]}
    provider = {"type": "scripted", "script": script}
    await wire.call("session.create", {"sessionId": "s", "requestPermission": True, "provider": provider})
    await wire.call("session.send", {"sessionId": "s", "prompt": prompt})
    message = await wire.event("user.message", session="s")
    request = (await wire.event("permission.requested", session="s"))["data"]
    answer = {"sessionId": "s", "requestId": request["requestId"], "result": {"kind": "approve-once"}}
    await wire.call("session.permissions.handlePendingPermissionRequest", answer)
    completion = await wire.event("tool.execution_complete", session="s")
    return {
        "prompt": message["data"]["transformedContent"],
        "request": request["permissionRequest"],
        "result": completion["data"]["result"],
    }


@pytest.mark.anyio
async def test_the_tool_in_toml_in_the_tools_page_counts_words(tmp_path: Path) -> None:
    example = code_blocks("docs/tools.md", "toml")[0]
    assert len(example.splitlines()) <= 10
    write_declaration(tmp_path, "count_words.toml", example, "tools")
    (tmp_path / "two.txt").write_text("two words\n")
    async with running_server(tmp_path) as server:
        run = await run_call(server, "count_words", {"path": "two.txt"}, "hi")

    # A slow command has its time behind the exit code.
    assert run["result"]["content"].startswith("2 two.txt\n<exited with exit code 0")
    assert run["request"]["fullCommandText"] == "wc -w -- two.txt"


@pytest.mark.anyio
async def test_a_prompt_can_mention_the_group_in_the_tools_page(tmp_path: Path) -> None:
    write_declaration(tmp_path, "release.toml", code_blocks("docs/tools.md", "toml")[1], "tools")
    for name in ("changelog", "tag"):
        tool = 'cmds = [["echo", "tagged"]]\non_mention = true\n'
        (tmp_path / "home" / "tools" / f"{name}.toml").write_text(tool)
    async with running_server(tmp_path) as server:
        run = await run_call(server, "tag", {}, "use @{release} and @{tag}")

    # A slow command has its time behind the exit code.
    assert run["result"]["content"].startswith("tagged\n<exited with exit code 0")
    assert "use the release tools (`changelog`, `tag`, `bash`) and the `tag` tool" in run["prompt"]


@pytest.mark.anyio
async def test_the_tool_in_python_in_the_tools_page_calculates(tmp_path: Path) -> None:
    (example,) = (block for block in code_blocks("docs/tools.md", "python") if "TOOL = {" in block)
    write_declaration(tmp_path, "calculator.py", example, "tools")
    arguments = {"num1": 100, "num2": 50, "operation": "multiply"}
    async with running_server(tmp_path) as server:
        run = await run_call(server, "calculator", arguments, "Use the @{calculator} tool for 100*50")

    assert run["result"] == {"content": "The result is 5000", "detailedContent": "= 5000"}
    assert run["request"]["toolDescription"] == "Perform the calculation `100 multiply 50`?"


@pytest.mark.anyio
async def test_the_model_can_call_the_built_in_tool_in_the_page_of_new_parts(tmp_path: Path) -> None:
    (example,) = (block for block in code_blocks("docs/new-parts.md", "python") if "BuiltinTool" in block)
    names: dict[str, Any] = {}
    exec(compile(example, "docs/new-parts.md", "exec", dont_inherit=True), names)
    tool = cast("BuiltinTool[Any]", names["TOOL"])
    assert tool.spec.parameters == {
        "type": "object",
        "properties": {
            "path": {
                "type": "string",
                "description": "File to count, absolute or relative to the working directory",
            }
        },
        "required": ["path"],
    }
    (tmp_path / "three.txt").write_text("a\nb\nc\n")
    script = [{"tool_calls": [{"name": "count_lines", "arguments": {"path": "three.txt"}}]}, {"text": "done"}]
    async with anyio.create_task_group() as tasks:
        made = make_session(
            tasks, script=script, settings=SessionSettings(cwd=tmp_path), builtin=(tool,), approve_all=True
        )
        await made.ask("How many lines?")
        (completion,) = made.client.payloads(ToolExecutionComplete)
        assert completion.result is not None
        assert completion.result.content == "3"
        await made.session.close()


def test_every_link_to_a_file_has_a_target() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages()
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text())
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert missing == []


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)", prose, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def test_every_link_to_a_heading_has_a_target() -> None:
    missing = [
        f"{page.relative_to(ROOT)}: {file}#{anchor}"
        for page in pages()
        for file, anchor in re.findall(r"\]\(([^)#\s:]*)#([^)\s]+)\)", page.read_text())
        if anchor not in anchors(page.parent / file if file else page)
    ]
    assert missing == []


GENERATED = frozenset({"ahp-coverage", "configuration", "coverage", "errors", "script-faults", "session-options"})
"""References, which nobody reads from the beginning to the end."""


def test_no_page_is_too_long_to_read() -> None:
    words = {page.stem: len(page.read_text().split()) for page in (ROOT / "docs").glob("*.md")}
    assert words.keys() >= GENERATED
    assert {name: count for name, count in words.items() if count > 2500 and name not in GENERATED} == {}


def test_every_file_that_a_page_names_exists() -> None:
    named = re.findall(
        r"`((?:server|protocol|clients|tests)/[\w./]+\.\w+)`", "".join(p.read_text() for p in pages())
    )
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_scripts_in_the_page_about_scripts_pass(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.script.yaml" for number, _ in enumerate(code_blocks("docs/script.md", "yaml"))]
    for file, example in zip(files, code_blocks("docs/script.md", "yaml"), strict=True):
        file.write_text(example)
    assert len(files) == 2
    assert run_command(["script", *map(str, files)]) == 0


def test_the_log_in_the_page_about_scripts_deviates_as_the_page_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (log,) = code_blocks("docs/script.md", "jsonl")
    (tmp_path / "vscode.jsonl").write_text(log)
    assert run_command(["script", str(tmp_path / "vscode.jsonl")]) == 1
    printed = capsys.readouterr().out.partition("\n")[2]
    assert printed in code_blocks("docs/script.md", "text")[-1]


def test_the_tests_in_the_page_about_scripts_pass(pytester: pytest.Pytester) -> None:
    conftest, test = code_blocks("docs/script.md", "python")
    backend = '@pytest.fixture\ndef anyio_backend():\n    return "asyncio"\n'
    pytester.makepyfile(conftest=f"import pytest\n{conftest}{backend}", test_mine=test)
    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_the_page_about_scripts_names_every_step_and_field() -> None:
    page = (ROOT / "docs/script.md").read_text()
    for name in [*STEPS, *(field for field in PlayedScript.model_fields if field != "steps")]:
        assert f"`{name}" in page, name


@pytest.mark.anyio
async def test_the_rules_in_the_permissions_page_decide_as_it_describes(tmp_path: Path) -> None:
    rules, trust, judge = code_blocks("docs/permissions.md", "toml")
    tomllib.loads(trust + rules + judge)
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text(trust + rules)
    policy_rules = read_rules(load_config(tmp_path / "home").permissions.model_dump())
    expected = {
        "git status --short": "allow",
        "npm run test && git status": "allow",
        "python3 tools/gen.py --all": "allow",
        "python3 tools/other.py": "ask",
        "git push": "ask",
        "git status > f": "ask",
        "$CMD x": "ask",
        **dict.fromkeys(
            ["ls && rm x", "/bin/rm x", "sudo rm x", "echo $(rm x)", "bash -c 'rm x'", "cat ~/.ssh/id"], "deny"
        ),
    }
    decisions: dict[str, str] = {}
    for line in expected:
        path_scope = PathScope(lambda: tmp_path / "project")
        policy = Policy(rules=lambda _cwd: (policy_rules, []))
        permissions = Permissions(lambda _event: None, lambda: False, lambda _request: False, path_scope, policy)
        verdict = await permissions.decide(shell_permission(line, line), "bash")
        by_rule = "denied by a rule" in verdict.message
        decisions[line] = "deny" if by_rule else "allow" if verdict.status == "allowed" else "ask"
    assert decisions == expected


@pytest.mark.anyio
async def test_the_server_in_the_mcp_page_greets(tmp_path: Path) -> None:
    (program,), (options,) = code_blocks("docs/mcp.md", "python"), code_blocks("docs/mcp.md", "json")
    (tmp_path / "hello_server.py").write_text(program)
    session: dict[str, Any] = json.loads(options)
    session["mcpServers"]["hello"]["command"] = sys.executable
    async with running_server(tmp_path) as server:
        wire = server.wire
        session_id = (await wire.call("session.create", session))["sessionId"]
        await wire.event("session.mcp_servers_loaded")
        await wire.call("session.send", {"sessionId": session_id, "prompt": "Greet Ada"})
        request = (await wire.event("permission.requested"))["data"]
        answer = {"sessionId": session_id, "requestId": request["requestId"], "result": {"kind": "approve-once"}}
        await wire.call("session.permissions.handlePendingPermissionRequest", answer)
        await wire.event("session.idle")
        answers = [event["data"]["content"] for event in wire.events() if event["type"] == "assistant.message"]
    assert request["permissionRequest"]["kind"] == "mcp"
    assert answers[-1] == "It says: Hello, Ada!"


def test_the_servers_in_the_mcp_page_are_valid(tmp_path: Path) -> None:
    servers: dict[str, Any] = {}
    for example in code_blocks("docs/mcp.md", "toml"):
        (tmp_path / "config.toml").write_text(example)
        found = check_servers(load_config(tmp_path).mcp.servers)
        assert found
        servers = {**found, **servers}
    assert (servers["files"].transport, servers["tickets"].transport) == ("stdio", "http")
    assert servers["tickets"].exclude_tools == ["delete_ticket"]
