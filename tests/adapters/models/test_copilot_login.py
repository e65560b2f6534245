"""Sources of GitHub tokens: callbacks of clients, the environment, the GitHub CLI."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from jumpseat.adapters.models.copilot_account import copilot_api_of, github_api_of
from jumpseat.adapters.models.copilot_login import (
    ClientLogin,
    Reason,
    TokenLogin,
    host_of_environment,
    login_of_environment,
    login_of_gh,
)
from jumpseat.errors import ClientCallError, ProviderAuthError
from jumpseat.options import Options
from jumpseat_protocol.callbacks import GitHubTokenResult
from tests.support.limits import WAIT_S

pytestmark = pytest.mark.anyio

HOST = "https://github.com"
HOUR = 3600.0


class Giver:
    """A client that provides ``token-1``, ``token-2``..., each valid for ``lasts_s`` seconds, or fails."""

    def __init__(self, lasts_s: float = 8 * HOUR) -> None:
        self.lasts_s = lasts_s
        self.trouble: Exception | GitHubTokenResult | None = None
        self.asked: list[Reason] = []
        self.now = 1000.0

    async def __call__(self, reason: Reason) -> GitHubTokenResult:
        self.asked.append(reason)
        await anyio.lowlevel.checkpoint()
        if isinstance(self.trouble, Exception):
            raise self.trouble
        return self.trouble or GitHubTokenResult(
            kind="token", access_token=f"token-{len(self.asked)}", expires_in=self.lasts_s
        )

    def login(self) -> ClientLogin:
        return ClientLogin(self, HOST, now=lambda: self.now)


async def test_concurrent_requests_share_one_token_callback() -> None:
    giver = Giver()
    login = giver.login()
    got: list[str] = []

    async def need() -> None:
        got.append(await login.token())

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(need)

    assert (got, giver.asked) == (["token-1"] * 5, ["initial"])


async def test_a_token_is_replaced_when_needed_in_its_last_hour() -> None:
    giver = Giver()
    login = giver.login()
    got = [await login.token()]
    giver.now += 7 * HOUR - 1
    got.append(await login.token())
    giver.now += 1
    got.append(await login.token())

    assert got == ["token-1", "token-1", "token-2"]
    assert giver.asked == ["initial", "refresh"]


async def test_a_token_that_lasts_less_than_an_hour_is_requested_every_time() -> None:
    giver = Giver(lasts_s=600)
    login = giver.login()

    assert [await login.token() for _ in range(3)] == ["token-1", "token-2", "token-3"]


@pytest.mark.parametrize(
    "trouble", [ClientCallError("no network"), GitHubTokenResult(kind="cancelled")], ids=["error", "cancelled"]
)
async def test_a_token_that_cannot_be_replaced_is_used_until_it_expires(
    trouble: Exception | GitHubTokenResult,
) -> None:
    giver = Giver()
    login = giver.login()
    await login.token()
    giver.trouble = trouble
    giver.now += 7.5 * HOUR
    # Not before every request: a client that does not answer would delay each of them.
    assert [await login.token() for _ in range(3)] == ["token-1"] * 3
    assert giver.asked == ["initial", "refresh"]
    giver.now += 0.5 * HOUR
    with pytest.raises(ProviderAuthError, match="the client provided no GitHub token"):
        await login.token()
    giver.trouble = None

    assert await login.token() == "token-4"
    assert giver.asked[2:] == ["refresh", "initial"]


async def test_a_token_callback_without_an_answer_times_out() -> None:
    async def ask(reason: Reason) -> GitHubTokenResult:
        await anyio.sleep_forever()
        raise AssertionError(reason)

    with pytest.raises(ProviderAuthError, match=r"within 0\.25 s"), anyio.fail_after(WAIT_S):
        await ClientLogin(ask, HOST, timeout_s=0.25).token()


async def test_cancelling_one_waiter_does_not_cancel_the_others() -> None:
    gate = anyio.Event()
    reasons: list[Reason] = []

    async def ask(reason: Reason) -> GitHubTokenResult:
        reasons.append(reason)
        if len(reasons) == 1:
            gate.set()
            await anyio.sleep_forever()
        return GitHubTokenResult(kind="token", access_token="second", expires_in=9000)

    login = ClientLogin(ask, HOST)
    with anyio.fail_after(WAIT_S):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(login.token)
            await gate.wait()
            tasks.cancel_scope.cancel()
        assert await login.token() == "second"


async def test_no_token_is_in_the_text_of_a_failure_or_of_a_login() -> None:
    giver = Giver()
    giver.trouble = ClientCallError("cannot renew ghp_0123456789abcdef0123")
    with pytest.raises(ProviderAuthError) as caught:
        await giver.login().token()

    assert str(caught.value) == "the client provided no GitHub token: cannot renew [redacted]"
    assert "secret" not in repr(TokenLogin("secret", facts={"a": "secret"}))


@pytest.mark.parametrize(
    ("environ", "host", "github", "copilot"),
    [
        ({}, "https://github.com", "https://api.github.com", "https://api.githubcopilot.com"),
        (
            {"GH_HOST": "octo.ghe.com"},
            "https://octo.ghe.com",
            "https://api.octo.ghe.com",
            "https://copilot-api.octo.ghe.com",
        ),
        (
            {"GH_HOST": "other", "COPILOT_GH_HOST": "https://git.example.com/"},
            "https://git.example.com",
            "https://git.example.com/api/v3",
            "https://copilot-api.git.example.com",
        ),
    ],
)
def test_the_environment_selects_the_site_of_the_apis(
    environ: Mapping[str, str], host: str, github: str, copilot: str
) -> None:
    found = host_of_environment(environ)

    assert (found, github_api_of(found), copilot_api_of(found)) == (host, github, copilot)


def test_the_login_of_the_environment_has_its_source_and_site() -> None:
    def found(auth_token: str | None = None, **environ: str) -> TokenLogin | None:
        return login_of_environment(Options(environ=environ, auth_token=auth_token))

    assert found() is None
    assert found("t", GH_TOKEN="other") == TokenLogin("t", "token", HOST)
    assert found(GH_TOKEN="t", GH_HOST="octo.ghe.com") == TokenLogin(
        "t", "env", "https://octo.ghe.com", variable="GH_TOKEN"
    )


@pytest.fixture
def gh(tmp_path: Path) -> Callable[[str], dict[str, str]]:
    """Return a function that writes a ``gh`` from a shell script and returns an environment with it."""

    def make(script: str) -> dict[str, str]:
        program = tmp_path / "gh"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "SEEN": str(tmp_path / "seen")}

    return make


def seen(environ: Mapping[str, str]) -> str:
    return Path(environ["SEEN"]).read_text()


async def test_the_github_cli_provides_the_token_of_the_site(gh: Callable[[str], dict[str, str]]) -> None:
    environ = gh('echo "$@" > "$SEEN"; echo gho_of_gh') | {"GH_HOST": "octo.ghe.com"}

    assert await login_of_gh(environ) == TokenLogin("gho_of_gh", "gh-cli", "https://octo.ghe.com")
    assert seen(environ) == "auth token --hostname octo.ghe.com\n"


@pytest.mark.parametrize("script", ["echo no oauth token >&2; exit 1", "exit 0", "echo half; exit 1"])
async def test_a_github_cli_without_a_login_provides_no_token(
    gh: Callable[[str], dict[str, str]], script: str
) -> None:
    assert await login_of_gh(gh(script)) is None
    assert await login_of_gh({}) is None


def test_an_invalid_lifetime_is_an_invalid_answer() -> None:
    values: list[Any] = [-1, float("inf"), float("nan"), "soon"]
    for value in values:
        with pytest.raises(ValueError, match="expiresIn"):
            GitHubTokenResult.model_validate({"kind": "token", "accessToken": "t", "expiresIn": value})
