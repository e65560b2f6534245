"""Put one question to the people behind a session's clients, and take one answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio

from jumpseat.agent.client import Client
from jumpseat.agent.pending import Pending, PendingRequests
from jumpseat.agent.session.clients import Clients
from jumpseat.errors import ClientCallError

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
