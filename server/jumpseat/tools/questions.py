"""Questions to the person behind a client."""

from __future__ import annotations

import anyio

from jumpseat.agent.session import Session
from jumpseat.errors import ClientCallError
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import UserInputResponse


async def ask_user(
    session: Session, call_id: str, question: str, choices: list[str] | None, *, allow_freeform: bool
) -> UserInputResponse:
    """Ask the client that declared it can ask its user; any client may answer by the id of the event instead.

    Where the one that was asked goes away, the next one that can is asked. However the question ends, clients that
    show it are told.

    Raises:
        ClientCallError: no client can ask, or the one that was asked failed.
    """
    if session.clients.user_input_client() is None:
        raise ClientCallError("no attached client can ask its user")
    pending = session.clients.user_inputs.ask(question)
    completed = events.UserInputCompleted(request_id=pending.id)
    try:
        session.emit(
            events.UserInputRequested(
                request_id=pending.id,
                question=question,
                choices=choices,
                allow_freeform=allow_freeform,
                tool_call_id=call_id,
            )
        )
        failed: list[ClientCallError] = []
        async with anyio.create_task_group() as tasks:

            async def ask() -> None:
                while (client := session.clients.user_input_client()) is not None:
                    try:
                        answer = await client.ask_user(session.id, question, choices, allow_freeform=allow_freeform)
                    except ClientCallError as error:
                        failed.append(error)
                        if client in session.clients:
                            break
                    else:
                        session.clients.user_inputs.answer(pending.id, answer)
                        return
                tasks.cancel_scope.cancel()

            tasks.start_soon(ask)
            response = await pending.answer()
            tasks.cancel_scope.cancel()
            completed.answer, completed.was_freeform = response.answer, response.was_freeform
            return response
        raise failed[-1] if failed else ClientCallError("the question was withdrawn")
    finally:
        session.clients.user_inputs.close(pending)
        session.emit(completed)
