"""The command line as a process: the output of ``adapters``, ``models`` and ``check`` for people and programs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import anyio
import anyio.to_thread
import pytest

from jumpseat.adapters.models.diagnosis import Facts, diagnose
from jumpseat.errors import ProviderTransportError
from tests.support.fake_copilot import ALICE, fake_copilot
from tests.support.forked import executable
from tests.support.model_server import ModelServer, Reply, json_reply, text_reply
from tests.support.provided import says

KEY: Final = "sk-key-of-the-owner-1234"
CONFIG: Final = """\
[adapters.work]
type = "openai"
base_url = "http://user:pass-word@127.0.0.1:1/v1?key=in-the-query"
api_key_env = "WORK_KEY"
models = ["gpt-5", {id = "gpt-5-mini", name = "Mini", vision = true, context_window = 400000}]

[adapters.bare]
type = "openai_compatible"
base_url = "http://127.0.0.1:1/v1"
"""


def jumpseat(
    home: Path, *argv: str, config: str = "", cwd: str | Path | None = None, **environ: str
) -> tuple[int, str, str]:
    """Run a command; returns its exit code, stdout and stderr."""
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(config)
    process = subprocess.run(
        [executable(), *argv],
        check=False,
        capture_output=True,
        cwd=cwd,
        text=True,
        timeout=120,
        stdin=subprocess.DEVNULL,
        env={"PATH": os.defpath, "HOME": str(home), "COPILOT_HOME": str(home), **environ},
    )
    assert "Traceback" not in process.stderr
    for secret in (KEY, "pass-word", "in-the-query"):
        assert secret not in process.stdout + process.stderr
    return process.returncode, process.stdout, process.stderr


def test_an_unknown_flag_ends_the_process_with_one_line_on_stderr(tmp_path: Path) -> None:
    code, out, err = jumpseat(tmp_path, "--headless", "--nonexistent-flag", "--stdio")
    assert (code, out, err) == (2, "", "error: unknown option '--nonexistent-flag'\n")


# --- adapters ---------------------------------------------------------------------------------------------------


def test_adapters_are_listed_with_their_source_and_key_state(tmp_path: Path) -> None:
    code, out, _ = jumpseat(tmp_path, "adapters", config=CONFIG, WORK_KEY=KEY, DEEPSEEK_API_KEY=KEY)
    rows = {line.split()[0]: line for line in out.splitlines()[1:] if line}
    assert code == 0
    assert "config.toml" in rows["work"]
    assert "WORK_KEY: set" in rows["work"]
    assert "http://127.0.0.1:1/v1" in rows["work"]
    assert "DEEPSEEK_API_KEY: set" in rows["deepseek"]
    assert "environment" in rows["deepseek"]
    assert "built in" in rows["mistral"]
    assert "MISTRAL_API_KEY: not set" in rows["mistral"]


def test_adapters_are_listed_for_programs_as_json(tmp_path: Path) -> None:
    code, out, _ = jumpseat(tmp_path, "adapters", "--json", config=CONFIG)
    found: dict[str, Any] = {adapter["name"]: adapter for adapter in json.loads(out)}
    assert code == 0
    assert found["work"] == {
        "name": "work",
        "origin": "config.toml",
        "type": "openai",
        "address": "http://127.0.0.1:1/v1",
        "keyEnv": "WORK_KEY",
        "hasKey": False,
        "usable": False,
        "models": 2,
    }
    assert (found["bare"]["usable"], found["bare"]["hasKey"]) == (True, None)
    assert (found["openai"]["usable"], found["openai"]["origin"]) == (False, "built in")


# --- models -----------------------------------------------------------------------------------------------------


def test_models_are_listed_with_known_facts(tmp_path: Path) -> None:
    code, out, err = jumpseat(tmp_path, "models", config=CONFIG)
    assert "work/gpt-5 " in out
    assert "work/gpt-5-mini  Mini  400000" in out
    assert code == 5
    assert err.startswith("error: no list of models from bare: Nothing listens at that address: ")
    assert err.count("\n") == 1
    code, out, _ = jumpseat(tmp_path, "models", "work", "--json", config=CONFIG)
    big, mini = json.loads(out)
    assert mini == {
        "id": "work/gpt-5-mini",
        "name": "Mini",
        "vendor": "openai",
        "vision": True,
        "tools": True,
        "contextWindow": 400_000,
        "maxPromptTokens": 272_000,
        "maxOutputTokens": 128_000,
        "reasoning": True,
        "reasoningEfforts": ["minimal", "low", "medium", "high"],
        "usdPerMillionTokens": {"input": 0.25, "output": 2, "cacheRead": 0.025},
        "enabled": True,
    }
    assert big["id"] == "work/gpt-5"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        (json_reply({"error": {"message": "bad key"}}, status=401), 4, "Check that OPENAI_API_KEY contains"),
        (Reply(silent=True, ending="hang"), 5, "no list of models within 3 s"),
        (text_reply("no lists here", status=404), 0, ""),
    ],
    ids=["wrong key", "no answer", "no list"],
)
async def test_a_provider_that_cannot_list_its_models_is_named_with_what_to_check(
    tmp_path: Path, reply: Reply, code: int, said: str
) -> None:
    async with ModelServer(reply, lists=True) as provider:
        base = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": KEY}
        found, out, err = await anyio.to_thread.run_sync(lambda: jumpseat(tmp_path, "models", **base))
    assert found == code
    assert said in err
    assert err.startswith("error: no list of models from openai: ") if code else "no models of openai" in out


@pytest.mark.parametrize(
    ("name", "said"), [("deepseek", "set DEEPSEEK_API_KEY"), ("nobody", "unknown adapter 'nobody'")]
)
def test_listing_the_models_of_an_unknown_adapter_is_an_error(tmp_path: Path, name: str, said: str) -> None:
    code, out, err = jumpseat(tmp_path, "models", name)
    assert (code, out) == (3, "")
    assert said in err


# --- check ------------------------------------------------------------------------------------------------------


async def check(home: Path, *replies: Reply, path: str = "/v1", **environ: str) -> tuple[int, str]:
    """Check an adapter whose provider gives these responses; returns the output."""
    async with ModelServer(*replies, lists=True) as provider:
        base = {"OPENAI_BASE_URL": f"{provider.url}{path}", "OPENAI_API_KEY": KEY, **environ}

        def command() -> tuple[int, str, str]:
            return jumpseat(home, "check", "openai", "gpt-5", **base)

        code, out, err = await anyio.to_thread.run_sync(command)
    assert err == ""
    return code, out


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("reply", "code", "expected"),
    [
        (says("Ready"), 0, "openai/gpt-5 works: asked for one word, the model answered 'Ready'"),
        (json_reply({"error": {"message": f"bad key {KEY}"}}, status=401), 4, "rejected the key"),
        (text_reply("<html><title>Not here</title>", status=404), 5, "many end in /v1"),
        (text_reply("", status=302, headers={"Location": "https://elsewhere.invalid"}), 5, "the API is not there"),
        (json_reply({"error": {"code": "model_not_found", "message": "no model gpt-5"}}, status=404), 6, "'gpt-5'"),
        (json_reply({"error": {"message": "temperature: not allowed"}}, status=400), 6, "rejected the request"),
        (json_reply({"error": {"code": "insufficient_quota", "message": "empty"}}, status=429), 7, "no quota left"),
        (text_reply("slow down", status=429, headers={"Retry-After": "7"}), 7, "to wait 7 seconds"),
        (text_reply("oops", status=503), 8, "but the provider failed"),
        (text_reply("<html>Welcome</html>"), 8, "may be that of a web page"),
    ],
    ids=["works", "key", "path", "elsewhere", "model", "request", "quota", "rate", "trouble", "web page"],
)
async def test_a_check_explains_the_problem_in_a_paragraph(
    tmp_path: Path, reply: Reply, code: int, expected: str
) -> None:
    found, out = await check(tmp_path, reply)
    assert expected in out
    assert (found, out.count("\n")) == (code, 1)


@pytest.mark.anyio
async def test_a_check_without_a_key_reports_that_none_was_sent(tmp_path: Path) -> None:
    refusal = json_reply({"error": {"message": "who are you"}}, status=401)
    code, out = await check(tmp_path, refusal, OPENAI_API_KEY="")
    assert code == 4
    assert "No key was sent" in out


@pytest.mark.anyio
async def test_a_check_detects_a_key_with_quotes(tmp_path: Path) -> None:
    refusal = json_reply({"error": {"message": "who are you"}}, status=401)
    _, out = await check(tmp_path, refusal, OPENAI_API_KEY='"abcdefgh"')
    assert "OPENAI_API_KEY contains quotes or spaces" in out


@pytest.mark.anyio
async def test_the_models_of_an_account_are_listed_and_checked_without_a_table(tmp_path: Path) -> None:
    async with fake_copilot() as copilot:
        environ = {"COPILOT_GITHUB_TOKEN": ALICE, **copilot.environ}

        def commands() -> list[tuple[int, str, str]]:
            return [
                jumpseat(tmp_path, *argv, config=CONFIG, **environ)
                for argv in (
                    ["models", "copilot", "--json"],
                    ["check", "copilot"],
                    ["check", "copilot", "by-messages"],
                )
            ]

        listed, first, named = await anyio.to_thread.run_sync(commands)
    assert {"by-chat", "by-responses", "by-messages"} <= {model["id"] for model in json.loads(listed[1])}
    assert not any(model["id"].startswith("work/") for model in json.loads(listed[1]))
    assert (first[0], named[0]) == (0, 0)
    assert "copilot/by-chat works" in first[1]
    assert "copilot/by-messages works" in named[1]


def test_a_check_reports_a_port_without_a_listener(tmp_path: Path) -> None:
    code, out, _ = jumpseat(tmp_path, "check", "bare", "m", config=CONFIG)
    assert code == 5
    assert "Nothing listens at that address" in out


def test_a_check_names_an_unset_key_variable(tmp_path: Path) -> None:
    code, out, _ = jumpseat(tmp_path, "check", "work", config=CONFIG)
    assert code == 3
    assert "'WORK_KEY' is not set" in out


def test_a_check_without_a_model_fails_at_once_if_none_can_be_listed(tmp_path: Path) -> None:
    code, out, _ = jumpseat(tmp_path, "check", "bare", config=CONFIG)
    assert code == 5
    assert "Nothing listens at that address" in out


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("replies", "code", "expected"),
    [
        ([json_reply({"data": [{"id": "odd-one"}, {"id": "gpt-5"}]}), says("Ready")], 0, "openai/gpt-5 works"),
        ([json_reply({"data": [{"id": "odd-one"}]}), says("Ready")], 0, "openai/odd-one works"),
        ([json_reply({"data": []})], 3, "name one, as in jumpseat check openai MODEL"),
        (
            [text_reply("no lists here", status=404)],
            3,
            "as in jumpseat check openai MODEL, because its provider does not list",
        ),
        ([json_reply({"error": {"message": "bad key"}}, status=401)], 4, "rejected the key"),
    ],
    ids=["known", "unknown", "empty", "none", "key"],
)
async def test_a_check_without_a_model_uses_the_list_of_the_provider(
    tmp_path: Path, replies: list[Reply], code: int, expected: str
) -> None:
    async with ModelServer(*replies, lists=True) as provider:
        base = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": KEY}
        found, out, _ = await anyio.to_thread.run_sync(lambda: jumpseat(tmp_path, "check", "openai", **base))
    assert expected in out
    assert found == code


@pytest.mark.anyio
async def test_a_check_is_reported_to_programs_as_json(tmp_path: Path) -> None:
    refusal = json_reply({"error": {"message": "bad key"}}, status=401)
    async with ModelServer(says("Ready"), refusal) as provider:
        base = {"OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": KEY}

        def commands() -> list[tuple[int, str, str]]:
            return [jumpseat(tmp_path, "check", "openai", "gpt-5", "--json", **base) for _ in range(2)]

        works, fails = await anyio.to_thread.run_sync(commands)
    expected = {"adapter": "openai", "model": "gpt-5", "address": f"{provider.url}/v1"}
    assert json.loads(works[1]) == {
        **expected,
        "works": True,
        "answer": "Ready",
        "explanation": "Asked for one word, the model answered 'Ready'.",
        "exitCode": 0,
    }
    failure = json.loads(fails[1])
    assert failure.pop("explanation").startswith(f"{provider.url}/v1 was reached and rejected the key")
    assert failure == {**expected, "works": False, "exitCode": 4}
    assert (works[0], fails[0]) == (0, 4)


@pytest.mark.anyio
async def test_a_check_times_out(tmp_path: Path) -> None:
    async with ModelServer(Reply(silent=True, ending="hang"), lists=True) as provider:
        base = {"OPENAI_BASE_URL": provider.url, "OPENAI_API_KEY": KEY}
        code, out, _ = await anyio.to_thread.run_sync(
            lambda: jumpseat(tmp_path, "check", "openai", "m", "--timeout", "0.3", **base)
        )
    assert code == 5
    assert "within 0.3 seconds" in out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cannot verify the certificate of https://x: self-signed", "NODE_EXTRA_CA_CERTS"),
        ("the proxy refused the connection to https://x: 407", "The proxy set by HTTPS_PROXY"),
        ("cannot connect to https://x: [Errno -2] Name or service not known", "The host was not found"),
        ("cannot connect to https://x within 15 s", "go through the proxy set by HTTPS_PROXY"),
    ],
)
def test_the_obstacle_to_reaching_a_provider_is_named(text: str, expected: str) -> None:
    found = diagnose(ProviderTransportError(text), Facts("a", "m", "https://x", proxy_envs=("HTTPS_PROXY",)))
    assert found.exit_code == 5
    assert expected in found.text


@pytest.mark.parametrize(
    "argv", [["check"], ["check", "a", "b", "c"], ["models", "--yolo"], ["check", "a", "--timeout", "x"]]
)
def test_wrong_arguments_of_a_command_are_one_line_on_stderr(tmp_path: Path, argv: list[str]) -> None:
    code, out, err = jumpseat(tmp_path, *argv)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: ")


def test_a_declared_adapter_is_listed_with_its_variable_and_never_with_its_key(tmp_path: Path) -> None:
    adapters = tmp_path / "adapters"
    adapters.mkdir()
    (adapters / "mine.toml").write_text(
        'extends = "openai"\n[env]\nbase_url = "http://127.0.0.1:9/v1"\napi_key = "MY_OWN_KEY"\n'
        '[schema.model]\nchoices = ["a", "b"]\n'
    )
    (adapters / "plain.toml").write_text('extends = "openai"\n[env]\napi_key = "verysecretkey"\n')
    _, out, _ = jumpseat(tmp_path, "adapters", "--json")
    adapters_by_name = {adapter["name"]: adapter for adapter in json.loads(out)}

    assert (
        adapters_by_name["mine"]["keyEnv"],
        adapters_by_name["mine"]["hasKey"],
        adapters_by_name["mine"]["models"],
    ) == ("MY_OWN_KEY", False, 2)
    assert (adapters_by_name["mine"]["origin"], adapters_by_name["mine"]["address"]) == (
        "home",
        "http://127.0.0.1:9/v1",
    )
    assert "verysecretkey" not in out


def test_declared_tools_are_listed_with_the_problems_of_invalid_ones(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "greet.toml").write_text('description = "Greet"\ncmds = [["echo", "hi"]]\n')
    (tools / "broken.toml").write_text("cmdz = []\n")
    code, out, _ = jumpseat(tmp_path, "tools", "--json")
    assert code == 3
    assert [(tool["name"], tool.get("approval"), "problem" in tool) for tool in json.loads(out)] == [
        ("broken", None, True),
        ("greet", "always", False),
    ]


def test_tools_of_a_project_that_is_not_trusted_are_named(tmp_path: Path) -> None:
    tools = tmp_path / "project" / ".jumpseat" / "tools"
    tools.mkdir(parents=True)
    (tools / "greet.toml").write_text('cmds = [["echo", "hi"]]\n')
    _, out, _ = jumpseat(tmp_path / "home", "tools", cwd=tmp_path / "project")
    assert f"Not used, because the folder is not trusted: greet in {tools}." in out
    config = f"trusted_folders = [{str(tmp_path / 'project')!r}]"
    _, out, _ = jumpseat(tmp_path / "home", "tools", cwd=tmp_path / "project", config=config)
    assert "greet  tool  project" in out
    assert "Not used" not in out


def test_hooks_are_listed_with_what_they_run_and_whether_they_do(tmp_path: Path) -> None:
    project = tmp_path / "project"
    for folder, hooks in (
        (tmp_path / "home" / "hooks", {"sessionEnd": [{"exec": "notify-send", "args": ["done"]}]}),
        (project / ".github" / "hooks", {"preToolUse": [{"bash": "./guard.sh", "matcher": "bash|edit"}]}),
    ):
        folder.mkdir(parents=True)
        (folder / "all.json").write_text(json.dumps({"version": 1, "hooks": hooks}))
    code, out, _ = jumpseat(tmp_path / "home", "hooks", cwd=project)
    assert code == 0
    assert [line.split() for line in out.splitlines()[1:3]] == [
        ["sessionEnd", "user", "yes", "-", "notify-send", "done"],
        ["preToolUse", "project", "no", "bash|edit", "./guard.sh"],
    ]
    assert "do not run, because the folder is not trusted" in out
    (project / ".github" / "hooks" / "bad.json").write_text("[]")
    config = f"trusted_folders = [{str(project)!r}]"
    code, out, _ = jumpseat(tmp_path / "home", "hooks", "--json", cwd=project, config=config)
    listed = json.loads(out)
    assert (code, [hook["runs"] for hook in listed["hooks"]]) == (3, [True, True])
    assert "expected an object" in listed["problems"][0]


def test_a_command_whose_reader_is_gone_ends_without_a_traceback(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    environ = {"PATH": os.defpath, "HOME": str(tmp_path), "COPILOT_HOME": str(tmp_path)}
    process = subprocess.run(
        [executable(), "adapters"], check=False, stdout=writer, stderr=subprocess.PIPE, timeout=120, env=environ
    )
    os.close(writer)
    assert (process.returncode, process.stderr) == (0, b"")


BUGGY: Final = """\
def parse_chat(self, data):
    return {{"status": "success", "output": data["answer"]}}

