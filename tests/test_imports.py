"""Modules that an import must not load, each import in an interpreter of its own."""

from __future__ import annotations

import ast
import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

import jumpseat_protocol
from tests.support.fake_openai import MODEL, fake_openai, says
from tests.support.server import JsonObject, frame, scripted
from tests.tools.test_schema_check import FITTING, SCHEMA

PROTOCOL: Final = Path(jumpseat_protocol.__file__).parent
HEAVY: Final = {
    *("httpcore2", "httpx2", "pygls", "mcp", "lsprotocol", "yaml", "jsonschema", "tree_sitter", "tree_sitter_bash"),
    *("rich", "prompt_toolkit", "jumpseat_terminal", "jumpseat_mcp_server", "websockets", "nats"),
}


def loaded_by(code: str, *argv: str) -> set[str]:
    """Run a program in a new interpreter and return the names of the modules that it has loaded."""
    code = f"{code}\nimport sys; print(sorted(sys.modules))"
    process = subprocess.run(
        [sys.executable, "-c", code, *argv], capture_output=True, text=True, timeout=120, check=False
    )
    assert process.returncode == 0, process.stderr
    return set(ast.literal_eval(process.stdout))


def test_the_protocol_package_imports_alone() -> None:
    names = ", ".join(f"jumpseat_protocol.{path.stem}" for path in PROTOCOL.glob("*.py") if path.stem != "__init__")
    loaded = loaded_by(f"import sys; sys.path.insert(0, {str(PROTOCOL.parent)!r}); import {names}")
    assert not {name.partition(".")[0] for name in loaded} & {"jumpseat", "jumpseat_client", "anyio", *HEAVY}


def test_importing_the_package_loads_nothing_else() -> None:
    loaded = loaded_by("import jumpseat")
    assert {name for name in loaded if name.startswith("jumpseat")} == {"jumpseat"}
    assert not {name.partition(".")[0] for name in loaded} & {"pydantic", "anyio", "asyncio", *HEAVY}


def test_a_server_and_a_client_import_the_types_of_model_calls_without_sessions_late() -> None:
    for program in ("import jumpseat.app, jumpseat.rpc.routes", "import jumpseat_client"):
        loaded = loaded_by(program)
        late = (
            "jumpseat.library",
            "jumpseat.adapters.completion",
            "jumpseat_protocol.complete",
            "jumpseat_protocol.blocks",
        )
        assert not {name for name in loaded if name.startswith(late)}


def test_creating_sessions_and_sending_prompts_import_nothing_of_failures_logins_and_other_methods() -> None:
    loaded = loaded_by("import jumpseat.app; import jumpseat.handlers.session.session")
    late = ("accounts", "agents", "telemetry")
    assert not loaded & {f"jumpseat_protocol.{name}" for name in late}
    assert not loaded & {"jumpseat.adapters.models.explanations", "jumpseat.adapters.models.diagnosis"}


def test_a_server_imports_no_provider_no_schema_generator_and_nothing_of_the_language_server_protocol() -> None:
    loaded = loaded_by("import jumpseat.app, jumpseat.rpc.routes")
    assert "jumpseat_protocol.schema" not in loaded
    assert not {name.partition(".")[0] for name in loaded} & HEAVY
    # The other protocols are loaded with their first client, also by servers with a port for WebSockets.
    loaded |= loaded_by("import jumpseat.process, jumpseat.network.serving, jumpseat.network.web_socket")
    late = ("jumpseat.acp", "jumpseat.ahp", "jumpseat.acp.bridge", "jumpseat.network.http_door")
    assert not {name for name in loaded if name.startswith(late)}


def test_an_editor_of_version_1_loads_nothing_of_version_2() -> None:
    loaded = loaded_by("import jumpseat.acp.connection")
    late = ("acp.draft", "acp.draft_routes", "acp.methods.draft", "acp.facts", "acp.coverage", "mcp.over_client")
    assert not loaded & {f"jumpseat.{name}" for name in late}


