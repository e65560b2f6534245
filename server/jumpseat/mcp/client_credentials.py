"""Tokens for services without a person: OAuth's client credentials grant (RFC 6749, section 4.4).

The extension of the specification: https://modelcontextprotocol.io/extensions/auth/oauth-client-credentials. The
``mcp`` package does the discovery. The credentials are those of ``config.toml`` and other files, or a secret in the
keyring, and go to the authorization server that is named there, wherever the MCP server says that logins go.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias
from uuid import uuid4

import anyio.to_thread
import httpx2
import jwt
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthTokenError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
)
from pydantic import ValidationError

from jumpseat.errors import JumpseatError
from jumpseat.mcp.endpoints import Endpoints, NearerError
from jumpseat.mcp.login import Granted, MemoryStorage, check_private, send_initialize
from jumpseat.system.regular_files import read_whole
from jumpseat_protocol.mcp_servers import McpServerConfig

ASSERTION_S: Final = 300
"""How long a signed assertion is good, in seconds."""
MAX_KEY_BYTES: Final = 64 * 1024


FindSecret: TypeAlias = Callable[[str, str, str], Awaitable[str | None]]
"""Returns the stored secret for the URL of a server, an issuer and the id of a client."""


class GrantFailedError(JumpseatError):
    """There is no token; the text is the reason."""


async def request_token(config: McpServerConfig, environ: Mapping[str, str], find_secret: FindSecret) -> str:
    """Return a new token for a service, whose settings have ``oauthGrantType`` ``client_credentials``.

    Raises:
        GrantFailedError: a setting is missing or wrong, or the authorization server issued no token.
    """
    url = config.url or ""
    storage = MemoryStorage()
    provider = await _provider(config, url, storage, environ, find_secret)
    endpoints = Endpoints(url)

    async def check(request: httpx2.Request) -> None:
        await endpoints.check_request(request)
        check_private(str(request.url), url)

    try:
        await send_initialize(url, provider, check)
    except Granted:
        assert storage.token is not None
        return storage.token.access_token
    except NearerError as error:
        raise GrantFailedError(str(error)) from None
    except OAuthTokenError:
        raise GrantFailedError("the authorization server refused the client credentials") from None
    except OAuthFlowError as error:
        raise GrantFailedError(f"the client credentials could not be used: {error}") from None
    except ValidationError:
        raise GrantFailedError("the OAuth metadata of the server is invalid") from None
    except httpx2.HTTPError as error:
        raise GrantFailedError(f"the authorization server does not respond ({type(error).__name__})") from None
    raise GrantFailedError("the server asks for no token")


async def _provider(
    config: McpServerConfig, url: str, storage: MemoryStorage, environ: Mapping[str, str], find_secret: FindSecret
) -> OAuthClientProvider:
    if not config.oauth_client_id or not config.oauth_issuer:
        raise GrantFailedError("client_credentials: expected oauthClientId and oauthIssuer")
    given: dict[str, Any] = {
        "server_url": url,
        "storage": storage,
        "client_id": config.oauth_client_id,
        "scope": config.oauth_scope,
        "issuer": config.oauth_issuer,
    }
    try:
        if config.oauth_private_key_file is not None:
            key = await _read_key(config.oauth_private_key_file)
            algorithm = config.oauth_signing_algorithm or "RS256"
            sign = _signer(config.oauth_client_id, key, algorithm)
            return _KeyProvider(assertion_provider=sign, **given)
        name = config.oauth_client_secret_env
        if name is None:
            secret = await find_secret(url, config.oauth_issuer, config.oauth_client_id)
            if secret is None:
                raise GrantFailedError(
                    "client_credentials: expected oauthClientSecretEnv or oauthPrivateKeyFile, or a secret in the"
                    " keyring: see jumpseat mcp secret"
                )
            return _SecretProvider(client_secret=secret, **given)
        if not environ.get(name):
            raise GrantFailedError(f"client_credentials: the environment variable {name} is not set")
        return _SecretProvider(client_secret=environ[name], **given)
    except ValueError as error:
        raise GrantFailedError(f"client_credentials: {error}") from None


class _KeyProvider(PrivateKeyJWTOAuthProvider):
    """Asks for the configured scopes, whatever the MCP server says that it supports."""

    async def _perform_authorization(self) -> httpx2.Request:
        wanted = self._fixed_client_info.scope
        self.context.client_metadata.scope = wanted or self.context.client_metadata.scope
        return await super()._perform_authorization()


class _SecretProvider(ClientCredentialsOAuthProvider):
    """Does the same, and sends the secret in the way that the authorization server supports."""

    async def _perform_authorization(self) -> httpx2.Request:
        wanted = self._fixed_client_info.scope
        self.context.client_metadata.scope = wanted or self.context.client_metadata.scope
        metadata, client = self.context.oauth_metadata, self.context.client_info
        supported = metadata.token_endpoint_auth_methods_supported if metadata else None
        if client is not None and supported and "client_secret_basic" not in supported:
            client.token_endpoint_auth_method = "client_secret_post"  # noqa: S105 - a method
        return await super()._perform_authorization()


async def _read_key(file: str) -> bytes:
    try:
        return await anyio.to_thread.run_sync(lambda: read_whole(Path(file).expanduser(), MAX_KEY_BYTES))
    except OSError as error:
        raise GrantFailedError(
            f"client_credentials: cannot read {file!r}: {error.strerror or 'not a regular file'}"
        ) from None


def _signer(client_id: str, key: bytes, algorithm: str) -> Callable[[str], Awaitable[str]]:
    """Return the function that signs an assertion for an authorization server (RFC 7523, section 2.2)."""

    async def sign(audience: str) -> str:
        now = int(time.time())
        claims = {"iss": client_id, "sub": client_id, "aud": audience, "iat": now, "exp": now + ASSERTION_S}
        try:
            return jwt.encode({**claims, "jti": uuid4().hex}, key, algorithm=algorithm)
        except (jwt.PyJWTError, ValueError, TypeError, NotImplementedError):
            # The text of the error may quote the key.
            raise GrantFailedError(f"client_credentials: not a private key for {algorithm} in PEM form") from None

    return sign
