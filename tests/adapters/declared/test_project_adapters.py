"""Adapters of a project, in ``.jumpseat/adapters``: used only if the user trusts the folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

from tests.support.model_server import ModelServer
from tests.support.provided import answer_of_new_session, error_of_new_session, streamed_completion
from tests.support.server import JsonObject, RunningServer, running_server

pytestmark = pytest.mark.anyio

KEY: Final = "key-of-a-test-0123456789"


def project(tmp_path: Path, url: str, name: str = "ours.toml", *, team: str = "blue") -> Path:
    """Return a project with an adapter, and a nested folder in it."""
    folder = tmp_path / "project"
    adapters = folder / ".jumpseat" / "adapters"
    adapters.mkdir(parents=True, exist_ok=True)
    (adapters / name).write_text(
        f'extends = "openai_compatible"\nenv = {{base_url = "{url}/v1"}}\nheaders = {{X-Team = "{team}"}}\n'
        'schema = {model = {default = "m", choices = ["m"]}, top_k = {type = "integer", mapping = "parameters"}}\n'
    )
    deep = folder / "src" / "deep"
    deep.mkdir(parents=True, exist_ok=True)
    return deep


def trusting(folder: Path) -> str:
    return f'trusted_folders = ["{folder}"]\n[retry]\nattempts = 1\n'


async def list_adapters(server: RunningServer, cwd: Path | None) -> dict[str, JsonObject]:
    params = {} if cwd is None else {"cwd": str(cwd)}
    adapters = (await server.wire.call("jumpseat.adapters.list", params))["adapters"]
    return {adapter["name"]: adapter for adapter in adapters}


async def test_an_adapter_of_a_trusted_project_serves_only_sessions_in_the_project(tmp_path: Path) -> None:
    async with ModelServer(
        streamed_completion("Ours."), streamed_completion("As a provider."), streamed_completion("Set.")
    ) as model:
        deep = project(tmp_path, model.url)
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        async with running_server(tmp_path, config=trusting(tmp_path / "project")) as server:
            assert await answer_of_new_session(server, model="ours/m", workingDirectory=str(deep)) == "Ours."
            provider = {"type": "ours", "baseUrl": f"{model.url}/other"}
            options = {"workingDirectory": str(deep), "provider": provider, "model": "m"}
            assert await answer_of_new_session(server, **options) == "As a provider."
            options = {"workingDirectory": str(deep), "model": "ours/m", "adapterSettings": {"top_k": 3}}
            assert await answer_of_new_session(server, **options) == "Set."
            wrong = await server.wire.error_of("session.create", {**options, "adapterSettings": {"top_k": "x"}})
            assert "setting 'top_k': expected an integer" in wrong["message"]
            options = {"workingDirectory": str(elsewhere), "provider": provider, "model": "m"}
            error = await server.wire.error_of("session.create", options)
            assert "provider.type: unknown type 'ours'" in error["message"]
            assert await error_of_new_session(server, model="ours/m", workingDirectory=str(elsewhere))
            assert (await list_adapters(server, deep))["ours"]["origin"] == "project"
            assert "ours" not in await list_adapters(server, elsewhere)
            assert "ours" not in await list_adapters(server, None)
            shown = await server.wire.call("jumpseat.adapters.get", {"name": "ours", "cwd": str(deep)})
            assert shown["adapter"]["baseUrl"] == f"{model.url}/v1"

    assert [request.headers["x-team"] for request in model.requests] == ["blue"] * 3
    assert model.requests[1].path == "/other/chat/completions"
    assert model.requests[2].json["top_k"] == 3


async def test_an_untrusted_project_has_no_adapters_and_its_python_does_not_run(tmp_path: Path) -> None:
    deep = project(tmp_path, "http://127.0.0.1:1")
    ran = tmp_path / "ran"
    (tmp_path / "project" / ".jumpseat" / "adapters" / "evil.py").write_text(
        f"open({str(ran)!r}, 'w').close()\nADAPTER = {{'extends': 'openai'}}\n"
    )
    async with running_server(tmp_path, config="[retry]\nattempts = 1\n") as server:
        assert not {"ours", "evil"} & set(await list_adapters(server, deep))
        assert await error_of_new_session(server, model="evil/m", workingDirectory=str(deep))

    assert not ran.exists()


async def test_the_target_of_a_link_in_a_trusted_project_stays_untrusted(tmp_path: Path) -> None:
    deep = project(tmp_path, "http://127.0.0.1:1")
    outside = tmp_path / "outside.toml"
    outside.write_text('extends = "openai"\n')
    os.symlink(outside, tmp_path / "project" / ".jumpseat" / "adapters" / "linked.toml")
    async with running_server(tmp_path, config=trusting(tmp_path / "project")) as server:
        names = await list_adapters(server, deep)

    assert "ours" in names
    assert "linked" not in names


async def test_a_changed_file_is_read_again_and_an_invalid_one_is_named(tmp_path: Path) -> None:
    async with ModelServer(streamed_completion("One."), streamed_completion("Two.")) as model:
        deep = project(tmp_path, model.url)
        async with running_server(tmp_path, config=trusting(tmp_path / "project")) as server:
            assert await answer_of_new_session(server, model="ours/m", workingDirectory=str(deep)) == "One."
            project(tmp_path, model.url, team="crimson")
            assert await answer_of_new_session(server, model="ours/m", workingDirectory=str(deep)) == "Two."
            project(tmp_path, model.url, team='"')
            assert "ours.toml" in await error_of_new_session(server, model="ours/m", workingDirectory=str(deep))

    assert [request.headers["x-team"] for request in model.requests] == ["blue", "crimson"]


async def test_an_adapter_of_the_project_wins_over_that_of_the_user_in_the_project_only(tmp_path: Path) -> None:
    async with ModelServer(streamed_completion("Theirs."), streamed_completion("Mine.")) as model:
        deep = project(tmp_path, model.url, "mine.toml", team="theirs")
        user_config = f'[adapters.mine]\nextends = "openai_compatible"\nenv = {{base_url = "{model.url}"}}\n'
        user_config += 'headers = {X-Team = "mine"}\n'
        async with running_server(tmp_path, config=trusting(tmp_path / "project") + user_config) as server:
            assert await answer_of_new_session(server, model="mine/m", workingDirectory=str(deep)) == "Theirs."
            assert await answer_of_new_session(server, model="mine/m", workingDirectory=str(tmp_path)) == "Mine."

    assert [request.headers["x-team"] for request in model.requests] == ["theirs", "mine"]


async def test_a_cached_key_is_not_used_for_another_adapter_with_the_same_name(tmp_path: Path) -> None:
    async with ModelServer(streamed_completion("Mine."), streamed_completion("Theirs.")) as model:
        deep = project(tmp_path, model.url, "mine.toml")
        file = tmp_path / "project" / ".jumpseat" / "adapters" / "mine.toml"
        kept = 'api_key = {{value = "cmd:printf {key}", cache_s = 3600}}\n'
        file.write_text(
            f'extends = "openai_compatible"\n[env]\nbase_url = "{model.url}"\n' + kept.format(key="theirs")
        )
        user_config = '[adapters.mine]\nextends = "openai_compatible"\n[adapters.mine.env]\n'
        user_config += f'base_url = "{model.url}"\n' + kept.format(key=KEY)
        async with running_server(tmp_path, config=trusting(tmp_path / "project") + user_config) as server:
            assert await answer_of_new_session(server, model="mine/m", workingDirectory=str(tmp_path)) == "Mine."
            assert await answer_of_new_session(server, model="mine/m", workingDirectory=str(deep)) == "Theirs."

    assert [request.headers["authorization"] for request in model.requests] == [f"Bearer {KEY}", "Bearer theirs"]
