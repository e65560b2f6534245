"""Secrets of the clients that log in to MCP servers without a person, in the keyring of the operating system."""

from __future__ import annotations

from typing import NamedTuple

from jumpseat.errors import StoreError
from jumpseat.store.user.keyring import Keyring


class RegisteredClient(NamedTuple):
    """A client of an authorization server, and the MCP server that gets its tokens.

    A file that names another server therefore gets no token by a secret that was entered for this one.
    """

    url: str
    issuer: str
    client_id: str

    @property
    def name(self) -> str:
        """Return the name of the secret in the keyring."""
        return f"{self.client_id} of {self.issuer} for {self.url}"


def client_secret(client: RegisteredClient) -> str | None:
    """Return the secret of a client; ``None`` if there is none."""
    return Keyring().get(client.name)


def keep_client_secret(client: RegisteredClient, secret: str) -> None:
    """Store the secret of a client.

    Raises:
        StoreError: there is no keyring, or it does not keep the secret.
    """
    if not Keyring().put(client.name, secret):
        raise StoreError("there is no keyring that keeps the secret: name a variable with oauthClientSecretEnv")


def forget_client_secret(client: RegisteredClient) -> bool:
    """Remove the secret of a client; return whether there was one."""
    keyring = Keyring()
    found = keyring.get(client.name) is not None
    keyring.remove(client.name)
    return found
