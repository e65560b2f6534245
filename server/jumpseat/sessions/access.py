"""The rights of a connection, and the tokens that give them."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    from jumpseat.store.user.connection_tokens import ConnectionToken, ConnectionTokenFile
    from jumpseat.store.user.page_access import PageAccess


class Access(Struct, frozen=True):
    """The rights of a connection.

    ``name`` is the name of the connection's token, ``None`` for one without a name; sessions are stored with the
    name of the token that created them. With ``all``, the connection sees the sessions of all tokens, and may
    change what all clients share. ``digest`` distinguishes the token from later tokens of the same name.
    """

    name: str | None = None
    all: bool = True
    digest: str | None = None

    def sees(self, created_by: str | None) -> bool:
        """Return whether the connection sees the sessions that the token with the name ``created_by`` created."""
        return self.all or (created_by is not None and created_by == self.name)


EVERYTHING: Final = Access()
NOTHING: Final = Access(all=False)


class Gate:
    """Decides which access a connection token gives.

    ``token`` gives access to everything. ``named`` are tokens with names. Without either, no token is needed.
    ``pages`` are the passes and logins of pages in browsers, which give access to everything.
    """

    def __init__(
        self,
        token: str | None = None,
        named: ConnectionTokenFile | None = None,
        pages: PageAccess | None = None,
    ) -> None:
        self._token = token
        self._named = named
        self.pages = pages

    @property
    def initial_access(self) -> Access | None:
        """The access of a new connection; ``None`` if it has to present a token first."""
        return EVERYTHING if self._token is None and self._named is None else None

    def access_of(self, token: str | None) -> Access | None:
        """Return the access that a token gives; ``None`` if the token is missing, wrong or revoked."""
        if self.initial_access is not None:
            return self.initial_access
        if not token:
            return None
        if self._token is not None and hmac.compare_digest(_bytes(token), _bytes(self._token)):
            return EVERYTHING
        if self.pages is not None and self.pages.accepts(token):
            return EVERYTHING
        named = self._named.find(token) if self._named is not None else None
        return None if named is None else _access(named)

    def knows(self, token: str | None) -> bool:
        """Return whether a token gives access by itself: one that is needed, or the pass of a page."""
        if self.initial_access is None:
            return self.access_of(token) is not None
        return bool(token) and self.pages is not None and self.pages.accepts(token)

    @property
    def can_revoke(self) -> bool:
        """Return whether a token may be revoked while the server runs."""
        return self._named is not None

    def is_valid(self, access: Access) -> bool:
        """Return whether the token that gave ``access`` is still valid. Reads a file."""
        if access.name is None or self._named is None:
            return True
        return any(_access(token) == access for token in self._named.all())


def _access(token: ConnectionToken) -> Access:
    return Access(token.name, token.all, token.digest)


def _bytes(token: str) -> bytes:
    # JSON may hold lone surrogates.
    return token.encode("utf-8", "surrogatepass")
