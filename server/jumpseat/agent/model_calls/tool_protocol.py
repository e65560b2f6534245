"""Which way a model calls tools: as its provider's wire has it, or as XML in its text.

The user decides, else what is known of the model, else the provider: one that refuses a request because of its
tools is asked again without them, and not asked that way any more.
"""

from __future__ import annotations

from dataclasses import replace

from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import ModelInfo


def able_to_call(resolved: ResolvedModel) -> ResolvedModel:
    """The model as it can be given tools."""
    if not uses_xml(resolved.info):
        return resolved
    # Loaded late: most models need none of it.
    from jumpseat.agent.model_calls.xml_tools.model import XmlToolModel

    return replace(resolved, model=XmlToolModel(resolved.model))


def uses_xml(info: ModelInfo) -> bool:
    """Whether a model calls tools in its text."""
    return info.tool_protocol == "xml" or (info.tool_protocol is None and info.tools is False)


def without_native_tools(resolved: ResolvedModel) -> ResolvedModel | None:
    """The model of a provider that has refused tools, as it can be asked after all; ``None`` where it cannot."""
    if resolved.info.tool_protocol is not None or resolved.info.tools is False:
        return None
    return replace(resolved, info=replace(resolved.info, tools=False))