ADAPTER = {{
    "url": "{url}/v1/chat/completions",
    "env": {{"api_key": "WORK_KEY"}},
    "headers": {{"Authorization": "Bearer ${{api_key}}"}},
    "schema": {{"model": {{"default": "m"}}}},
    "handlers": {{"response": {{"parse_chat": parse_chat}}}},
}}
"""


@pytest.mark.anyio
async def test_a_check_finds_a_bug_in_a_handler_before_any_request(tmp_path: Path) -> None:
    async with ModelServer() as model:
        (tmp_path / "adapters").mkdir()
        (tmp_path / "adapters" / "work.py").write_text(BUGGY.format(url=model.url))
        code, out, _ = await anyio.to_thread.run_sync(lambda: jumpseat(tmp_path, "check", "work"))
        _, told, _ = await anyio.to_thread.run_sync(lambda: jumpseat(tmp_path, "check", "work", "--json"))

    assert (code, model.requests) == (9, [])
    assert out == (
        "work/m does not work. Its functions were tried on an invented conversation, and nothing was sent:\n"
        "- its handler parse_chat failed (TypeError at work.py:2): string indices must be integers, not 'str', on a"
        " stream of chat completions that says 'Ready.'\n"
    )
    (problem,) = json.loads(told)["problems"]
    assert (problem["function"], problem["source"]) == ("parse_chat", "work.py:2")


def test_an_invalid_adapter_is_listed_with_its_problem_and_hides_no_other(tmp_path: Path) -> None:
    (tmp_path / "adapters").mkdir()
    (tmp_path / "adapters" / "bad.toml").write_text("headres = 1\n")
    code, out, _ = jumpseat(tmp_path, "adapters", config=CONFIG)
    assert code == 3
    assert f"bad cannot be used: {tmp_path}/adapters/bad.toml:1: headres: unknown, did you mean 'headers'?" in out
    assert "\nwork " in out
    code, out, _ = jumpseat(tmp_path, "check", "bare", "m", config=CONFIG)
    assert (code, "headres" in out) == (5, False)


def test_a_command_ends_although_a_function_of_a_declaration_never_does(tmp_path: Path) -> None:
    (tmp_path / "adapters").mkdir(parents=True)
    (tmp_path / "adapters" / "slow.py").write_text(
        "import threading\n\n\n"
        "def setup(self):\n"
        "    threading.Event().wait()\n\n\n"
        "ADAPTER = {'extends': 'openai_compatible', 'env': {'base_url': 'http://127.0.0.1:1', 'api_key': 'k'},"
        " 'schema': {'model': {'default': 'm'}}, 'opts': {'timeouts': {'handler': 0.25}},"
        " 'handlers': {'setup': setup}}\n"
    )
    _, out, _ = jumpseat(tmp_path, "check", "slow")
    assert "its handler setup gave no result within 0.25 s at slow.py:4" in out
