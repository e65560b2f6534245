"""Tell the tool calls of one session's agents apart: many providers number the calls of each conversation."""

from __future__ import annotations

from msgspec.structs import replace

from jumpseat.agent.blocks import AssistantMessage, ToolUseBlock
from jumpseat.agent.model import Completed
from jumpseat.agent.session.session import Session


def distinguish_calls(session: Session, completed: Completed) -> Completed:
    """Rename the calls in an answer whose ids another agent of the session has used."""
    calls = completed.message.tool_uses()
    ids = {call.id: distinct_id(session, call.id) for call in calls}
    if all(old == new for old, new in ids.items()):
        return completed
    blocks = [
        replace(block, id=ids[block.id]) if isinstance(block, ToolUseBlock) else block
        for block in completed.message.blocks
    ]
    return replace(completed, message=AssistantMessage(blocks))


def distinct_id(session: Session, call_id: str) -> str:
    """Return the id of a call in events: another one, if another agent of the session has used it."""
    owners = session.root.call_owners
    agent = session.identity.id if session.identity is not None else ""
    distinct, count = call_id, 1
    while (owner := owners.get(distinct)) != agent:
        if owner is None and not (agent and session.root.history.conversation.has_call(distinct)):
            owners[distinct] = agent
            break
        count += 1
        distinct = f"{call_id}_{count}"
    return distinct
