"""The floor: a minimal server in Python that passes the bench.

The floor decodes frames, streams from the model with httpx2, and encodes frames. It validates and persists nothing
and keeps no state except the model's URL, so its time is that of Python, the event loop and httpx2. The times of
real servers are given as multiples of the floor's.
"""

from __future__ import annotations

import asyncio
import sys
import uuid
from typing import Any

import httpx2
import orjson


class Floor:
    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._http = httpx2.AsyncClient(
            timeout=None, limits=httpx2.Limits(max_connections=None, max_keepalive_connections=100)
        )
        self._base_urls: dict[str, str] = {}
        self._calls: dict[str, asyncio.Future[str]] = {}
        self._turns: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader) -> None:
        """Serve until the client closes its end."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.partition(b":")[2])
                self._handle(orjson.loads(await reader.readexactly(length)))
        except asyncio.IncompleteReadError:
            return

    def _handle(self, message: dict[str, Any]) -> None:
        params = message["params"]
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"], "result": {}}
        match message["method"]:
            case "connect" | "ping":
                pass
            case "session.create":
                self._base_urls[params["sessionId"]] = params["provider"]["baseUrl"]
            case "session.send":
                turn = asyncio.create_task(self._turn(params["sessionId"], params["prompt"]))
                self._turns.add(turn)
                turn.add_done_callback(self._turns.discard)
            case "session.tools.handlePendingToolCall":
                self._calls.pop(params["requestId"]).set_result(params["result"])
            case _:
                del answer["result"]
                answer["error"] = {"code": -32601, "message": "method not found"}
        self._send(answer)

    async def _turn(self, session_id: str, prompt: str) -> None:
        messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        while calls := await self._call_model(session_id, messages):
            messages.append({"role": "assistant", "content": None, "tool_calls": calls})
            waiting = [self._request_tool(session_id, call) for call in calls]
            for call, result in zip(calls, waiting, strict=True):
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": await result})
        self._send_event(session_id, "session.idle", {})

    async def _call_model(self, session_id: str, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Stream an answer and return its tool calls."""
        texts: list[str] = []
        calls: list[dict[str, Any]] = []
        url = f"{self._base_urls[session_id]}/chat/completions"
        request = {"model": "fake-model", "stream": True, "messages": messages}
        async with self._http.stream("POST", url, json=request) as response:
            async for line in response.aiter_lines():
                if not line.startswith("data: {"):
                    continue
                chunk = orjson.loads(line[6:])
                if not chunk["choices"]:
                    continue
                delta = chunk["choices"][0]["delta"]
                if text := delta.get("content"):
                    texts.append(text)
                    self._send_event(
                        session_id, "assistant.message_delta", {"messageId": "m", "deltaContent": text}
                    )
                for call in delta.get("tool_calls", ()):
                    if "id" in call:
                        calls.append(call)
                    else:
                        calls[call["index"]]["function"]["arguments"] += call["function"]["arguments"]
                await self._writer.drain()
        self._send_event(session_id, "assistant.message", {"messageId": "m", "content": "".join(texts)})
        return calls

    def _request_tool(self, session_id: str, call: dict[str, Any]) -> asyncio.Future[str]:
        request_id = str(uuid.uuid4())
        answer = self._calls[request_id] = asyncio.get_running_loop().create_future()
        data = {
            "requestId": request_id,
            "toolCallId": call["id"],
            "toolName": call["function"]["name"],
            "arguments": orjson.loads(call["function"]["arguments"]),
        }
        self._send_event(session_id, "external_tool.requested", data)
        return answer

    def _send_event(self, session_id: str, kind: str, data: dict[str, Any]) -> None:
        event = {"id": str(uuid.uuid4()), "type": kind, "data": data}
        params = {"sessionId": session_id, "event": event}
        self._send({"jsonrpc": "2.0", "method": "session.event", "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        body = orjson.dumps(message)
        self._writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))


async def main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout.buffer)
    await Floor(asyncio.StreamWriter(transport, protocol, None, loop)).serve(reader)


if __name__ == "__main__":
    asyncio.run(main())
