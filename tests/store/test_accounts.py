"""Stored logins with a keyring: the file has no token, and a keyring that fails is no obstacle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jumpseat.errors import ProviderAuthError
from jumpseat.store.user.accounts import Accounts

pytestmark = pytest.mark.anyio

HOST = "https://github.com"


class MemoryKeyring:
    """A backend as the package ``keyring`` defines it; while ``broken`` is set, it fails."""

    priority = 1

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.broken = False

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._check()
        del self.kept[service, username]

    def _check(self) -> None:
        if self.broken:
            raise RuntimeError("locked")


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> MemoryKeyring:
    keyring: Any = pytest.importorskip("keyring")
    memory = MemoryKeyring()
    monkeypatch.setattr(keyring, "get_keyring", lambda: memory)
    return memory


async def test_tokens_are_in_the_keyring_and_not_in_the_file(tmp_path: Path, ring: MemoryKeyring) -> None:
    masked: list[str] = []
    await Accounts(tmp_path, masked.extend).add(HOST, "Alice", "token-of-alice")
    assert "token-of-alice" not in (tmp_path / "accounts.json").read_text()
    later = Accounts(tmp_path, masked.extend)
    login = await later.current()
    assert login is not None
    assert (login.id, login.name, await login.token()) == ("alice@github.com", "Alice", "token-of-alice")
    assert masked == ["token-of-alice"] * 2
    assert await later.remove(login.id) is False
    assert ring.kept == {}


async def test_a_keyring_that_fails_leaves_the_token_to_the_file(tmp_path: Path, ring: MemoryKeyring) -> None:
    ring.broken = True
    await Accounts(tmp_path).add(HOST, "alice", "token-of-alice")
    login = await Accounts(tmp_path).current()
    assert login is not None
    assert await login.token() == "token-of-alice"


async def test_a_token_that_the_keyring_has_lost_is_an_error_of_the_login(
    tmp_path: Path, ring: MemoryKeyring
) -> None:
    await Accounts(tmp_path).add(HOST, "alice", "token-of-alice")
    ring.kept.clear()
    login = await Accounts(tmp_path).current()
    assert login is not None
    with pytest.raises(ProviderAuthError, match="no longer in the keyring: log in again"):
        await login.token()
