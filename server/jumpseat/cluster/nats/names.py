"""The names of streams, buckets and subjects: ``NAME.log.SESSION``, ``NAME.to.REPLICA.KIND``."""

from __future__ import annotations

import base64
import re
from typing import Final

from msgspec import Struct

_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")


class Names(Struct, frozen=True):
    """The names that a cluster called ``cluster`` uses: several clusters can share the servers of NATS."""

    cluster: str

    @property
    def log_stream(self) -> str:
        """The stream of all sessions' records."""
        return f"{self.cluster}-log"

    @property
    def owners(self) -> str:
        """The bucket with the owner of each open session."""
        return f"{self.cluster}-owners"

    @property
    def replicas(self) -> str:
        """The bucket with the heartbeat of each replica."""
        return f"{self.cluster}-replicas"

    @property
    def index(self) -> str:
        """The bucket with what lists show of each session."""
        return f"{self.cluster}-sessions"

    @property
    def user(self) -> str:
        """The bucket with the user's approvals and settings."""
        return f"{self.cluster}-user"

    @property
    def objects(self) -> str:
        """The object store of large files."""
        return f"{self.cluster}-files"

    @property
    def streams(self) -> list[str]:
        """All streams, those of buckets included."""
        buckets = [f"KV_{bucket}" for bucket in (self.owners, self.index, self.replicas, self.user)]
        return [self.log_stream, *buckets, f"OBJ_{self.objects}"]

    @property
    def logs(self) -> str:
        """The subjects of all sessions' records."""
        return f"{self.cluster}.log.*"

    def log(self, session_id: str) -> str:
        """Return the subject of a session's records."""
        return f"{self.cluster}.log.{token_of(session_id)}"

    def to(self, replica: str, kind: str) -> str:
        """Return the subject of messages of a kind to one replica."""
        return f"{self.cluster}.to.{replica}.{kind}"

    @property
    def lifecycle(self) -> str:
        """The subject of notifications about the lives of sessions."""
        return f"{self.cluster}.lifecycle"


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