def test_a_session_with_a_provider_loads_the_http_library_before_its_first_turn(tmp_path: Path) -> None:
    for kind, is_loaded in (("openai", True), ("scripted", False)):
        loaded = loaded_by(f"""
import anyio
from collections.abc import Mapping
from pathlib import Path
from jumpseat.adapters.models.resolver import Models
from jumpseat.agent.settings import SessionSettings
from jumpseat.options import Options
from jumpseat.config import Config
from jumpseat_protocol.sessions import ProviderConfig
async def main():
    async with anyio.create_task_group() as tasks:
        models = Models(Config(), Options(environ={{}}), Path({str(tmp_path)!r}), tasks=tasks)
        provider = ProviderConfig(type={kind!r}, base_url='http://h', script={{'turns': []}})
        for _ in range(2):
            models.check(SessionSettings.of(Path('/'), model='m', provider=provider))
anyio.run(main)
""")
        assert ("httpcore2" in loaded) == is_loaded


def test_a_model_behind_a_plain_adapter_needs_nothing_of_the_declared_ones(tmp_path: Path) -> None:
    loaded = loaded_by(f"""
import anyio
from collections.abc import Mapping
from pathlib import Path
from jumpseat.adapters.models.resolver import Models
from jumpseat.agent.settings import SessionSettings
from jumpseat.options import Options
from jumpseat.config import AdapterConfig, Config
adapters = {{'w': AdapterConfig(type='openai', base_url='http://h', models=['m'])}}
models = Models(Config(adapters=adapters), Options(environ={{}}), Path({str(tmp_path)!r}))
anyio.run(models.resolve, SessionSettings.of(Path('/'), model='w/m'))
anyio.run(models.catalogue.list)
""")
    # The folders of declarations are computed, and the names of credentials found, all the same.
    needed = {"jumpseat.declared", "jumpseat.declared.places", "jumpseat.declared.values"}
    assert {name for name in loaded if ".declared" in name} == needed


def test_arguments_that_match_a_schema_do_not_load_jsonschema() -> None:
    code = """
import json, sys
from jumpseat.tools.schema_check import argument_problems
schema, matching = json.loads(sys.argv[1])
assert all(argument_problems(arguments, schema) == [] for arguments in matching)
"""
    assert "jsonschema" not in loaded_by(code, json.dumps([SCHEMA, FITTING[:3]]))


# The modules outside of the standard library, by what a command has done. More of them take longer to load: raise a
# number only together with a measurement of the start.
COMMANDS: Final = {
    "--version": 25,
    "--help": 25,
    "schema": 108,
    "token list": 95,
    "adapters": 153,
    "sessions list": 157,
    "hooks": 188,
}
BUDGETS: Final = {"ping": 296, "session.create": 329, "session.send": 443}

NOT_BEFORE_A_PROMPT: Final = {
    *("attr", "cattrs", "email", "h11", "http", "importlib.metadata", "urllib.request"),
    *("jumpseat.agent.shell.syntax", "jumpseat.sandbox.mechanisms"),
}
NOT_FOR_A_PLAIN_MODEL: Final = {"certifi", "http", "httpx2", "urllib.request"}


def imported(log: str) -> list[str]:
    """Return the modules in the log of ``python -X importtime``."""
    lines = (line for line in log.splitlines() if line.startswith("import time:"))
    return [line.rpartition("|")[2].strip() for line in lines][1:]


def counted(modules: list[str]) -> int:
    """Return the number of modules that are not of the standard library."""
    return sum(name.partition(".")[0] not in sys.stdlib_module_names for name in modules)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_imports_no_more_than_its_budget(command: str, tmp_path: Path) -> None:
    argv = [sys.executable, "-X", "importtime", "-m", "jumpseat", *command.split()]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "COPILOT_HOME": str(tmp_path / "home")}
    process = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True, env=environ)
    assert counted(imported(process.stderr)) <= COMMANDS[command]


