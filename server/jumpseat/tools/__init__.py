"""The built-in tools. A tool is one file here and one row in :data:`BUILTIN_TOOLS`."""

from __future__ import annotations

from typing import Any, Final

from jumpseat.tools.builtin.ask_user import ASK_USER
from jumpseat.tools.builtin.bash import BASH
from jumpseat.tools.builtin.create import CREATE
from jumpseat.tools.builtin.edit import EDIT
from jumpseat.tools.builtin.exit_plan_mode import EXIT_PLAN_MODE
from jumpseat.tools.builtin.glob import GLOB
from jumpseat.tools.builtin.grep import GREP
from jumpseat.tools.builtin.list_bash import LIST_BASH
from jumpseat.tools.builtin.memory import STORE_MEMORY, VOTE_MEMORY
from jumpseat.tools.builtin.read_bash import READ_BASH
from jumpseat.tools.builtin.skills import SKILL
from jumpseat.tools.builtin.sql import SQL
from jumpseat.tools.builtin.stop_bash import STOP_BASH
from jumpseat.tools.builtin.view import VIEW
from jumpseat.tools.builtin.write_bash import WRITE_BASH
from jumpseat.tools.tool import BuiltinTool, Described

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
