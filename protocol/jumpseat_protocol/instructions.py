"""``instructions.*`` and ``session.instructions.*``: instruction files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field, StrictBool

from jumpseat_protocol.limits import PathTexts
from jumpseat_protocol.sessions import SessionParams
from jumpseat_protocol.wire import Method, WireModel


class InstructionSourcesResult(WireModel):
    """``sources``: ``{id, label, sourcePath, content, type, location, projectPath?}`` each."""

    sources: list[dict[str, Any]]
    """The files of instructions with their texts."""


class InstructionsDiscoverParams(WireModel):
    """``exclude_host_instructions`` excludes the user's own instructions."""

    project_paths: PathTexts = Field(default_factory=list)
    """The folders of projects, as absolute paths."""
    exclude_host_instructions: StrictBool = False
    """Whether the user's own instructions are left out."""


class InstructionDiscoveryPath(WireModel):
    """A path that is searched for instructions. ``preferred_for_creation`` marks one path of each project."""

    path: str
    """The file or folder."""
    location: Literal["user", "repository", "working-directory", "plugin"]
    """Whose instructions it holds."""
    kind: Literal["file", "directory"]
    preferred_for_creation: StrictBool
    """Whether new instructions belong there."""
    project_path: str | None = None
    """The folder of the project."""


class InstructionPathsResult(WireModel):
    paths: list[InstructionDiscoveryPath]
    """The files and folders."""


METHODS: Final[Mapping[str, Method]] = {
    "instructions.discover": Method(
        InstructionsDiscoverParams, InstructionSourcesResult, "Find files of instructions in projects and the home."
    ),
    "instructions.getDiscoveryPaths": Method(
        InstructionsDiscoverParams, InstructionPathsResult, "List the places that are searched for instructions."
    ),
    "session.instructions.getSources": Method(
        SessionParams, InstructionSourcesResult, "Return the instructions of the session, with their files."
    ),
    "session.instructions.reload": Method(SessionParams, InstructionSourcesResult, "Read the instructions again."),
}
