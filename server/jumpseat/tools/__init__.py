"""The built-in tools. A tool is one file here and one row in :data:`BUILTIN_TOOLS`."""

from __future__ import annotations

from typing import Any, Final

from jumpseat.tools.ask_user import ASK_USER
from jumpseat.tools.bash import BASH
from jumpseat.tools.create import CREATE
from jumpseat.tools.edit import EDIT
from jumpseat.tools.exit_plan_mode import EXIT_PLAN_MODE
from jumpseat.tools.glob import GLOB
from jumpseat.tools.grep import GREP
from jumpseat.tools.list_bash import LIST_BASH
from jumpseat.tools.memory import STORE_MEMORY, VOTE_MEMORY
from jumpseat.tools.read_bash import READ_BASH
from jumpseat.tools.skills import SKILL
from jumpseat.tools.sql import SQL
from jumpseat.tools.stop_bash import STOP_BASH
from jumpseat.tools.tool import BuiltinTool, Described
from jumpseat.tools.view import VIEW
from jumpseat.tools.write_bash import WRITE_BASH

__all__ = ["BUILTIN_NAMES", "BUILTIN_TOOLS", "SESSION_TOOLS"]

BUILTIN_TOOLS: Final[tuple[BuiltinTool[Any], ...]] = (
    BASH,
    READ_BASH,
    WRITE_BASH,
    STOP_BASH,
    LIST_BASH,
    VIEW,
    CREATE,
    EDIT,
    GREP,
    GLOB,
    ASK_USER,
)

SESSION_TOOLS: Final[tuple[Described[Any], ...]] = (SQL, SKILL, STORE_MEMORY, VOTE_MEMORY, EXIT_PLAN_MODE)
"""Those that belong to one session, and are bound when it has what they need."""

BUILTIN_NAMES: Final = frozenset(tool.name for tool in (*BUILTIN_TOOLS, *SESSION_TOOLS)) | {
    "web_fetch",
    "web_search",
}
"""What no declared tool may be called unsaid: also tools that belong to one session, or need a setting."""
