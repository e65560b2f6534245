"""A web service with a conversation for each user: ``POST /prompt`` streams the answer as server-sent events.

Start it with ``uvicorn service:app``. Put your own logins in the place of the table of users.
"""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from jumpseat_client import Client, ProviderConfig, RpcError, Session, approve_all, connect_stdio, tool
from jumpseat_protocol.events import MessageDelta

USERS = {"key-of-ada": "ada", "key-of-bob": "bob"}
ORDERS = {"ada": ["1042"], "bob": []}
MODEL = os.environ.get("MODEL", "gpt-5-mini")
PROVIDER = ProviderConfig(
    type="openai", base_url=os.environ.get("PROVIDER_URL"), api_key=os.environ.get("OPENAI_API_KEY")
)


class Conversations:
    """The sessions of all users, in one server process. They are stored, and go on after a restart."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._sessions: dict[str, Session] = {}
        self._locks: dict[str, anyio.Lock] = {}

    @asynccontextmanager
    async def of(self, user: str) -> AsyncIterator[Session]:
        """Yield the session of a user, to one request at a time."""
        async with self._locks.setdefault(user, anyio.Lock()):
            if user not in self._sessions:
                self._sessions[user] = await self._open(user)
            yield self._sessions[user]

    async def _open(self, user: str) -> Session:
        @tool
        async def list_orders() -> list[str]:
            """List the orders of the customer."""
            return ORDERS[user]

        session_id = f"shop-{user}"
        stored = any(session.session_id == session_id for session in await self._client.list_sessions())
        begin = self._client.resume_session if stored else self._client.create_session
        return await begin(
            session_id=session_id,
            model=MODEL,
            provider=PROVIDER,
            streaming=True,
            # The model has this tool only: neither files nor commands. So it needs no approval.
            tools=[list_orders],
            available_tools=["list_orders"],
            on_permission=approve_all,
        )


async def prompt(request: Request) -> Response:
    """Send a user's prompt, and stream the answer."""
    user = USERS.get(request.headers.get("authorization", "").removeprefix("Bearer "))
    if user is None:
        return JSONResponse({"error": "unknown key"}, status_code=401)
    text = (await request.json())["prompt"]

    async def answer() -> AsyncIterator[str]:
        async with request.app.state.conversations.of(user) as session:
            try:
                async for event in session.stream(text):
                    if isinstance(event.payload, MessageDelta):
                        yield f"data: {json.dumps(event.payload.delta_content)}\n\n"
            except RpcError as error:
                yield f"event: error\ndata: {json.dumps(str(error))}\n\n"

    return StreamingResponse(answer(), media_type="text/event-stream")


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """Run the server as long as the service runs."""
    async with connect_stdio() as client:
        app.state.conversations = Conversations(client)
        yield


app = Starlette(routes=[Route("/prompt", prompt, methods=["POST"])], lifespan=lifespan)
