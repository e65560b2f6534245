"""The WebSocket port of a server: its page, and its entry in the home folder, for ``jumpseat web``."""

from __future__ import annotations

import json
import os
import webbrowser
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol

import anyio.to_thread

from jumpseat.errors import JumpseatError
from jumpseat.network.listener import Newcomer
from jumpseat.network.site import Site, has_page
from jumpseat.options import TcpOptions
from jumpseat.rpc.transport import Framing
from jumpseat.store.user.page_access import PageAccess

try:
    from jumpseat.network.web_socket import WebSocketNewcomer
except ModuleNotFoundError as error:
    if error.name is None or error.name.partition(".")[0] != "websockets":
        raise
    from jumpseat.system.installation import how_to_add

    raise JumpseatError(
        f"WebSocket clients and the page need the package 'websockets': {how_to_add('web')}"
    ) from None


if TYPE_CHECKING:
    from jumpseat.network.http_door import HttpDoor


class Connect(Protocol):
    """Creates the client of the server behind a connection."""

    def __call__(self, peer: str, framing: Framing) -> Newcomer: ...


class AdmitTo(Protocol):
    """See :class:`jumpseat.network.web_socket.Admit`."""

    def __call__(
        self, peer: str, path: str, token: str | None, *, has_origin: bool
    ) -> Callable[[Framing], Newcomer] | None: ...


class AdmitHttpTo(Protocol):
    """See :class:`jumpseat.network.web_socket.AdmitHttp`."""

    def __call__(self, peer: str, path: str, token: str | None, *, has_origin: bool) -> HttpDoor | None: ...


class WebServer:
    """The page and the WebSocket clients of one server.

    Raises:
        JumpseatError: a person asked for the page, and this installation lacks it.
    """

    def __init__(self, options: TcpOptions, access: PageAccess) -> None:
        if options.page is not None and not has_page():
            from jumpseat.system.installation import how_to_add_page

            raise JumpseatError(f"the page is not part of this installation: {how_to_add_page()}")
        self._options = options
        self._access = access
        self._url = ""

    def newcomers(
        self, port: int, connect: Connect, admit: AdmitTo, admit_http: AdmitHttpTo
    ) -> Callable[[str], Newcomer]:
        """Return the function that makes accepted connections of a port clients of the server."""
        options = self._options
        scheme = "http" if options.tls is None else "https"
        host = options.host or "127.0.0.1"
        self._url = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        about = json.dumps({"name": "jumpseat", "id": self._access.server_id}).encode()
        site = Site(
            host=options.host,
            origins=options.web_origins,
            tls=options.tls is not None,
            about=about,
            port=port,
            prove=self._prove,
        )
        return lambda peer: WebSocketNewcomer(
            site,
            partial(connect, peer),
            peer,
            admit=partial(admit, peer),
            admit_http=partial(admit_http, peer),
        )

    def _prove(self, login_id: str, nonce: str, origin: str) -> dict[str, str] | None:
        challenge = self._access.challenge(login_id, nonce, origin)
        return {"nonce": challenge.nonce, "proof": challenge.proof} if challenge is not None else None

    async def begin(self) -> None:
        """Make the page known to ``jumpseat web``, and print or open its address if the options say so."""
        await anyio.to_thread.run_sync(self._access.add_server, self._url)
        if self._options.page is None:
            return
        address = await anyio.to_thread.run_sync(self._access.page_address, self._url, os.getpid())
        print(f"The page of your sessions: {address}", flush=True)  # noqa: T201 - a message for people
        print("The address is valid once, for a minute; 'jumpseat web' makes another.", flush=True)  # noqa: T201
        if self._options.page == "open":
            await anyio.to_thread.run_sync(webbrowser.open, address, abandon_on_cancel=True)

    def end(self) -> None:
        """Remove the entry of the server."""
        self._access.remove_server(os.getpid())
