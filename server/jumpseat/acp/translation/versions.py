"""The differences between the versions of the protocol. All that is sent is made in the form of version 1. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol

from jumpseat.acp.translation.updates import Compaction, Step, Translator, Update
from jumpseat_protocol import events


class Follower(Protocol):
    """Follows one session for one editor, as :class:`Translator` does."""

    def steps(self, event: events.Event, *, lossy: bool = False) -> Iterator[Step]: ...

    def replay(self, payload: events.EventPayload | events.UnknownPayload) -> Iterator[Update | Compaction]: ...

    def end_replay(self) -> Iterable[Update]: ...

    def resumed(self) -> Iterable[Update]:
        """Return the updates after a session was opened again, with its history or without."""
        ...


class Version:
    """Version 1. Another version converts what it has in another form."""

    number = 1

    def follow(self, translator: Translator, running: Callable[[], bool], *, working: bool) -> Follower:
        """Return what turns the events of a session into steps.

        ``running`` returns whether the session runs a prompt or a command; ``working``: something runs in the
        session already, perhaps in the background.
        """
        del running, working
        return translator

    def update(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """Return a ``session/update``; ``None`` if the version has none for it."""
        return body

    def permission(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the params of ``session/request_permission``."""
        return params

    def opened(self, opened: dict[str, Any], commands: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Return the state of a session in the response that opens it, with its slash commands."""
        del commands
        return opened

    def status(self, status: str, running: bool = False, waiting: bool = False) -> dict[str, Any]:
        """Return the status of a session; an open one may be ``running``, and ``waiting`` for an answer."""
        del running, waiting
        return {"status": status}

    def options(self, options: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the options of a session."""
        return options


V1 = Version()
