"""Services that log in to MCP servers without a person: the client credentials grant."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import anyio
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.handlers.test_account import BACKEND
from tests.support.cases import all_cases
from tests.support.forked import executable
from tests.support.login_server import LoginServer
from tests.support.mcp_servers import status
from tests.support.model_server import ModelServer, SeenRequest
from tests.support.server import READABLE, JsonObject, calls, running_server, scripted

pytestmark = pytest.mark.anyio

SECRET: Final = "a secret / of the service"


def config_of(url: str, settings: Mapping[str, str]) -> str:
    given = {
        "url": f"{url}/mcp",
        "oauthGrantType": "client_credentials",
        "oauthClientId": "service",
        "oauthIssuer": url,
        **settings,
    }
    lines = [f"{name} = {json.dumps(value)}" for name, value in given.items()]
    return "\n".join(["[mcp.servers.far]", *lines, ""])


def basic(request: SeenRequest, form: dict[str, str]) -> bool:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return scheme == "Basic" and base64.b64decode(given) == b"service:a%20secret%20%2F%20of%20the%20service"


def post(request: SeenRequest, form: dict[str, str]) -> bool:
    given = form.get("client_id"), form.get("client_secret")
    return "authorization" not in request.headers and given == ("service", SECRET)


@pytest.mark.parametrize(("method", "check"), [("client_secret_basic", basic), ("client_secret_post", post)])
async def test_a_service_logs_in_with_its_secret_and_again_when_its_token_has_expired(
    tmp_path: Path, method: str, check: Callable[[SeenRequest, dict[str, str]], bool]
) -> None:
    guard = LoginServer(registers=False, service=check, auth_methods=[method])
    async with ModelServer(answer=guard) as far:
        config = config_of(far.url, {"oauthClientSecretEnv": "FAR_SECRET", "oauthScope": "read write"})
        options: JsonObject = {
            "config": config,
            "env": {"FAR_SECRET": SECRET},
            "args": ["--yolo", "--log-level", "debug"],
        }
        async with running_server(tmp_path, **options) as server:
            run = calls("bash", "3", command="echo secret: $FAR_SECRET.")
            session = await server.wire.create(
                scripted(calls("far-go"), calls("far-go", "2"), run, {"text": "end"})
            )
            await status(server.wire, session, "far", "connected")
            assert [form["scope"] for form in guard.grants] == ["read write"]
            guard.valid = "another"
            results: list[str] = [
                event["data"]["result"]["content"]
                for event in await server.wire.prompt(session)
                if event["type"] == "tool.execution_complete"
            ]
            assert results[:2] == ["gone", "gone"]
            assert len(guard.grants) == 2
            assert results[2].startswith("secret: .")
            files = "".join(path.read_text() for path in server.home.rglob("*.jsonl"))
            assert not (server.home / "mcp-tokens.json").exists()
            for text in (server.stderr, files):
                assert SECRET not in text
                assert "access-1" not in text


async def test_a_secret_in_the_keyring_is_used_for_its_client_only(tmp_path: Path) -> None:
    pytest.importorskip("keyring")
    guard = LoginServer(registers=False, service=post, auth_methods=["client_secret_post"])
    env = {"XDG_CONFIG_HOME": str(tmp_path), "FILE_KEYRING": str(tmp_path / "ring.json")}
    (tmp_path / "python_keyring").mkdir()
    (tmp_path / "python_keyring" / "keyringrc.cfg").write_text(
        f"[backend]\ndefault-keyring=file_keyring.FileKeyring\nkeyring-path={BACKEND}\n"
    )
    home = tmp_path / "home"
    home.mkdir()
    async with ModelServer(answer=guard) as far:
        config = config_of(far.url, {})
        (home / "config.toml").write_text(config)

        async def secret(*options: str) -> str:
            done = await anyio.run_process(
                [executable(), "mcp", "secret", "far", *options],
                input=SECRET.encode(),
                env={**env, "PATH": "/usr/bin:/bin", "COPILOT_HOME": str(home)},
            )
            return done.stdout.decode()

        assert await secret() == "The secret of service is in the keyring.\n"
        other = config.replace("[mcp.servers.far]", "[mcp.servers.other]").replace('"service"', '"another"')
        options: JsonObject = {"config": config + other, "env": env, "args": ["--yolo", "--log-level", "debug"]}
        async with running_server(tmp_path, **options) as server:
            session = await server.wire.create(scripted({"text": "end"}))
            await status(server.wire, session, "far", "connected")
            await status(server.wire, session, "other", "needs-auth")
            assert len(guard.grants) == 1
            assert SECRET not in server.stderr
        assert await secret("--remove") == "The secret is removed.\n"
        assert SECRET not in (tmp_path / "ring.json").read_text()


async def test_a_service_logs_in_with_a_signed_assertion(tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    file = tmp_path / "key.pem"
    file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))

    def check(request: SeenRequest, form: dict[str, str]) -> bool:
        assert form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
        issuer = f"http://{request.headers['host']}"
        claims = jwt.decode(form["client_assertion"], key.public_key(), ["ES256"], audience=[issuer, f"{issuer}/"])
        return (claims["iss"], claims["sub"]) == ("service", "service") and "client_id" not in form

    guard = LoginServer(registers=False, service=check, auth_methods=["private_key_jwt"])
    async with ModelServer(answer=guard) as far:
        config = config_of(far.url, {"oauthPrivateKeyFile": str(file), "oauthSigningAlgorithm": "ES256"})
        async with running_server(tmp_path, config=config, args=["--yolo"]) as server:
            session = await server.wire.create(scripted({"text": "end"}))
            await status(server.wire, session, "far", "connected")


async def test_credentials_go_to_the_named_authorization_server_only_and_problems_are_told(tmp_path: Path) -> None:
    key = tmp_path / "no-key.pem"
    key.write_text(SECRET)
    guard = LoginServer(registers=False, service=lambda _request, _form: False)
    async with ModelServer(answer=guard) as far:
        with all_cases() as case:
            for settings, asked, expected in (
                ({"oauthClientSecretEnv": "FAR_SECRET"}, 1, "refused the client credentials"),
                ({"oauthClientSecretEnv": "NO_SECRET"}, 0, "the environment variable NO_SECRET is not set"),
                ({"oauthIssuer": "http://elsewhere.example"}, 0, "expected oauthClientSecretEnv or"),
                (
                    {"oauthIssuer": "http://127.0.0.1:9", "oauthClientSecretEnv": "FAR_SECRET"},
                    0,
                    "the client credentials could not be used",
                ),
                ({"oauthPrivateKeyFile": str(key)}, 0, "not a private key for RS256"),
                ({"oauthPrivateKeyFile": str(tmp_path / "missing")}, 0, "No such file"),
            ):
                with case(settings):
                    guard.grants.clear()
                    env = {"FAR_SECRET": SECRET}
                    config = READABLE + config_of(far.url, settings)
                    async with running_server(tmp_path, config=config, env=env) as server:
                        session = await server.wire.create(scripted({"text": "end"}))
                        warning = await server.wire.event("session.warning", session=session)
                        assert expected in warning["data"]["message"]
                        await status(server.wire, session, "far", "needs-auth")
                        assert len(guard.grants) >= asked
                        assert asked or not guard.grants
                        assert SECRET not in server.stderr
