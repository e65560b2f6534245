"""``jumpseat.setup.*`` over the real wire: a server without a model gets one, and keeps the key to itself."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.handlers.test_account import BACKEND
from tests.support.fake_openai import MODEL, FakeOpenAI, fake_openai, says
from tests.support.ports import closed_port
from tests.support.server import JsonObject, Wire, running_server

pytestmark = pytest.mark.anyio

KEY = "sk-entered-by-a-person-1"
NO_KEYRING = {"PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}


@pytest.fixture
async def provider() -> AsyncGenerator[FakeOpenAI]:
    async with fake_openai({"Say: ready": [says("ready")], "hello": [says("Hello!")]}) as fake:
        yield fake


async def states(wire: Wire) -> dict[str, JsonObject]:
    return {one["name"]: one for one in (await wire.call("jumpseat.setup.get"))["providers"]}


async def answer(wire: Wire) -> str:
    session = (await wire.call("session.create"))["sessionId"]
    events = await wire.prompt(session, "hello")
    return next(event["data"]["content"] for event in events if event["type"] == "assistant.message")


async def test_an_entered_key_gives_sessions_a_model_at_once_and_after_a_restart(
    tmp_path: Path, provider: FakeOpenAI
) -> None:
    env = {**NO_KEYRING, "OPENAI_BASE_URL": ""}
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.toml").write_text("# my settings\n")
    async with running_server(tmp_path, env=env, args=["--log-level", "debug"]) as server:
        wire = server.wire
        before = await wire.call("jumpseat.setup.get")
        assert (before["hasModel"], before["trialModel"]) == (False, "trial")
        await wire.call(
            "jumpseat.setup.addServer", {"name": "work", "baseUrl": provider.base_url, "needsKey": True}
        )
        assert (await states(wire))["work"]["ready"] is False
        stored = await wire.call("jumpseat.setup.putKey", {"provider": "work", "key": f" {KEY}\n"})
        assert stored == {"place": "file"}
        work = (await states(wire))["work"]
        assert (work["ready"], work["keyFrom"], work["keyVariable"]) == (True, "file", "WORK_API_KEY")
        listed = await wire.call("jumpseat.setup.models", {"provider": "work"})
        assert [model["id"] for model in listed["models"]] == [f"work/{MODEL}"]
        assert listed["suggested"] == f"work/{MODEL}"
        checked = await wire.call("jumpseat.setup.check", {"provider": "work"})
        assert (checked["works"], checked["model"]) == (True, f"work/{MODEL}")
        await wire.call("jumpseat.setup.setModel", {"model": f"work/{MODEL}"})
        assert await answer(wire) == "Hello!"
        assert provider.authorizations[-1] == f"Bearer {KEY}"
        file = server.home / "keys.json"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert KEY not in json.dumps(wire.messages)
        assert not [
            path for path in server.home.rglob("*") if path.is_file() and path != file and KEY in path.read_text()
        ]
    assert (server.home / "config.toml").read_text().startswith("# my settings\n")
    async with running_server(tmp_path, env=env) as server:
        assert await answer(server.wire) == "Hello!"
        removed = await server.wire.call("jumpseat.setup.removeKey", {"provider": "work"})
        again = await server.wire.call("jumpseat.setup.removeKey", {"provider": "work"})
        assert (removed, again) == ({"removed": True}, {"removed": False})
        assert KEY not in (server.home / "keys.json").read_text()
        failed = await server.wire.call("jumpseat.setup.check", {"provider": "work"})
        assert "WORK_API_KEY" in failed["explanation"]


async def test_a_key_goes_into_the_keyring_where_one_works(tmp_path: Path, provider: FakeOpenAI) -> None:
    pytest.importorskip("keyring")
    config = tmp_path / "python_keyring" / "keyringrc.cfg"
    config.parent.mkdir()
    config.write_text(f"[backend]\ndefault-keyring=file_keyring.FileKeyring\nkeyring-path={BACKEND}\n")
    ring = tmp_path / "ring.json"
    env = {"XDG_CONFIG_HOME": str(tmp_path), "FILE_KEYRING": str(ring), "OPENAI_BASE_URL": provider.base_url}
    async with running_server(tmp_path, env=env) as server:
        stored = await server.wire.call("jumpseat.setup.putKey", {"provider": "openai", "key": KEY})
        assert stored == {"place": "keyring"}
        assert KEY not in (server.home / "keys.json").read_text()
        assert KEY in ring.read_text()
    async with running_server(tmp_path, env=env) as server:
        assert await answer(server.wire) == "Hello!"
        assert provider.authorizations[-1] == f"Bearer {KEY}"
        await server.wire.call("jumpseat.setup.removeKey", {"provider": "openai"})
        assert KEY not in ring.read_text()


async def test_a_variable_takes_precedence_over_an_entered_key(tmp_path: Path, provider: FakeOpenAI) -> None:
    env = {**NO_KEYRING, "OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "sk-of-the-environment"}
    async with running_server(tmp_path, env=env) as server:
        stored = await server.wire.call("jumpseat.setup.putKey", {"provider": "openai", "key": KEY})
        assert stored == {"place": "file", "hiddenBy": "OPENAI_API_KEY"}
        assert await answer(server.wire) == "Hello!"
        assert provider.authorizations[-1] == "Bearer sk-of-the-environment"


async def test_wrong_requests_name_the_problem_and_never_the_key(tmp_path: Path) -> None:
    async with running_server(tmp_path, env=NO_KEYRING) as server:
        for method, params, problem in (
            ("putKey", {"provider": "opnai", "key": KEY}, "unknown provider 'opnai', did you mean 'openai'?"),
            ("putKey", {"provider": "zzz", "key": KEY}, "expected one of openai, anthropic, "),
            ("putKey", {"provider": "copilot", "key": KEY}, "account.login"),
            ("putKey", {"provider": "openai", "key": f'"{KEY}"'}, "no spaces, quotes"),
            ("putKey", {"provider": "openai", "key": f"{KEY} {KEY}"}, "no spaces, quotes"),
            ("addServer", {"name": "openai", "baseUrl": "http://127.0.0.1:1"}, "invalid name 'openai'"),
            ("addServer", {"name": "A b", "baseUrl": "http://127.0.0.1:1"}, "invalid name 'A b'"),
            ("addServer", {"name": "work", "baseUrl": "127.0.0.1:1/v1"}, "did you mean 'http://127.0.0.1:1/v1'"),
            ("addServer", {"name": "work", "baseUrl": "http://127.0.0.1:1", "type": "opnai"}, "unknown type"),
        ):
            error = await server.wire.error_of(f"jumpseat.setup.{method}", params)
            assert problem in error["message"]
        assert KEY not in json.dumps([message for message in server.wire.messages if "error" in message])
        assert not (server.home / "keys.json").exists()
        assert not (server.home / "config.toml").exists()


async def test_a_server_on_this_machine_is_found_tried_and_kept(tmp_path: Path, provider: FakeOpenAI) -> None:
    with closed_port() as port:
        dead = f"http://127.0.0.1:{port}/v1"
        env = {"LMSTUDIO_BASE_URL": provider.base_url, "VLLM_BASE_URL": dead}
        async with running_server(tmp_path, env=env) as server:
            found = await states(server.wire)
            assert (found["lmstudio"]["ready"], found["lmstudio"]["models"]) == (True, 1)
            assert (found["vllm"]["ready"], found["vllm"]["detail"]) == (False, f"nothing answers at {dead}")
            refused = await server.wire.call("jumpseat.setup.check", {"provider": "vllm", "model": "m"})
            assert "Nothing listens at that address" in refused["explanation"]
            problem = (await server.wire.call("jumpseat.setup.models", {"provider": "vllm"}))["problem"]
            assert "Nothing listens at that address" in problem
            await server.wire.call("jumpseat.setup.setModel", {"model": f"lmstudio/{MODEL}"})
            assert await answer(server.wire) == "Hello!"


async def test_the_trial_needs_no_provider(tmp_path: Path) -> None:
    async with running_server(tmp_path) as server:
        session = await server.wire.call("session.create", {"model": "trial"})
        events = await server.wire.prompt(session["sessionId"], "what can you do?")
        texts = [event["data"]["content"] for event in events if event["type"] == "assistant.message"]
        assert "I am a script, not a model" in texts[0]
