"""The address that logs a browser in."""

from __future__ import annotations

from jumpseat.store.page_access import PageAccess


def address_of(access: PageAccess, url: str, pid: int) -> str:
    """Return an address of the page of a server that logs its browser in, once.

    Browsers do not send what follows ``#``, and the page removes it from the history.

    Raises:
        StoreError: the pass cannot be stored.
    """
    return f"{url}/#pass={access.add_pass(pid)}"
