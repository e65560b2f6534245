"""The meanings of the members of wire types, for the schema and the reference.

A member is described by the docstring below its field. What means the same in every type is described once, in
:data:`COMMON`. This module reads the source of the types, so only the generation of the schema needs it.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from types import ModuleType
from typing import Final

COMMON: Final[Mapping[str, str]] = {
    "agentDisplayName": "The name of the agent that people see.",
    "agentName": "The name of the agent.",
    "attachments": "Files and other content that belong to the prompt.",
    "baseUrl": "The address of the API.",
    "branch": "The branch that is checked out.",
    "cacheReadTokens": "The tokens of the input that the provider had in its cache.",
    "cacheWriteTokens": "The tokens of the input that the provider has put into its cache.",
    "canvasId": "The id of the canvas.",
    "clientName": "The name of the client's program.",
    "cursor": "The place to go on from.",
    "cwd": "The working directory, as an absolute path.",
    "description": "What it is or does.",
    "displayName": "The name that people see.",
    "displayPrompt": "What people see in place of the prompt.",
    "displayVersion": "The version that people see.",
    "durationMs": "How long it took, in milliseconds.",
    "enabled": "Whether it is switched on.",
    "env": "Environment variables.",
    "error": "What went wrong.",
    "eventId": "The id of the event.",
    "extensionId": "The id of the provider of the canvas.",
    "extensionName": "The name of the provider of the canvas.",
    "gitHubToken": "A token of GitHub. It is neither stored nor logged.",
    "gitRoot": "The root of the git repository, as an absolute path.",
    "headers": "HTTP headers.",
    "hookType": "The moment at which the hook runs, such as `preToolUse`.",
    "host": "The host, as a URL such as `https://github.com`.",
    "hostedTools": "Tools that the provider runs.",
    "inputSchema": "The JSON Schema of the input.",
    "inputTokens": "The tokens of the input.",
    "instanceId": "The id of the open canvas.",
    "interactionId": "The id that all events of one prompt have.",
    "kind": "The kind of this value, which decides about its other members.",
    "linesAdded": "How many lines were added.",
    "linesRemoved": "How many lines were removed.",
    "login": "The name of the user.",
    "messageId": "The id of the message.",
    "mimeType": "The type of the content, such as `image/png`.",
    "modelId": "The id of the model.",
    "outputTokens": "The tokens of the output.",
    "parentToolCallId": "The id of the call that started the sub-agent.",
    "providerData": "The provider's own form, as JSON. Only that provider can read it.",
    "reasoningEffort": "How much the model reasons before it answers, such as `low` or `high`.",
    "reasoningSummary": "How detailed the summary of the model's reasoning is.",
    "repository": "The repository as `owner/name`.",
    "requestId": "The id of the request, which its answer repeats.",
    "responseFormat": "The form that the last answer of a run must have.",
    "serverName": "The name of the MCP server.",
    "sessionId": "The id of the session.",
    "success": "Whether it worked.",
    "title": "The title that people see.",
    "tokenLimit": "The most tokens that the model takes.",
    "toolCallId": "The id of the tool call.",
    "toolChoice": "Whether the model may, must or must not call tools.",
    "toolName": "The name of the tool.",
    "totalTokens": "The tokens in all.",
    "traceparent": "The trace that this belongs to (W3C Trace Context).",
    "tracestate": "What vendors add to the trace (W3C Trace Context).",
    "turnId": "The id of the turn.",
    "type": "The type of this value, which decides about its other members.",
    "url": "The address.",
    "workingDirectory": "The folder that commands run in and relative paths start from.",
}
"""The meaning of members that mean the same in every type, by wire name."""


def field_docstrings(cls: type) -> dict[str, str]:
    """Return the docstrings of the fields of ``cls`` and its bases, by the name of the field.

    They are empty where the source is not installed.
    """
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if (module := sys.modules.get(base.__module__)) is not None:
            found |= _docstrings(module).get(base.__qualname__, {})
    return found


@cache
def _docstrings(module: ModuleType) -> Mapping[str, Mapping[str, str]]:
    """Return the docstrings of fields by class."""
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError):
        return {}
    return {node.name: dict(_of_class(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _of_class(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for statement, below in zip(node.body, node.body[1:], strict=False):
        match statement, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str() as text)):
                yield name, inspect.cleandoc(text)
            case _:
                pass
