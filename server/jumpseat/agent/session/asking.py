"""One question to the people behind the clients of a session, of which one answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from jumpseat.agent.client import Client
from jumpseat.agent.pending import Pending, PendingRequests
from jumpseat.agent.session.clients import Clients
from jumpseat.errors import ClientCallError

A = TypeVar("A")


async def first_answer(
    clients: Clients,
    requests: PendingRequests[str, A],
    pending: Pending[str, A],
    who: Callable[[], Client | None],
    ask: Callable[[Client], Awaitable[A]],
    *,
    has_listeners: Callable[[], bool] = lambda: False,
) -> A:
    """What the client that can be asked answers, or what somebody else does before it, by the id of the event.

    Where nobody can be asked any more, it is waited for as long as somebody ``has_listeners``: whoever knows that
    they do not any more has to settle the question.

    Raises:
        ClientCallError: nobody is left, or the one that was asked failed.
    """
    failed: list[ClientCallError] = []
    async with anyio.create_task_group() as tasks:

        async def ask_one_by_one() -> None:
            while (client := who()) is not None:
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
