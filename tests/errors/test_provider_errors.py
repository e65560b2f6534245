"""Each failure of ``provider_cases.py``, sent to the server over HTTP: the message of the session."""

from __future__ import annotations

import json
import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from jumpseat import ProviderError, open_models
from tests.errors.provider_cases import FAILURES, KEY, VARIABLE, Failure
from tests.support.cases import all_cases
from tests.support.certificates import certificate as certificate
from tests.support.host_names import resolve_names
from tests.support.model_server import ModelServer
from tests.support.ports import closed_port
from tests.support.server import Wire, running_server

pytestmark = pytest.mark.anyio

RETRY = "[retry]\nattempts = 1\n"
HOST = "https://llm.example.com"


@asynccontextmanager
async def addresses(
    failures: dict[str, Failure], certificate: tuple[Path, Path]
) -> AsyncGenerator[dict[str, tuple[str, str]]]:
    """Run the servers of ``failures``; the value has the base URL of each, and further keys of its adapter."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certificate)
    async with AsyncExitStack() as servers:
        found: dict[str, tuple[str, str]] = {}
        for name, failure in failures.items():
            server = ModelServer(failure.reply, tls=tls if failure.server == "tls" else None)
            await servers.enter_async_context(server)
            url, more = f"{server.url}{failure.path}", ""
            match failure.server:
                case "closed":
                    url = f"http://127.0.0.1:{servers.enter_context(closed_port())}{failure.path}"
                case "proxy":
                    url, more = f"{HOST}{failure.path}", f'raw = ["--proxy", "{server.url}"]\n'
                case "silent":
                    more = "opts = {timeouts = {first_byte = 0.25}}\n"
                case _:
                    pass
            found[name] = url, more
        yield found


def configuration(failures: dict[str, Failure], at: dict[str, tuple[str, str]]) -> str:
    """Return the configuration with an adapter for each failure."""
    text = RETRY
    for name, failure in failures.items():
        url, more = at[name]
        text += f'[adapters.{name}]\ntype = "{failure.type}"\nbase_url = "{url}"\nmodels = ["{failure.model}"]\n'
        text += (f'api_key_env = "{VARIABLE}"\n' if failure.has_key else "") + more
    return text


async def message_of(wire: Wire, name: str, failure: Failure) -> str:
    """Return the error of a session with the adapter ``name``."""
    created = await wire.call("session.create", {"model": f"{name}/{failure.model}", "streaming": True})
    events = await wire.prompt(created["sessionId"], "hello")
    (message,) = [event["data"]["message"] for event in events if event["type"] == "session.error"]
    return message.removeprefix("Execution failed: ")


def shown(message: str, name: str, url: str) -> str:
    """Return a message as it is on the page, where all adapters and servers have the same name."""
    origin = re.match(r"https?://[^/]+", url)
    assert origin is not None
    # The server of the tests does not know the names of statuses.
    message = message.replace(origin[0], HOST).replace(name, "work")
    return message.replace("407 Scripted", "407 Proxy Authentication Required")


@pytest.mark.parametrize("group", FAILURES)
async def test_a_failure_is_explained_with_variable_address_and_model(
    tmp_path: Path, group: str, certificate: tuple[Path, Path]
) -> None:
    titles = {f"case{number}": title for number, title in enumerate(FAILURES[group])}
    failures = {
        name: FAILURES[group][title]
        for name, title in titles.items()
        if FAILURES[group][title].server != "unknown host"
    }
    async with addresses(failures, certificate) as at:
        config = configuration(failures, at)
        async with running_server(tmp_path, config=config, env={VARIABLE: KEY}, limit_s=120) as server:
            with all_cases() as case:
                for name, failure in failures.items():
                    message = shown(await message_of(server.wire, name, failure), name, at[name][0])
                    with case(titles[name]):
                        assert message == failure.message
            assert KEY not in json.dumps(server.wire.messages)


async def test_a_host_without_an_address_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resolve_names(monkeypatch, {})
    every = (failure for failures in FAILURES.values() for failure in failures.values())
    failure = next(failure for failure in every if failure.server == "unknown host")
    failures = {"work": failure}
    (tmp_path / "config.toml").write_text(configuration(failures, {"work": (f"{HOST}{failure.path}", "")}))

    async with open_models(home=tmp_path, environ={VARIABLE: KEY}) as models:
        with pytest.raises(ProviderError) as caught:
            await models.complete(model=f"work/{failure.model}", prompt="hello")

    assert caught.value.explanation == failure.message
