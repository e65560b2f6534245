"""The tools that look at the web, over what an operator has configured."""

from __future__ import annotations

from typing import Any

from jumpseat.tools.builtin.web_fetch import web_fetch
from jumpseat.tools.builtin.web_search import web_search
from jumpseat.tools.tool import BuiltinTool
from jumpseat.tools.web import Web


def web_tools(web: Web) -> tuple[BuiltinTool[Any], ...]:
    """``web_fetch``, and ``web_search`` where there is a service for it."""
    return (web_fetch(web), web_search(web)) if web.can_search() else (web_fetch(web),)
