"""An MCP server that requires a login, and its authorization server, in one process on loopback.

Requests are checked against the specifications: PKCE, the redirect, the resource, the single use of codes.
``valid`` is the only valid token; changing it makes the issued token expire. With ``service``, the only grant is
that of client credentials, and checked by that function: it gets the request and its form.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from tests.support.model_server import Reply, SeenRequest, json_reply, text_reply


@dataclass
class LoginServer:
    """A server and its state. With ``registers``, clients can register themselves; ``expires_in`` is in seconds."""

    registers: bool = True
    service: Callable[[SeenRequest, dict[str, str]], bool] | None = None
    auth_methods: list[str] = field(default_factory=lambda: ["client_secret_basic"])
    denies: bool = False
    expires_in: int | None = 3600
    token_endpoint: str | None = None
    registration_endpoint: str | None = None
    valid: str = ""
    refresh: str = ""
    clients: dict[str, Any] = field(default_factory=dict[str, Any])
    grants: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    _codes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    _issued: int = 0

    def __call__(self, request: SeenRequest) -> Reply:
        url = f"http://{request.headers['host']}"
        parts = urlsplit(request.path)
        match parts.path:
            case "/.well-known/oauth-protected-resource/mcp" | "/.well-known/oauth-protected-resource":
                return json_reply(
                    {"resource": f"{url}/mcp", "authorization_servers": [url], "scopes_supported": ["all"]}
                )
            case "/.well-known/oauth-authorization-server":
                return json_reply(self._metadata(url))
            case "/register" if self.registers:
                return self._register(request.json)
            case "/authorize":
                return self._authorize(dict(parse_qsl(parts.query)), url)
            case "/token":
                form = {name: values[0] for name, values in parse_qs(request.body.decode()).items()}
                return self._token(form) if self.service is None else self._grant(request, form, url)
            case "/mcp":
                return self._mcp(request, url)
            case _:
                return text_reply("nothing here", status=404)

    def _metadata(self, url: str) -> dict[str, Any]:
        registration = self.registration_endpoint or f"{url}/register"
        return {
            "issuer": url,
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": self.token_endpoint or f"{url}/token",
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            **({"registration_endpoint": registration} if self.registers else {}),
            **({"token_endpoint_auth_methods_supported": self.auth_methods} if self.service is not None else {}),
        }

    def _register(self, metadata: dict[str, Any]) -> Reply:
        client_id = f"client-{len(self.clients) + 1}"
        self.clients[client_id] = metadata["redirect_uris"]
        return json_reply({**metadata, "client_id": client_id}, status=201)

    def _authorize(self, params: dict[str, str], url: str) -> Reply:
        assert params["response_type"] == "code"
        assert params["code_challenge_method"] == "S256"
        assert params["resource"] == f"{url}/mcp"
        assert params["client_id"] in self.clients or not self.registers
        answer = {"state": params["state"]}
        if self.denies:
            answer["error"] = "access_denied"
        else:
            answer["code"] = f"code-{len(self._codes) + 1}"
            self._codes[answer["code"]] = params
        return text_reply("", status=302, headers={"Location": f"{params['redirect_uri']}?{urlencode(answer)}"})

    def _token(self, form: dict[str, str]) -> Reply:
        self.grants.append(form)
        if form["grant_type"] == "authorization_code":
            params = self._codes.pop(form["code"])
            digest = hashlib.sha256(form["code_verifier"].encode()).digest()
            assert base64.urlsafe_b64encode(digest).decode().rstrip("=") == params["code_challenge"]
            assert (form["client_id"], form["redirect_uri"]) == (params["client_id"], params["redirect_uri"])
            assert form["resource"] == params["resource"]
        elif form.get("refresh_token") != self.refresh:
            return json_reply({"error": "invalid_grant"}, status=400)
        self._issued += 1
        self.valid, self.refresh = f"access-{self._issued}", f"refresh-{self._issued}"
        answer: dict[str, Any] = {
            "access_token": self.valid,
            "token_type": "bearer",
            "refresh_token": self.refresh,
            "expires_in": self.expires_in,
        }
        return json_reply({name: value for name, value in answer.items() if value is not None})

    def _grant(self, request: SeenRequest, form: dict[str, str], url: str) -> Reply:
        self.grants.append(form)
        assert form["grant_type"] == "client_credentials"
        assert form["resource"] == f"{url}/mcp"
        assert self.service is not None
        if not self.service(request, form):
            return json_reply({"error": "invalid_client"}, status=401)
        self._issued += 1
        self.valid = f"access-{self._issued}"
        return json_reply({"access_token": self.valid, "token_type": "bearer", "expires_in": self.expires_in})

    def _mcp(self, request: SeenRequest, url: str) -> Reply:
        if not self.valid or request.headers.get("authorization") != f"Bearer {self.valid}":
            where = f"{url}/.well-known/oauth-protected-resource/mcp"
            return json_reply({}, status=401, headers={"WWW-Authenticate": f'Bearer resource_metadata="{where}"'})
        message: dict[str, Any] = request.json if request.method == "POST" else {}
        match message.get("method"):
            case "initialize":
                result: dict[str, Any] = {
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "guarded", "version": "1"},
                }
            case "tools/list":
                result = {"tools": [{"name": "go", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                result = {"content": [{"type": "text", "text": "gone"}]}
            case _:
                return json_reply({}, status=202 if request.method == "POST" else 405)
        return json_reply({"jsonrpc": "2.0", "id": message["id"], "result": result})
