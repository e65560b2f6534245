"""The applications in ``clients/examples``: an extension for VS Code, a web service, a test, a review."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import anyio
import pytest

from tests.support.forked import INSTALLED
from tests.support.model_server import ModelServer, Reply, SeenRequest
from tests.support.ports import free_ports
from tests.support.provided import says, streamed_completion
from tests.support.toolchains import INSTALL_LIMIT_S, missing, tool_folder

EXAMPLES: Final = Path(__file__).parents[2] / "clients" / "examples"
PATH: Final = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "PATH": PATH, "COPILOT_HOME": str(tmp_path / "home"), **more}


def calls_then_streams(request: SeenRequest) -> Reply:
    """Call the only tool, then repeat its result."""
    last = request.json["messages"][-1]
    if last["role"] == "tool":
        return streamed_completion(f"Yours: {last['content']}")
    (offered,) = request.json["tools"]
    function = {"name": offered["function"]["name"], "arguments": "{}"}
    call = {"index": 0, "id": "c1", "type": "function", "function": function}
    chunk = {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    return Reply(
        [f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()], headers={"Content-Type": "text/event-stream"}
    )


async def ask(port: int, key: str) -> tuple[int, str]:
    """Send a prompt with a user's key; return the status and the streamed answer."""
    body = json.dumps({"prompt": "What have I ordered?"}).encode()
    head = f"POST /prompt HTTP/1.0\r\nAuthorization: Bearer {key}\r\nContent-Length: {len(body)}\r\n\r\n"
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(head.encode() + body)
        answer = b"".join([part async for part in stream])
    first, _, rest = answer.partition(b"\r\n\r\n")
    pieces = [json.loads(line[6:]) for line in rest.decode().splitlines() if line.startswith("data: ")]
    return int(first.split()[1]), "".join(pieces)


@pytest.mark.anyio
async def test_the_users_of_the_web_service_have_their_own_conversations_also_after_a_restart(
    tmp_path: Path,
) -> None:
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "uvicorn", "--port", str(port), "service:app"]

    async def served(keys: list[str]) -> list[tuple[int, str]]:
        env = environment(tmp_path, PROVIDER_URL=f"{provider.url}/v1", OPENAI_API_KEY="sk-x")
        process = await anyio.open_process(
            command, cwd=EXAMPLES / "web_service", env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            assert process.stderr is not None
            log = b""
            async for part in process.stderr:
                log += part
                if b"Uvicorn running" in log:
                    break
            return [await ask(port, key) for key in keys]
        finally:
            process.terminate()
            await process.wait()

    async with ModelServer(answer=calls_then_streams) as provider:
        ada, bob, stranger = await served(["key-of-ada", "key-of-bob", "nobody"])
        assert (ada[0], bob[0], stranger[0]) == (200, 200, 401)
        assert "1042" in ada[1]
        assert "Yours" in bob[1]
        assert "1042" not in bob[1]
        (again,) = await served(["key-of-ada"])
        assert "1042" in again[1]
        prompts: list[dict[str, Any]] = provider.requests[-1].json["messages"]
        assert sum(message["role"] == "user" for message in prompts) == 2


def test_the_test_of_the_extension_passes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", ".", "test_extension.py"],
        cwd=EXAMPLES / "testing",
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout


@pytest.mark.anyio
async def test_the_review_has_the_changes_of_the_branch_and_tools_for_reading_only(tmp_path: Path) -> None:
    def git(*args: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        subprocess.run(["git", *identity, *args], cwd=project, check=True, capture_output=True)

    project = tmp_path / "project"
    project.mkdir()
    git("init", "-b", "main")
    (project / "cart.py").write_text("total = 0\n")
    git("add", ".")
    git("commit", "-m", "begin")
    git("checkout", "-b", "change")
    (project / "cart.py").write_text("total = None\n")
    git("commit", "-am", "change")
    async with ModelServer(says("cart.py:1: the total is None")) as provider:
        env = environment(tmp_path, OPENAI_BASE_URL=f"{provider.url}/v1", OPENAI_API_KEY="sk-x", OPENAI_MODEL="m")
        done = await anyio.run_process(
            ["sh", str(EXAMPLES / "ci" / "review.sh"), "main"], cwd=project, env=env, check=False
        )
    assert done.returncode == 0, done.stderr.decode()
    assert (project / "review.md").read_text() == "cart.py:1: the total is None\n"
    assert "+total = None" in (project / "changes.diff").read_text()
    offered = {tool["function"]["name"] for tool in provider.requests[-1].json["tools"]}
    assert offered == {"view", "grep", "glob"}


def built_extension(folder: Path) -> Path:
    """Install what the extension for VS Code needs, check its types, and return the built file."""
    if shutil.which("npm") is None:
        pytest.skip("the extension for VS Code needs Node.js")
    shutil.copytree(
        EXAMPLES / "vscode_extension", folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("node_modules")
    )
    options = ("--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock")
    installed = subprocess.run(
        ["npm", "install", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=INSTALL_LIMIT_S,
        check=False,
    )
    if installed.returncode != 0:
        missing(f"what the extension for VS Code needs cannot be had: {installed.stderr[-800:]}")
    types = subprocess.run(["npx", "tsc"], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert types.returncode == 0, types.stdout
    return folder / "build" / "extension.js"


@pytest.mark.timeout(INSTALL_LIMIT_S + 240)
def test_the_extension_for_vs_code_answers_with_its_tool_and_asks_before_a_command(tmp_path: Path) -> None:
    script = {
        "prompts": [
            {
                "when": r"What is wrong here\?\n\nLines 2 to 2 of .*cart\.py:\n\ntotal = sum\(price\)",
                "turns": [
                    {"tool_calls": [{"name": "editor_problems", "arguments": {"path": "/x/cart.py"}}]},
                    {
                        "expect": {"tool_result": "2: error: undefined name in /x/cart.py"},
                        "tool_calls": [
                            {"name": "bash", "arguments": {"command": "echo ok", "description": "Test"}}
                        ],
                    },
                    {"text": "It says: {{last_tool_result}}"},
                ],
            }
        ]
    }
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "script.json").write_text(json.dumps(script))
    configuration = 'default_model = "demo/scripted"\n[adapters.demo]\ntype = "scripted"\nscript = "script.json"\n'
    (tmp_path / "home" / "config.toml").write_text(configuration)
    driver = Path(__file__).parent / "drivers" / "vscode_extension.cjs"
    with tool_folder("example-vscode-extension") as folder:
        done = subprocess.run(
            ["node", driver, built_extension(folder), tmp_path, tmp_path / "cart.py"],
            env=environment(tmp_path, JUMPSEAT=INSTALLED),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    answer = [
        "> What is wrong here?",
        "[editor_problems]",
        "[bash]",
        "asked: echo ok: Allow,Deny",
        "It says: ok",
        "<exited with exit code 0>",
    ]
    # Two questions, in one session.
    assert (done.returncode, done.stdout.splitlines()) == (0, 2 * answer), done.stderr
