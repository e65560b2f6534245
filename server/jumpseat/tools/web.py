"""The interfaces behind the web tools: fetching pages and searching. ``services/`` implements them.

A fetcher, not the tool, checks every address before it connects to it.
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class Page(Struct, frozen=True):
    """A fetched page. ``url`` is its address after redirects, ``media_type`` is in lower case.

    ``text`` is decoded; an image has ``picture`` instead. ``redirected_to`` is an address on another site, which
    was not fetched, because permission was given for one host.
    """

    url: str
    media_type: str
    text: str = ""
    picture: bytes | None = None
    redirected_to: str | None = None


class Hit(Struct, frozen=True):
    """A result of a search; ``text`` is the excerpt of the page that answers the query."""

    title: str
    url: str
    text: str


class WebError(Exception):
    """Fetching or searching failed. The message is for the model and contains no secret."""


class Fetcher(Protocol):
    """Fetches pages."""

    async def fetch(self, url: str, *, raw: bool) -> Page:
        """Fetch the page at ``url``; ``raw`` asks for its source where a service would reformat it.

        Raises:
            WebError: the page cannot be fetched, or must not be.
        """
        ...


class Searcher(Protocol):
    """Searches the web."""

    @property
    def url(self) -> str:
        """Return the address that queries are sent to."""
        ...

    async def search(self, query: str, domains: list[str]) -> list[Hit]:
        """Return the best results, limited to ``domains`` unless the list is empty.

        Raises:
            WebError: the service failed, or its answer is invalid.
        """
        ...


class Web(Protocol):
    """The web, within the limits that the operator has configured."""

    def fetcher(self) -> Fetcher: ...

    def can_search(self) -> bool:
        """Return whether a search service is configured."""
        ...

    def searcher(self) -> Searcher:
        """Return the searcher; requires :meth:`can_search`."""
        ...
