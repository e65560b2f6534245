"""The tool choice for each model call of a run.

``auto`` and ``none`` apply to a whole run, ``required`` and ``specific`` to its first model call only: a model that
had to call a tool in every answer could never finish.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from jumpseat.agent.model import ToolChoice
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol.sessions import SpecificToolChoice, ToolChoiceConfig


def check_choice(config: ToolChoiceConfig | None, find_names: Callable[[], Collection[str]]) -> None:
    """Validate a tool choice against the names of the available tools, which are only asked for if it names one.

    Raises:
        InvalidRequestError: the choice names a tool that is not among the names.
    """
    if isinstance(config, SpecificToolChoice) and config.tool_name not in (names := find_names()):
        there = f"expected one of {', '.join(sorted(names))}" if names else "the session has no tools"
        raise InvalidRequestError(f"toolChoice names the unknown tool {config.tool_name!r}, {there}")


def choice_for_call(settings: SessionSettings, prompt: Prompt, names: Collection[str]) -> ToolChoice | None:
    """Return the choice for the next model call of ``prompt``; ``names`` are the tools on offer.

    Raises:
        InvalidRequestError: the choice names a tool that is no longer offered.
    """
    config = prompt.tool_choice or settings.options.tool_choice
    if config is None:
        return None
    if prompt.called and config.mode in ("required", "specific"):
        return None if config.parallel is None else ToolChoice(parallel=config.parallel)
    check_choice(config, lambda: names)
    name = config.tool_name if isinstance(config, SpecificToolChoice) else None
    return ToolChoice(config.mode, name, config.parallel)
