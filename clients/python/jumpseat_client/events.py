"""An event of a session as the client hands it out: the envelope with its decoded payload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from jumpseat_protocol.events import EventPayload, UnknownPayload, decode_payload


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a session.

    ``payload`` is a class of ``jumpseat_protocol.events``, or ``UnknownPayload`` for a type or shape that is
    unknown to this version. ``data`` holds all fields as they were sent, including those without an attribute in
    ``payload``. ``timestamp`` is ISO 8601 in UTC, ``ephemeral`` events are not stored, and ``agent_id`` is that
    of a sub-agent.
    """

    id: str
    timestamp: str
    parent_id: str | None
    payload: EventPayload | UnknownPayload
    data: Mapping[str, Any]
    ephemeral: bool = False
    agent_id: str | None = None

    @property
    def type(self) -> str:
        return self.payload.type

    @classmethod
    def decode(cls, record: Mapping[str, Any]) -> Event:
        """Decode the envelope of an event on the wire. Never raises: missing fields are empty.

        ``record`` is ``{id, timestamp, parentId, type, data, ephemeral?, agentId?}``.
        """
        data = record.get("data")
        return cls(
            id=str(record.get("id", "")),
            timestamp=str(record.get("timestamp", "")),
            parent_id=record.get("parentId"),
            payload=decode_payload(str(record.get("type", "")), data),
            data=cast("dict[str, Any]", data) if isinstance(data, dict) else {},
            ephemeral=record.get("ephemeral") is True,
            agent_id=record.get("agentId"),
        )
