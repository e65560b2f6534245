"""Groups of tools, which a prompt can mention.

::

    tools = ["lint", "format"]                    # a declaration with tools is a group
    prompt = "Use ${tools} on what you change."   # replaces @{name} in a prompt
    system_prompt = "Lint before you format."     # once the group has been named
    opts = {ignore_system_prompt = true}          # in place of the server's own instructions
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import Struct, field
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jumpseat.agent.conversation.attachments import mentions
from jumpseat.declared.names import placeholders_in
from jumpseat.errors import ConfigError
from jumpseat.parsing.validation import config_error
from jumpseat.tools.declared.definition import Handler

GROUP_WORDS: Final = "the tools ${tools}"


GENERAL_SECTIONS: Final = (
    *("preamble", "tone", "tool_efficiency", "code_change_rules", "guidelines"),
    *("runtime_instructions", "last_instructions"),
)
"""The server's own instructions. Its rules of safety, and facts about the session, are not among them."""

TOOL_SECTIONS: Final = ("tool_efficiency", "tool_instructions")
"""The server's own instructions on tools."""


class GroupOptions(BaseModel):
    """``opts`` of a group.

    ``collapse_tools`` tells clients to show the group instead of its tools. The others leave out parts of the
    system message once the group has been named: the server's general instructions, or its instructions on tools.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    collapse_tools: bool = True
    ignore_system_prompt: bool = False
    ignore_tool_system_prompt: bool = False


class _Declaration(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    name: str = ""
    description: str = ""
    tools: list[str] = Field(min_length=1)
    prompt: str = GROUP_WORDS
    system_prompt: Any = None
    opts: GroupOptions = Field(default_factory=GroupOptions)


class Group(Struct, frozen=True):
    """Tools under a common name. ``tools`` are names of tools of any source."""

    name: str
    description: str
    tools: tuple[str, ...]
    prompt: str = GROUP_WORDS
    system_prompt: str | Handler | None = None
    opts: GroupOptions = field(default_factory=GroupOptions)

    @property
    def omitted_sections(self) -> frozenset[str]:
        """Return the sections of the system message whose own text is left out once the group has been named."""
        general = GENERAL_SECTIONS if self.opts.ignore_system_prompt else ()
        return frozenset([*general, *(TOOL_SECTIONS if self.opts.ignore_tool_system_prompt else ())])

    def mention_text(self, members: list[str]) -> str:
        """Return the text that replaces a mention of the group."""
        return self.prompt.replace("${tools}", ", ".join(f"`{name}`" for name in members))


def is_group(raw: Mapping[str, Any]) -> bool:
    """Return whether a declaration is that of a group."""
    return "tools" in raw and "cmds" not in raw


def read_group(raw: Mapping[str, Any], *, where: str, name: str = "") -> Group:
    """Read the declaration of a group.

    Raises:
        ConfigError: an unknown key or an invalid value, at the place in the message.
    """
    try:
        declared = _Declaration.model_validate(raw)
    except ValidationError as error:
        raise config_error(where, error, _Declaration) from None
    prompt: Any = declared.system_prompt
    if prompt is not None and not isinstance(prompt, str) and not callable(prompt):
        raise ConfigError(f"{where}.system_prompt: expected a string or a function")
    for placeholder in placeholders_in(declared.prompt):
        if placeholder != "tools":
            raise ConfigError(f"{where}.prompt: unknown placeholder ${{{placeholder}}}, expected ${{tools}}")
    name = declared.name or name
    if not name or mentions(f"@{{{name}}}") != [name]:
        raise ConfigError(f"{where}: {name!r} is not a valid group name")
    return Group(
        name,
        declared.description,
        tuple(declared.tools),
        declared.prompt,
        cast("str | Handler | None", prompt),
        declared.opts,
    )
