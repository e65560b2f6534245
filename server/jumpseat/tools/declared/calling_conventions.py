"""The names and positions by which the functions of a declared tool take their values, in all calling conventions.

``self`` or ``tool`` is the tool, ``tools`` its surroundings, then ``args``, ``input``, ``output_cb``, ``opts``,
``cmd``, ``stdout`` and so on. That covers all conventions, because their names do not clash. For a tool of 2024,
``self`` is what ``tools`` is for the others.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from jumpseat.declared import calling
from jumpseat.declared.calling import Bound, Orders

SYNONYMS: Final[Mapping[str, str]] = {
    "self": "tool",
    "agent": "tool",
    "arguments": "args",
    "output_handler": "output_cb",
    "callback": "output_cb",
    "cb": "output_cb",
    "meta": "opts",
    "options": "opts",
    "ctx": "opts",
    "output": "stdout",
    "error": "stderr",
}

HANDLER_ORDERS: Final[Mapping[str, Orders]] = {
    "env": {0: (), 1: ("tool",)},
    "build_cmd": {0: (), 1: ("args",)},
    "setup": {0: (), 1: ("tool",), 2: ("tool", "tools")},
    "on_exit": {0: (), 1: ("tool",), 2: ("tool", "tools")},
    "prompt_condition": {0: (), 1: ("tool",), 2: ("tool", "tools"), 3: ("tool", "tools", "config")},
    "requires_approval": {0: (), 1: ("tool",), 2: ("tool", "tools")},
    "approved": {0: (), 1: ("tool",), 2: ("tool", "cmd")},
    "prompt": {0: (), 1: ("tool",), 2: ("tool", "tools")},
    "cmd_string": {0: (), 1: ("tool",), 2: ("tool", "tools")},
    "success": {
        0: (),
        1: ("stdout",),
        2: ("tool", "stdout"),
        3: ("tool", "stdout", "opts"),
        4: ("tool", "tools", "cmd", "stdout"),
    },
    "error": {
        0: (),
        1: ("stderr",),
        2: ("tool", "stderr"),
        3: ("tool", "stderr", "opts"),
        4: ("tool", "tools", "cmd", "stderr"),
        5: ("tool", "tools", "cmd", "stderr", "stdout"),
    },
    "rejected": {0: (), 1: ("tool",), 2: ("tool", "opts"), 3: ("tool", "tools", "cmd")},
    "cancelled": {0: (), 1: ("tool",), 2: ("tool", "opts"), 3: ("tool", "tools", "cmd")},
}
"""Parameters of each handler by their number: in the current order, unless only older versions have that many."""

HANDLER_ORDERS_2024: Final[Mapping[str, Orders]] = {
    **HANDLER_ORDERS,
    "env": {0: (), 1: ("schema",)},
    "success": {0: (), 1: ("tool",), 2: ("tool", "cmd"), 3: ("tool", "cmd", "stdout")},
    "error": {0: (), 1: ("tool",), 2: ("tool", "cmd"), 3: ("tool", "cmd", "stderr")},
    "rejected": {0: (), 1: ("tool",), 2: ("tool", "cmd")},
}

FUNCTION_ORDERS: Final[Orders] = {
    0: (),
    1: ("args",),
    2: ("tools", "args"),
    3: ("tools", "args", "opts"),
    4: ("tool", "args", "input", "output_cb"),
}
FUNCTION_ORDERS_2024: Final[Orders] = {0: (), 1: ("tool",), 2: ("tool", "input")}


def bind(function: Callable[..., Any], values: Mapping[str, Any], orders: Orders) -> Bound:
    """Bind a function of a tool to the ``values`` that its parameters name, or else by position."""
    return calling.bind(function, values, orders, SYNONYMS)


def is_of_2024(cmds: list[Any], output: Mapping[str, Any]) -> bool:
    """Return whether the parameters of a tool's functions are those of the documentation of 2024.

    Functions in ``cmds`` take ``(self, input)``, ``success`` takes ``(self, cmd, output)``, and ``error`` takes
    ``(self, cmd, error)``.
    """
    if any(_names(cmd) == ["self", "input"] for cmd in cmds if callable(cmd)):
        return True
    pairs = (("success", "output"), ("error", "error"))
    return any(
        callable(function := output.get(kind)) and _names(function) == ["self", "cmd", last] for kind, last in pairs
    )


def _names(function: Callable[..., Any]) -> list[str]:
    try:
        return [name.strip("_") for name in inspect.signature(function).parameters]
    except (TypeError, ValueError):
        return []
