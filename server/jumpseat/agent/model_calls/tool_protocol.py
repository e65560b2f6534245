"""Decide how a model calls tools: natively, or as XML in its text.

The user's setting decides, or else the known facts about the model. If a provider still rejects a request because
of its tools, the request is repeated with XML, and the provider remembered.
"""

from __future__ import annotations

from msgspec.structs import replace

from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import ModelInfo


def with_tool_protocol(resolved: ResolvedModel) -> ResolvedModel:
    """Wrap a model that does not take tools natively, so that it calls them as XML."""
    if not uses_xml(resolved.info):
        return resolved
    # Imported late: most models do not need it.
    from jumpseat.agent.model_calls.xml_tools.model import XmlToolModel

    return replace(resolved, model=XmlToolModel(resolved.model))


def uses_xml(info: ModelInfo) -> bool:
    """Return whether a model calls tools as XML in its text."""
    return info.tool_protocol == "xml" or (info.tool_protocol is None and info.tools is False)


def without_native_tools(resolved: ResolvedModel) -> ResolvedModel | None:
    """Return the model with XML tools, after its provider rejected native ones; ``None`` if that cannot help."""
    if resolved.info.tool_protocol is not None or resolved.info.tools is False:
        return None
    return replace(resolved, info=replace(resolved.info, tools=False))