async def loaded_by_requests(folder: Path, requests: Mapping[str, JsonObject]) -> dict[str, list[str]]:
    """Return the modules that a server in ``folder`` has imported after each of some requests, by their methods."""
    argv = [sys.executable, "-X", "importtime", "-m", "jumpseat", "--headless", "--stdio"]
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "COPILOT_HOME": str(folder / "home")}
    log = folder / "imports"
    loaded: dict[str, list[str]] = {}
    with log.open("wb") as stderr:
        server = await asyncio.create_subprocess_exec(*argv, stdin=-1, stdout=-1, stderr=stderr, env=environ)
        assert server.stdin is not None
        assert server.stdout is not None
        for number, (method, params) in enumerate(requests.items()):
            server.stdin.write(frame({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
            while (message := await read_message(server.stdout)).get("id") != number:
                pass
            assert "error" not in message
            loaded[method] = imported(log.read_text())
        server.stdin.close()
        await server.wait()
    return loaded


@pytest.mark.anyio
async def test_a_server_imports_no_more_than_its_budget_until_the_end_of_its_first_turn(tmp_path: Path) -> None:
    async with fake_openai({"hi": [says("hello")]}) as model:
        provider = {"type": "openai", "baseUrl": model.base_url, "apiKey": "key"}
        requests: dict[str, JsonObject] = {
            "connect": {},
            "ping": {},
            "session.create": {"sessionId": "s", "provider": provider, "model": MODEL, "streaming": True},
            "session.send": {"sessionId": "s", "prompt": "hi", "wait": True},
        }
        loaded = await loaded_by_requests(tmp_path, requests)
    assert model.requests
    counts = {method: counted(modules) for method, modules in loaded.items()}
    assert {method: count for method, count in counts.items() if count > BUDGETS.get(method, count)} == {}
    assert NOT_BEFORE_A_PROMPT.intersection(loaded["session.create"]) == set()
    assert NOT_FOR_A_PLAIN_MODEL.intersection(loaded["session.send"]) == set()


@pytest.mark.anyio
@pytest.mark.parametrize("available", [["add"], ["add", "grep"]], ids=["own", "ours"])
async def test_a_session_loads_the_built_in_tools_only_if_it_may_have_one(
    available: list[str], tmp_path: Path
) -> None:
    provider = scripted({"text": "hello"})
    tools = [{"name": "add", "description": "Add.", "parameters": {"type": "object"}}]
    opened: JsonObject = {"sessionId": "s", "provider": provider, "tools": tools, "availableTools": available}
    requests: dict[str, JsonObject] = {
        "connect": {},
        "session.create": opened,
        "session.send": {"sessionId": "s", "prompt": "hi", "wait": True},
    }
    loaded = await loaded_by_requests(tmp_path, requests)
    # The modules of tools are found by name, which the log leaves out; what they import is in it.
    of_tools = "jumpseat.tools.search.engine"
    assert of_tools not in loaded["session.create"]
    assert (of_tools in loaded["session.send"]) == ("grep" in available)


@pytest.mark.anyio
@pytest.mark.parametrize("is_on", [False, True], ids=["off", "on"])
async def test_a_change_loads_no_parser_and_no_client_of_language_servers_if_they_are_off(
    is_on: bool, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    switches = f"[edits]\ncheck_syntax = {json.dumps(is_on)}\n[lsp]\nenabled = {json.dumps(is_on)}\n"
    server = f'[lsp.none]\ncommand = "{sys.executable}"\nargs = ["-c", "0"]\nextensions = {{".py" = "python"}}\n'
    trusted = f"trusted_folders = [{json.dumps(str(tmp_path))}]\n[permissions]\nallow_unasked = true\n"
    (tmp_path / "home" / "config.toml").write_text(trusted + switches + server)
    (tmp_path / "a.py").write_text("one = 1\n")
    provider = scripted()
    edit = {"path": "a.py", "old_str": "one", "new_str": "two"}
    requests: dict[str, JsonObject] = {
        "connect": {},
        "session.create": {"sessionId": "s", "provider": provider, "workingDirectory": str(tmp_path)},
        "session.tools.execute": {"sessionId": "s", "name": "edit", "arguments": edit},
    }
    loaded = (await loaded_by_requests(tmp_path, requests))["session.tools.execute"]
    assert (tmp_path / "a.py").read_text() == "two = 1\n"
    first = {"jumpseat.tools.syntax", "jumpseat.lsp.session"}
    # Threads import the rest, and a busy machine is not waited for.
    others = {"jumpseat.lsp.client", "jumpseat.lsp.server", "tree_sitter", "tree_sitter_python"}
    assert (first | others if not is_on else first).intersection(loaded) == (first if is_on else set())


async def read_message(stream: asyncio.StreamReader) -> JsonObject:
    size = int((await stream.readline()).partition(b":")[2])
    await stream.readline()
    return json.loads(await stream.readexactly(size))
