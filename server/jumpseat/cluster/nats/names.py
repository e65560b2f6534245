"""The names of streams, buckets and subjects: ``NAME.log.SESSION``, ``NAME.to.REPLICA.KIND``."""

from __future__ import annotations

import base64
import re
from typing import Final

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")


class Names:
    """The names that a cluster called ``cluster`` uses. Several clusters can share NATS servers."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.log_stream = f"{cluster}-log"
        """The stream of all sessions' records."""
        self.logs = f"{cluster}.log.*"
        """The subjects of all sessions' records."""
        self.owners = f"{cluster}-owners"
        """The bucket with the owner of each open session."""
        self.replicas = f"{cluster}-replicas"
        """The bucket with the heartbeat of each replica."""
        self.index = f"{cluster}-sessions"
        """The bucket with the entry of each session in lists."""
        self.user = f"{cluster}-user"
        """The bucket with the user's approvals and settings."""
        self.objects = f"{cluster}-files"
        """The object store of large files."""
        self.lifecycle = f"{cluster}.lifecycle"
        """The subject of notifications about the lives of sessions."""
        buckets = [f"KV_{bucket}" for bucket in (self.owners, self.index, self.replicas, self.user)]
        self.streams = [self.log_stream, *buckets, f"OBJ_{self.objects}"]
        """All streams, including those of buckets."""

    def log(self, session_id: str) -> str:
        """Return the subject of a session's records."""
        return f"{self.cluster}.log.{token_of(session_id)}"

    def to(self, replica: str, kind: str) -> str:
        """Return the subject of messages of a kind to one replica."""
        return f"{self.cluster}.to.{replica}.{kind}"


def token_of(session_id: str) -> str:
    """Return a session's id as one token of a subject, which has no spaces, dots and wildcards."""
    if _PLAIN.fullmatch(session_id):
        return session_id
    return "=" + base64.urlsafe_b64encode(session_id.encode()).decode().rstrip("=")


def session_of(token: str) -> str:
    """Return the id of the session with a token."""
    if not token.startswith("="):
        return token
    encoded = token[1:]
    return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
