"""``gitHubTelemetry.event``: notifications about sessions, for clients that ask for them."""

from __future__ import annotations

from typing import Final

from pydantic import ConfigDict, StrictBool

from jumpseat_protocol.wire import WireModel

EVENT: Final = "gitHubTelemetry.event"


class _SnakeModel(WireModel):
    """A part whose members keep their names, as GitHub's telemetry has them."""

    model_config = ConfigDict(alias_generator=None)


class GitHubTelemetryClient(_SnakeModel):
    """The process that produced an event; ``node_version`` is empty."""

    cli_version: str
    node_version: str
    os_platform: str
    os_version: str
    os_arch: str
    client_name: str | None = None


class GitHubTelemetryEvent(_SnakeModel):
    """``created_at`` is ISO 8601."""

    kind: str
    properties: dict[str, str]
    metrics: dict[str, float]
    session_id: str
    created_at: str
    client: GitHubTelemetryClient


class GitHubTelemetryParams(WireModel):
    """``restricted`` is false: events have no content of sessions."""

    session_id: str
    restricted: StrictBool
    event: GitHubTelemetryEvent
