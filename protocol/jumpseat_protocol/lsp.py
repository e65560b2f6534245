"""``session.lsp.*``: the language servers of a session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic import StrictBool

from jumpseat_protocol.limits import PathText
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method


class LspInitializeParams(SessionParams):
    """The folder whose ``lsp.json`` counts; by default, that of the session. ``force`` ends running servers."""

    working_directory: PathText | None = None
    git_root: PathText | None = None
    force: StrictBool = False
    """Whether running servers end first."""


METHODS: Final[Mapping[str, Method]] = {
    "session.lsp.initialize": Method(
        LspInitializeParams, None, "Look for the language servers of the session again."
    ),
}
