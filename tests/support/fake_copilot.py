"""A fake of GitHub and of the Copilot API on loopback, with users, models and all three wires.

A model answers with ``<wire> of <login>``: the wire and the user of the call.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.support.model_server import ModelServer, Reply, SeenRequest, event_stream, json_reply

JsonObject: TypeAlias = dict[str, Any]

ALICE = "token-of-alice"
BOB = "token-of-bob"
LOGINS: Mapping[str, str] = {ALICE: "alice", BOB: "bob"}
PLANS: Mapping[str, str] = {"alice": "individual_pro", "bob": "business"}
QUOTA: JsonObject = {
    "chat": {
        "entitlement": 100,
        "overage_count": 2,
        "overage_permitted": True,
        "percent_remaining": 75,
        "timestamp_utc": "2026-04-30T00:00:00Z",
    }
}
MODELS: list[JsonObject] = [
    {"id": "by-chat"},
    {"id": "by-responses", "supported_endpoints": ["/responses"]},
    {"id": "by-messages", "supported_endpoints": ["/v1/messages"]},
]
USAGE: JsonObject = {"usage": {"prompt_tokens": 1, "completion_tokens": 1}, "copilot_usage": {"total_nano_aiu": 5}}
_WIRES = ("/tenant/chat/completions", "/tenant/responses", "/tenant/v1/messages")


@dataclass
class FakeCopilot:
    """A running fake. GitHub is at ``url/github``, the API of every user at ``url/tenant``."""

    server: ModelServer
    models: list[JsonObject] = field(default_factory=lambda: list(MODELS))
    limited: dict[str, str] = field(default_factory=dict[str, str])
    """The error codes of rate-limited models, by model."""
    retry_after: str = "1"

    @property
    def environ(self) -> dict[str, str]:
        """The environment that makes a server use this fake."""
        return {"COPILOT_DEBUG_GITHUB_API_URL": f"{self.server.url}/github"}

    def tokens_of(self, path: str) -> list[str]:
        """Return the tokens of the requests whose path ends with ``path``, in order."""
        return [
            request.headers["authorization"].removeprefix("Bearer ")
            for request in self.server.requests
            if request.path.endswith(path)
        ]

    def called_models(self) -> list[str]:
        """Return the models that were called over any wire, in order."""
        return [request.json["model"] for request in self.server.requests if request.path in _WIRES]

    def answer(self, request: SeenRequest) -> Reply:
        """Return the reply to one request."""
        login = LOGINS.get(request.headers.get("authorization", "").removeprefix("Bearer "))
        if login is None:
            return json_reply({"message": "Bad credentials"}, status=401)
        match request.path:
            case "/github/copilot_internal/user":
                endpoints = {"api": f"{self.server.url}/tenant"}
                user = {"login": login, "copilot_plan": PLANS[login], "endpoints": endpoints}
                return json_reply(user | {"quota_snapshots": QUOTA})
            case "/tenant/models":
                own = {"id": f"only-for-{login}"}
                return json_reply({"data": [*self.models, own]})
            case path if path in _WIRES:
                if (code := self.limited.get(request.json["model"])) is not None:
                    error = {"message": "You have had enough.", "type": code, "code": code}
                    return json_reply({"error": error}, status=429, headers={"retry-after": self.retry_after})
                wire = request.path.removeprefix("/tenant/")
                return _completion(wire, f"{wire} of {login}", stream=bool(request.json.get("stream")))
            case _:
                return json_reply({"error": "not found"}, status=404)


@contextlib.asynccontextmanager
async def fake_copilot() -> AsyncGenerator[FakeCopilot]:
    """Serve on a free loopback port for the duration of the block."""

    def answer(request: SeenRequest) -> Reply:
        return fake.answer(request)

    async with ModelServer(answer=answer, lists=True) as server:
        fake = FakeCopilot(server)
        yield fake


def _completion(wire: str, text: str, *, stream: bool) -> Reply:
    if wire == "chat/completions":
        if not stream:
            return json_reply({"choices": [{"message": {"content": text}, "finish_reason": "stop"}], **USAGE})
        delta = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}], **USAGE}
        return event_stream(_data(delta), b"data: [DONE]\n\n")
    if wire == "responses":
        message = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
        response = {"id": "r", "status": "completed", "output": [message]}
        if not stream:
            return json_reply(response)
        part = {"output_index": 0, "content_index": 0, "item_id": "i"}
        return event_stream(
            _data({"type": "response.created", "response": response | {"status": "in_progress", "output": []}}),
            _data({"type": "response.output_text.delta", **part, "delta": text}),
            _data({"type": "response.output_item.done", "output_index": 0, "item": message}),
            _data({"type": "response.completed", "response": response}),
        )
    if not stream:
        return json_reply(
            {"type": "message", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
        )
    return event_stream(
        _data({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1}}}),
        _data({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        _data({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        _data({"type": "content_block_stop", "index": 0}),
        _data({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        _data({"type": "message_stop"}),
    )


def _data(event: JsonObject) -> bytes:
    return f"event: {event.get('type', 'message')}\ndata: {json.dumps(event)}\n\n".encode()
