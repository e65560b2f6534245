"""Credentials of the server do not reach child processes, unless the configuration names them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from jumpseat.adapters.providers import PROVIDERS
from jumpseat.declared.env import EnvResolver, Missing
from jumpseat.system.child_environment import ChildEnvironment
from tests.support.cases import all_cases
from tests.support.server import calls, running_server, scripted

pytestmark = pytest.mark.anyio

KEY = "sk-a-secret-of-some-length"

CREDENTIALS = [
    *(variable for info in PROVIDERS.values() for variable in info.key_variables),
    *("COPILOT_CONNECTION_TOKEN", "COPILOT_SDK_AUTH_TOKEN", "GITHUB_COPILOT_API_TOKEN"),
    *("COPILOT_PROVIDER_API_KEY", "COPILOT_PROVIDER_BEARER_TOKEN"),
    *("TAVILY_API_KEY", "JINA_API_KEY"),
    *("KEY_OF_A_TABLE", "KEY_OF_A_DECLARATION", "KEY_OF_A_FILE", "KEY_OF_A_SERVICE", "TOKEN_OF_THE_HOST"),
    *("JUMPSEAT_METRICS_TOKEN", "JUMPSEAT_MCP_TOKEN", "TOKEN_OF_THE_STORE", "PASSWORD_OF_THE_STORE"),
]
"""Every variable that the server may read for a key, with this configuration."""

CONFIG = """
sandbox.mode = "off"

[adapters.work]
type = "openai"
base_url = "http://127.0.0.1:9"
api_key_env = "KEY_OF_A_TABLE"

[adapters.other]
extends = "openai"
env = {api_key = {value = "KEY_OF_A_DECLARATION", optional = true}}

[adapters.keyless]
extends = "openai"
env = {base_url = "http://127.0.0.1:9"}

[services.tavily]
api_key = "KEY_OF_A_SERVICE"

[store]
token_env = "TOKEN_OF_THE_STORE"
password_env = "PASSWORD_OF_THE_STORE"
"""


def secrets() -> dict[str, str]:
    return {name: f"{KEY}-{number}" for number, name in enumerate(CREDENTIALS)}


async def output_of_bash(folder: Path, command: str, config: str = CONFIG, **more: str) -> str:
    (folder / "home" / "adapters").mkdir(parents=True)
    (folder / "home" / "adapters" / "third.toml").write_text(
        'extends = "openai"\nenv = {api_key = "KEY_OF_A_FILE"}'
    )
    script = scripted(calls("bash", command=command), {"text": "done"})
    args = ["--yolo", "--auth-token-env", "TOKEN_OF_THE_HOST"]
    async with running_server(folder, args=args, env=secrets() | more, config=config) as server:
        session = await server.wire.create(script)
        await server.wire.prompt(session)
        done = await server.wire.event("tool.execution_complete")
    return str(done["data"]["result"]["content"])


async def test_bash_gets_no_credential_that_the_server_may_read(tmp_path: Path) -> None:
    text = await output_of_bash(tmp_path, "env", KEPT="a value", SAME_KEY=f"{KEY}-0")
    assert "KEPT=a value" in text
    with all_cases() as case:
        for name in [*CREDENTIALS, "SAME_KEY"]:
            with case(name):
                assert f"{name}=" not in text
    assert KEY not in text


async def test_bash_gets_the_credentials_that_the_configuration_names(tmp_path: Path) -> None:
    config = CONFIG + '\n[environment]\npass = ["GH_TOKEN", "OPENAI_API_KEY"]\n'
    text = await output_of_bash(tmp_path, "env", config)
    passed = {name for name in CREDENTIALS if f"{name}=" in text}
    assert passed == {"GH_TOKEN", "OPENAI_API_KEY"}


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
async def test_a_command_cannot_read_the_credentials_in_the_first_environment_of_the_server(tmp_path: Path) -> None:
    # A variable of Python makes the test start the server by exec, as SDKs do.
    text = await output_of_bash(tmp_path, "cat /proc/$PPID/environ /proc/$PPID/cmdline", PYTHONUNBUFFERED="1")
    assert "--auth-token-env" in text
    assert KEY not in text


async def test_a_command_that_prints_a_key_gets_the_credentials_that_its_text_names() -> None:
    environment = ChildEnvironment({"PATH": os.environ["PATH"], "ONE_KEY": "first", "OTHER_KEY": "second"})
    environment.withhold(lambda: ("ONE_KEY", "OTHER_KEY"))
    resolver = EnvResolver({}, environment.variables_for)
    assert await resolver.run_command("echo $ONE_KEY; env | grep -c OTHER_; true") == "first\n0"
    assert await resolver.run_command("env | grep _KEY; true") == Missing("its command printed nothing")


def test_a_short_value_of_a_key_withholds_no_other_variable() -> None:
    environment = ChildEnvironment({"LLM_KEY": "test", "MODE": "test"})
    environment.withhold(lambda: ("LLM_KEY",))
    assert environment.variables() == {"MODE": "test"}
