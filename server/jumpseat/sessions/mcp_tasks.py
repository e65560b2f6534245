"""The rest of a run whose calls are tasks of MCP servers, in the process after the one that has made them."""

from __future__ import annotations

from jumpseat.agent.conversation.conversation import INTERRUPTED
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat_protocol.events import ToolError, ToolExecutionComplete


def follow_tasks(session: Session) -> None:
    """Continue a run, which waits for the results of the tasks. Other calls that had begun are not repeated.

    Calls of tools of clients are asked for again.
    """
    repeated = session.clients.tools()
    for call in session.conversation.open_calls():
        if call.id not in session.history.mcp_tasks and call.name not in repeated:
            error = ToolError(message=INTERRUPTED, code="failure")
            session.emit(ToolExecutionComplete(tool_call_id=call.id, success=False, error=error))
    session.send(Prompt("", continues=True, source="continuation"))
