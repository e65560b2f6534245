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
    """The version of the server."""
    node_version: str
    """Always empty."""
    os_platform: str
    """The operating system, such as ``linux``."""
    os_version: str
    """Its version."""
    os_arch: str
    """The processor's architecture."""
    client_name: str | None = None


class GitHubTelemetryEvent(_SnakeModel):
    """``created_at`` is ISO 8601."""

    kind: str
    properties: dict[str, str]
    """Texts by name."""
    metrics: dict[str, float]
    """Numbers by name."""
    session_id: str
    created_at: str
    """When it happened, in ISO 8601."""
    client: GitHubTelemetryClient
    """The process that it comes from."""


class GitHubTelemetryParams(WireModel):
    """``restricted`` is false: events have no content of sessions."""

    session_id: str
    restricted: StrictBool
    """Always false: the events have no content of sessions."""
    event: GitHubTelemetryEvent
    """The event."""
