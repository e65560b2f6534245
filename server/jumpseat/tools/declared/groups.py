"""Groups of tools, and how tools and groups are named in a prompt.

::

    tools = ["lint", "format"]                    # a declaration with tools is a group
    prompt = "Use ${tools} on what you change."   # what @{name} becomes in a prompt
    system_prompt = "Lint before you format."     # for as long as the group has been named
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jumpseat.agent.conversation.mentions import mentions
from jumpseat.errors import ConfigError, validation_problems
from jumpseat.tools.declared.definition import Handler

GROUP_WORDS: Final = "the tools ${tools}"


class _Said(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str = ""
    description: str = ""
    tools: list[str] = Field(min_length=1)
    prompt: str = GROUP_WORDS
    system_prompt: Any = None


@dataclass(frozen=True, slots=True)
class Group:
    """Tools that are named together. ``tools`` are names of tools of any source."""

    name: str
    description: str
    tools: tuple[str, ...]
    prompt: str = GROUP_WORDS
    system_prompt: str | Handler | None = None

    def words(self, members: list[str]) -> str:
        """What a mention of the group becomes."""
        return self.prompt.replace("${tools}", ", ".join(f"`{name}`" for name in members))


def is_group(raw: Mapping[str, Any]) -> bool:
    """Whether a declaration is that of a group."""
    return "tools" in raw and "cmds" not in raw


def read_group(raw: Mapping[str, Any], *, where: str, name: str = "") -> Group:
    """Read the declaration of a group.

    Raises:
        ConfigError: something unknown or of the wrong form; the text says where.
    """
    try:
        said = _Said.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(f"{where}: {'; '.join(validation_problems(error))}") from None
    prompt = said.system_prompt
    if prompt is not None and not isinstance(prompt, str) and not callable(prompt):
        raise ConfigError(f"{where}.system_prompt: expected a text or a function")
    name = said.name or name
    if not name or mentions(f"@{{{name}}}") != [name]:
        raise ConfigError(f"{where}: {name!r} cannot be the name of a group")
    return Group(name, said.description, tuple(said.tools), said.prompt, cast("str | Handler | None", prompt))
