"""What the web tools are given: pages, and results of searches. Who gets them, and how, is not their business.

A fetcher judges every address before it goes there; a tool never does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Page:
    """What an address answered. ``url`` is where it was found in the end, ``media_type`` is lower-case.

    ``text`` is decoded; for pictures there is ``picture`` instead. A ``redirected_to`` leads to another site, which
    was not visited: that is for a call of its own.
    """

    url: str
    media_type: str
    text: str = ""
    picture: bytes | None = None
    redirected_to: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a search; ``text`` is what of the page answers the query."""

    title: str
    url: str
    text: str


class WebError(Exception):
    """A page or a search cannot be had. The text is for the model: it tells no secret."""


class Fetcher(Protocol):
    """Fetches pages."""

    async def fetch(self, url: str, *, raw: bool) -> Page:
        """The page at ``url``; ``raw`` asks for its source where a service would tidy it up.

        Raises:
            WebError: it cannot be had, or may not be visited.
        """
        ...


class Searcher(Protocol):
    """Searches the web."""

    @property
    def url(self) -> str:
        """Where queries are sent to."""
        ...

    async def search(self, query: str, domains: list[str]) -> list[Hit]:
        """The best results, only those of ``domains`` where some are named.

        Raises:
            WebError: the service does not answer as it should.
        """
        ...


class Web(Protocol):
    """The web, as the operator lets tools see it."""

    def fetcher(self) -> Fetcher: ...

    def can_search(self) -> bool:
        """Whether a service for it is configured."""
        ...

    def searcher(self) -> Searcher:
        """What searches, where :meth:`can_search` says so."""
        ...
