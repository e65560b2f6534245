"""Put one question to the people behind a session's clients, and take one answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from jumpseat.agent.client import Client
from jumpseat.agent.clock import new_id
from jumpseat.agent.pending import Pending, PendingRequests
from jumpseat.agent.session.clients import Clients
from jumpseat.agent.session.session import Session
from jumpseat.errors import ClientCallError
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import ExitPlanModeParams, ExitPlanModeResponse, UserInputResponse

Q = TypeVar("Q")
A = TypeVar("A")


async def first_answer(
    clients: Clients,
    requests: PendingRequests[Q, A],
    pending: Pending[Q, A],
    find_client: Callable[[], Client | None],
    ask: Callable[[Client], Awaitable[A]],
    *,
    has_listeners: Callable[[], bool] = lambda: False,
) -> A:
    """Return the first answer to ``pending``: from the client that is asked, or from any client by the event's id.

    ``find_client`` returns the client to ask, or ``None``. If that client disconnects, the next one is asked. If no
    answer can come from a client that is asked, the question stays open only if ``has_listeners`` returns true:
    whoever notices that the listeners are gone has to settle it.

    Raises:
        ClientCallError: no client can answer, or the client that was asked failed.
    """
    failed: list[ClientCallError] = []
    async with anyio.create_task_group() as tasks:

        async def ask_one_by_one() -> None:
            while (client := find_client()) is not None:
                try:
                    answer = await ask(client)
                except ClientCallError as error:
                    failed.append(error)
                    if client in clients:
                        break
                else:
                    requests.answer(pending.id, answer)
                    return
            if not has_listeners():
                tasks.cancel_scope.cancel()

        tasks.start_soon(ask_one_by_one)
        response = await pending.answer()
        tasks.cancel_scope.cancel()
        return response
    raise failed[-1] if failed else ClientCallError("the question was withdrawn")


async def ask_user(
    session: Session, call_id: str, question: str, choices: list[str] | None, *, allow_freeform: bool
) -> UserInputResponse:
    """Ask the user through a client that can; any client may answer instead, by the id of the event.

    If that client disconnects, the next one that can is asked. ``user_input.completed`` follows in every case.

    Raises:
        ClientCallError: no attached client can ask its user, or the client failed to.
    """
    clients = session.clients
    if clients.user_input_client() is None:
        raise ClientCallError("no attached client can ask its user")
    requested = events.UserInputRequested(
        request_id=new_id(),
        question=question,
        choices=choices,
        allow_freeform=allow_freeform,
        tool_call_id=call_id,
    )
    pending = clients.user_inputs.ask(requested, requested.request_id)
    completed = events.UserInputCompleted(request_id=pending.id)
    try:
        session.emit(requested)
        response = await first_answer(
            clients,
            clients.user_inputs,
            pending,
            clients.user_input_client,
            lambda client: client.ask_user(session.id, question, choices, allow_freeform=allow_freeform),
        )
        completed.answer, completed.was_freeform = response.answer, response.was_freeform
        return response
    finally:
        clients.user_inputs.close(pending)
        session.emit(completed)


async def ask_about_plan(session: Session, params: ExitPlanModeParams) -> ExitPlanModeResponse:
    """Ask the user to approve a plan, in the manner of :func:`ask_user`.

    Raises:
        ClientCallError: no attached client can show a plan, or the client failed to.
    """
    clients = session.clients
    if clients.plan_client() is None:
        raise ClientCallError("no attached client can show a plan")
    requested = events.ExitPlanModeRequested(
        request_id=new_id(),
        summary=params.summary,
        plan_content=params.plan_content,
        actions=params.actions,
        recommended_action=params.recommended_action,
    )
    pending = clients.plans.ask(requested, requested.request_id)
    completed = events.ExitPlanModeCompleted(request_id=pending.id)
    try:
        session.emit(requested)
        response = await first_answer(
            clients, clients.plans, pending, clients.plan_client, lambda client: client.exit_plan_mode(params)
        )
        completed.approved, completed.selected_action = response.approved, response.selected_action
        completed.auto_approve_edits, completed.feedback = response.auto_approve_edits, response.feedback
        return response
    finally:
        clients.plans.close(pending)
        session.emit(completed)
