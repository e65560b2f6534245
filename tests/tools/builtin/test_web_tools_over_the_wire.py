"""``web_fetch`` and ``web_search`` over the real wire, and the size of the first request with all tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.support.events import tool_texts
from tests.support.model_server import ModelServer, json_reply, text_reply
from tests.support.provided import at, send_prompt, serving
from tests.support.server import READABLE, Wire, calls, running_server, scripted
from tests.support.skills import write_skill

pytestmark = pytest.mark.anyio

PRIVATE = "[tools.web_fetch]\nallow_private = true\n"
PAGE = text_reply("<title>T</title><p>Hello <a href='/x'>there</a>", content_type="text/html")


async def allowed(wire: Wire, script: dict[str, Any], **options: Any) -> str:
    session = await wire.create(script, **options)
    await wire.call("session.permissions.setApproveAll", {"sessionId": session, "enabled": True})
    return session


async def test_a_fetch_requires_approval_of_its_url_and_a_host_can_be_approved_for_the_session(
    tmp_path: Path,
) -> None:
    async with ModelServer(PAGE, PAGE) as site, running_server(tmp_path, config=PRIVATE) as server:
        wire = server.wire
        url, other = f"{site.url}/a?b=c", site.url.replace("127.0.0.1", "localhost")
        script = scripted(
            calls("web_fetch", url=url),
            calls("web_fetch", "call-2", url=f"{site.url}/again"),
            calls("web_fetch", "call-3", url=other),
            {"text": "ok"},
        )
        session = await wire.create(script, requestPermission=True)
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})

        async def answer(call_id: str, url: str, **decision: Any) -> None:
            def fits(message: dict[str, Any]) -> bool:
                event = message.get("params", {}).get("event", {})
                data = event.get("data", {})
                return (
                    event.get("type") == "permission.requested"
                    and data["permissionRequest"].get("toolCallId") == call_id
                )

            question = (await wire.until(fits, what=call_id))["params"]["event"]["data"]
            assert question["permissionRequest"] == {
                "kind": "url",
                "url": url,
                "intention": f"Fetch {url}",
                "toolCallId": call_id,
            }
            params = {"sessionId": session, "requestId": question["requestId"], "result": decision}
            await wire.call("session.permissions.handlePendingPermissionRequest", params)

        await answer("call-1", url, kind="approve-for-session")
        await answer("call-3", other, kind="reject", feedback="not there")
        await wire.event("session.idle", session=session, since=since)
        completions = [
            event["data"]
            for event in wire.events(session, since=since)
            if event["type"] == "tool.execution_complete"
        ]
        assert [completion["success"] for completion in completions] == [True, True, False]
        assert completions[0]["result"]["content"] == f"Contents of {url}:\n# T\n\nHello [there]({site.url}/x)"
        assert [request.path for request in site.requests] == ["/a?b=c", "/again"]


async def test_denied_and_private_urls_are_not_fetched(tmp_path: Path) -> None:
    async with ModelServer(PAGE) as site, running_server(tmp_path) as server:
        script = scripted(calls("web_fetch", url=site.url), {"text": "ok"})
        denied = tool_texts(await server.wire.prompt(await server.wire.create(script)))
        assert denied == ["Permission denied and could not request permission from user"]
        refused = tool_texts(await server.wire.prompt(await allowed(server.wire, script)))
        assert refused == [
            "The host '127.0.0.1' is not on the public internet, so it cannot be fetched. "
            "The operator can allow it."
        ]
        assert site.requests == []


async def test_a_search_is_offered_and_works_if_its_service_is_configured(tmp_path: Path) -> None:
    found = {"results": [{"title": "Tea", "url": "https://tea.example", "content": "Warm the pot."}]}
    async with ModelServer(json_reply(found)) as service:
        config = f'[services.tavily]\nbase_url = "{service.url}"\napi_key = "file:KEY"\n'
        (tmp_path / "key").write_text("tvly-very-secret\n")
        config = config.replace("KEY", str(tmp_path / "key"))
        async with running_server(tmp_path, config=config) as server:
            script = scripted(calls("web_search", query="tea"), {"text": "ok"})
            assert tool_texts(await server.wire.prompt(await allowed(server.wire, script))) == [
                "Tea\nhttps://tea.example\nWarm the pot."
            ]
            tools = (await server.wire.call("tools.list"))["tools"]
            assert {"web_fetch", "web_search"} <= {tool["name"] for tool in tools}
            assert "tvly-very-secret" not in json.dumps(server.wire.messages)
        assert service.requests[0].headers["authorization"] == "Bearer tvly-very-secret"


async def test_pages_are_fetched_by_a_service_if_configured(tmp_path: Path) -> None:
    read = {"code": 200, "data": {"url": "https://1.1.1.1/", "content": "# Read"}}
    async with ModelServer(json_reply(read)) as service:
        config = f'[services.jina]\nbase_url = "{service.url}"\n[tools.web_fetch]\nservice = "jina"\n'
        async with running_server(tmp_path, config=config, env={"JINA_API_KEY": "jina-key"}) as server:
            script = scripted(calls("web_fetch", url="https://1.1.1.1"), {"text": "ok"})
            assert tool_texts(await server.wire.prompt(await allowed(server.wire, script))) == [
                "Contents of https://1.1.1.1/:\n# Read"
            ]


async def test_the_first_request_stays_small_with_all_tools(tmp_path: Path) -> None:
    for number in range(99):
        write_skill(
            tmp_path / "skills", f"skill-{number:02}", front=f"description: {'How to do this and that. ' * 20}"
        )
    env = {"TAVILY_API_KEY": "k"}
    async with serving(tmp_path, env=env) as (server, provider):
        wire = server.wire
        facts = [calls("store_memory", str(number), fact=f"{number} {'fact ' * 50}") for number in range(9)]
        noting = await allowed(
            wire, scripted(*facts, {"text": "ok"}), workingDirectory=str(tmp_path), memory={"enabled": True}
        )
        await wire.prompt(noting)
        plain = await wire.create(at(provider), model="m", workingDirectory=str(tmp_path))
        request = await send_prompt(wire, provider, plain)
        names = [tool["function"]["name"] for tool in request.json["tools"]]
        assert {"web_fetch", "web_search", "sql", "task"} < set(names)
        assert not {"skill", "store_memory"} & set(names)
        assert len(request.body) < 8_500

        full = await wire.create(
            at(provider),
            model="m",
            workingDirectory=str(tmp_path),
            skillDirectories=[str(tmp_path / "skills")],
            memory={"enabled": True},
            requestUserInput=True,
        )
        request = await send_prompt(wire, provider, full)
        names = [tool["function"]["name"] for tool in request.json["tools"]]
        assert {"skill", "store_memory", "vote_memory", "ask_user"} < set(names)
        assert len(request.body) < 13 * 1024
        (skill,) = [tool["function"] for tool in request.json["tools"] if tool["function"]["name"] == "skill"]
        assert "- skill-00: How to do this and that." in skill["description"]
        assert len(skill["description"]) < 1_800
        assert skill["description"].endswith(" more")
        assert "<memories>" in request.json["messages"][0]["content"]


async def test_calling_a_model_over_http_imports_no_terminal_modules(tmp_path: Path) -> None:
    async with running_server(tmp_path, env={"PYTHONPROFILEIMPORTTIME": "1"}) as server:
        session = await server.wire.create({"type": "openai", "baseUrl": "http://127.0.0.1:1/v1"}, model="none")
        await server.wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await server.wire.event("session.idle", session=session)
    loaded = {
        line.rpartition("|")[2].strip() for line in server.stderr.splitlines() if line.startswith("import time")
    }
    assert "h11" in loaded
    assert not {name.partition(".")[0] for name in loaded} & {"rich", "pygments", "click", "prompt_toolkit"}


async def test_tools_that_are_not_called_import_no_heavy_modules(tmp_path: Path) -> None:
    async with running_server(tmp_path, config=READABLE) as server:
        session = await server.wire.create(scripted({"text": "hi"}))
        await server.wire.prompt(session)
        maps = anyio.Path(f"/proc/{server.process.pid}/maps")
        assert "_sqlite3" not in await maps.read_text()
        await server.wire.prompt(await server.wire.create(scripted(calls("sql", query="SELECT 1"), {"text": "hi"})))
        assert "_sqlite3" in await maps.read_text()
