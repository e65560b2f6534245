"""``hooks.*``: the hooks in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import StrictBool

from jumpseat_protocol.limits import PathTexts
from jumpseat_protocol.wire import Method, WireModel


class HooksDiscoverParams(WireModel):
    """``project_paths`` are absolute folders of projects; without any, no project is looked at.

    ``hook_directories`` are further folders with hook files, whose ``origin`` is the user. ``exclude_host_hooks``
    leaves out the hooks of the user and of plugins.
    """

    project_paths: PathTexts | None = None
    """The folders of projects, as absolute paths."""
    hook_directories: PathTexts | None = None
    """Further folders of hook files."""
    exclude_host_hooks: StrictBool = False
    """Whether the user's own hooks are left out."""


class DiscoveredHook(WireModel):
    """A command that runs at the hook ``hook_type``; ``source`` is the path of its file.

    ``enabled`` is false if it does not run: nobody has agreed to its plugin or trusts its folder, or hooks in files
    are switched off. ``command`` and ``matcher``, a pattern for the names of tools, are additions of this server.
    """

    id: str
    """The id of the hook."""
    hook_type: str
    origin: Literal["user", "repository", "plugin"]
    """Whose hook it is."""
    source: str
    """The file of the hook."""
    project_path: str | None = None
    """The folder of the project."""
    enabled: StrictBool
    command: str
    """The command line."""
    matcher: str | None = None
    """The tools that it runs for."""


class HooksDiscoverResult(WireModel):
    """``warnings`` say why hooks do not run, ``errors`` which files or hooks are invalid."""

    hooks: list[DiscoveredHook]
    """The hooks."""
    warnings: list[str]
    """Why hooks do not run."""
    errors: list[str]
    """Which files or hooks are invalid."""


METHODS: Final[Mapping[str, Method]] = {
    "hooks.discover": Method(
        HooksDiscoverParams, HooksDiscoverResult, "Find hooks in projects, plugins and the home."
    ),
}
