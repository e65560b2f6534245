"""OpenTelemetry: traces and metrics in a file and at a collector, and trace context in and out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import anyio
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from jumpseat.system.installation import how_to_add
from tests.support.model_server import ModelServer, json_reply
from tests.support.server import JsonObject, Wire, calls, running_server, scripted

pytestmark = pytest.mark.anyio

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = f"00-{TRACE}-b7ad6b7169203331-01"

GRPC = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}

TOOL: JsonObject = {
    "name": "lookup",
    "description": "Looks something up.",
    "parameters": {"type": "object", "properties": {"word": {"type": "string"}}},
}


def to_file(path: Path, **more: str) -> dict[str, str]:
    """Return the variables with which the SDKs ask for telemetry in a file."""
    return {"COPILOT_OTEL_EXPORTER_TYPE": "file", "COPILOT_OTEL_FILE_EXPORTER_PATH": str(path), **more}


def read(path: Path, kind: str) -> list[JsonObject]:
    entries = [json.loads(line) for line in path.read_text().splitlines()]
    return [entry for entry in entries if entry["type"] == kind]


def by_name(spans: list[JsonObject], name: str) -> JsonObject:
    (span,) = [span for span in spans if span["name"] == name]
    return span


async def answer_tool(wire: Wire, session: str) -> JsonObject:
    """Answer the next call of the client's tool, and return its event."""
    asked = await wire.event("external_tool.requested", session=session)
    await wire.call(
        "session.tools.handlePendingToolCall",
        {"sessionId": session, "requestId": asked["data"]["requestId"], "result": "found it"},
    )
    return asked


async def run_prompt(wire: Wire, **params: Any) -> tuple[str, JsonObject]:
    """Run a prompt with a call of a client's tool that needs permission; return the session and the call."""
    turns = (
        {**calls("lookup", word="x"), "usage": {"input": 10, "output": 2}},
        {"text": "All done", "usage": {"input": 20, "output": 3}},
    )
    session = await wire.create(scripted(*turns), tools=[TOOL], requestPermission=True, streaming=True)
    since = len(wire.messages)
    await wire.call("session.send", {"sessionId": session, "prompt": "find x", **params})
    asked = await wire.event("permission.requested", session=session)
    await wire.call(
        "session.permissions.handlePendingPermissionRequest",
        {"sessionId": session, "requestId": asked["data"]["requestId"], "result": {"kind": "approve-once"}},
    )
    call = await answer_tool(wire, session)
    await wire.event("session.idle", session=session, since=since)
    return session, call


async def test_a_prompt_is_one_trace_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    env = to_file(
        path, COPILOT_OTEL_SOURCE_NAME="my-source", OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true"
    )
    async with running_server(tmp_path, env=env) as server:
        session, call = await run_prompt(server.wire, traceparent=PARENT, tracestate="vendor=1")

    spans = read(path, "span")
    agent = by_name(spans, "invoke_agent")
    chats = [span for span in spans if span["attributes"].get("gen_ai.operation.name") == "chat"]
    tool = by_name(spans, "execute_tool lookup")
    permission = by_name(spans, "permission")
    external = by_name(spans, "external_tool lookup")
    assert {span["traceId"] for span in spans} == {TRACE}
    assert agent["parentSpanId"] == "b7ad6b7169203331"
    assert [chat["parentSpanId"] for chat in chats] == [agent["spanId"]] * 2
    assert tool["parentSpanId"] == agent["spanId"]
    assert permission["parentSpanId"] == external["parentSpanId"] == tool["spanId"]
    assert {span["instrumentationScope"]["name"] for span in spans} == {"my-source"}
    assert {span["status"]["code"] for span in spans} == {0}
    attributes = agent["attributes"]
    assert attributes["gen_ai.conversation.id"] == session
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (30, 5)
    assert attributes["github.copilot.turn_count"] == 2
    assert "find x" in chats[0]["attributes"]["gen_ai.input.messages"]
    assert json.loads(chats[1]["attributes"]["gen_ai.input.messages"]) == [
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "call-1", "response": "found it"}]}
    ]
    assert "All done" in chats[1]["attributes"]["gen_ai.output.messages"]
    assert chats[1]["attributes"]["gen_ai.response.finish_reasons"] == ["stop"]
    assert tool["attributes"]["gen_ai.tool.call.arguments"] == '{"word":"x"}'
    assert tool["attributes"]["gen_ai.tool.call.result"] == "found it"
    assert permission["attributes"]["github.copilot.permission.result"] == "approved"
    # The client can continue the trace.
    assert call["data"]["traceparent"] == f"00-{TRACE}-{external['spanId']}-01"
    assert call["data"]["tracestate"] == "vendor=1"
    metrics = {metric["name"]: metric for metric in read(path, "metric")}
    (duration,) = metrics["gen_ai.client.operation.duration"]["dataPoints"]
    assert duration["value"]["count"] == 2
    assert metrics["github.copilot.agent.turn.count"]["dataPoints"][0]["value"] == 2


async def test_without_capture_no_content_is_exported_and_each_prompt_has_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    async with running_server(tmp_path, env=to_file(path)) as server:
        session = await server.wire.create(
            scripted({"text": "secret answer"}, {"text": "again"}), traceparent=PARENT
        )
        await server.wire.prompt(session, "secret question")
        await server.wire.prompt(session, "another", traceparent="nonsense")

    assert "secret" not in path.read_text()
    agents = [span for span in read(path, "span") if span["name"] == "invoke_agent"]
    assert len({span["traceId"] for span in agents} | {TRACE}) == 3
    assert all("parentSpanId" not in span for span in agents)
    # The trace in which the session was opened is linked.
    assert agents[0]["links"] == [{"traceId": TRACE, "spanId": "b7ad6b7169203331"}]


async def test_failures_end_their_spans_with_an_error(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    config = "[retry]\nattempts = 1\n"
    async with (
        ModelServer(json_reply({"error": {"message": "no"}}, status=401)) as provider,
        running_server(tmp_path, env=to_file(path), config=config) as server,
    ):
        session = await server.wire.create(
            {"type": "openai", "baseUrl": f"{provider.url}/v1", "apiKey": "sk-wrong-key"}, model="m"
        )
        await server.wire.prompt(session)

    spans = read(path, "span")
    assert {span["name"]: span["attributes"]["error.type"] for span in spans} == {
        "chat m": "authentication",
        "invoke_agent": "authentication",
    }
    assert {span["status"]["code"] for span in spans} == {2}


async def test_an_aborted_prompt_ends_all_its_spans(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    async with running_server(tmp_path, env=to_file(path)) as server:
        wire = server.wire
        session = await wire.create(scripted(calls("lookup", word="x")), tools=[TOOL], requestPermission=True)
        since = len(wire.messages)
        await wire.call("session.send", {"sessionId": session, "prompt": "go"})
        await wire.event("permission.requested", session=session)
        await wire.call("session.abort", {"sessionId": session})
        await wire.event("session.idle", session=session, since=since)

    names = sorted(span["name"].split()[0] for span in read(path, "span"))
    assert names == ["chat", "execute_tool", "invoke_agent", "permission"]


@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
async def test_a_collector_receives_traces_and_metrics(tmp_path: Path, protocol: str) -> None:
    async with ModelServer(answer=lambda _request: json_reply({})) as collector:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_PROTOCOL": protocol}
        async with running_server(tmp_path, env=env) as server:
            session = await server.wire.create(scripted({"text": "hi"}))
            await server.wire.prompt(session)

    sent = {request.path: request for request in collector.requests}
    assert sorted(sent) == ["/v1/metrics", "/v1/traces"]
    body = sent["/v1/traces"].body
    if protocol == "http/json":
        assert sent["/v1/traces"].headers["content-type"] == "application/json"
        (resource,) = json.loads(body)["resourceSpans"]
        spans = resource["scopeSpans"][0]["spans"]
        assert all(len(span["traceId"]) == 32 and len(span["spanId"]) == 16 for span in spans)
        names = [span["name"] for span in spans]
    else:
        (found,) = ExportTraceServiceRequest.FromString(body).resource_spans
        names = [span.name for span in found.scope_spans[0].spans]
    assert sorted(name.split()[0] for name in names) == ["chat", "invoke_agent"]


async def test_shutdown_exports_everything_before_it_is_answered(tmp_path: Path) -> None:
    path = tmp_path / "telemetry.jsonl"
    async with running_server(tmp_path, env=to_file(path)) as server:
        session = await server.wire.create(scripted({"text": "hi"}))
        await server.wire.prompt(session)
        await server.wire.call("runtime.shutdown", {})
        assert read(path, "metric")


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (
            {"COPILOT_OTEL_EXPORTER_TYPE": "kafka"},
            "COPILOT_OTEL_EXPORTER_TYPE is 'kafka', expected file or otlp-http",
        ),
        ({"COPILOT_OTEL_EXPORTER_TYPE": "file"}, "COPILOT_OTEL_FILE_EXPORTER_PATH must name the file"),
        (
            {"COPILOT_OTEL_ENABLED": "true", **GRPC},
            "OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc', expected http/json or http/protobuf",
        ),
        (to_file(Path("/no/such/folder/file.jsonl")), "cannot write telemetry to '/no/such/folder/file.jsonl'"),
    ],
)
async def test_invalid_settings_are_refused(tmp_path: Path, env: dict[str, str], message: str) -> None:
    async with running_server(tmp_path, handshake=False, env=env) as server:
        server.expect_exit = 1
        await server.wire.ended.wait()
    assert message in server.stderr


async def test_variables_for_all_programs_stop_no_server_that_cannot_export_as_they_say(tmp_path: Path) -> None:
    async with running_server(tmp_path, env=GRPC) as server:
        await server.wire.prompt(await server.wire.create(scripted({"text": "hi"})))
    assert "WARNING no telemetry: OTEL_EXPORTER_OTLP_PROTOCOL is 'grpc'" in server.stderr

    found = await without_the_library(tmp_path, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"})
    assert found.returncode == 0
    assert "WARNING no telemetry: " in found.stderr.decode()
    assert how_to_add("otel") in found.stderr.decode()


async def without_the_library(home: Path, env: dict[str, str]) -> CompletedProcess[bytes]:
    """Run a server that is asked nothing, as if OpenTelemetry were not installed."""
    code = (
        "import sys; sys.modules['opentelemetry'] = None; sys.argv[1:] = ['--stdio'];"
        " from jumpseat.__main__ import main; main()"
    )
    env = {**env, "PATH": os.environ["PATH"], "COPILOT_HOME": str(home)}
    return await anyio.run_process([sys.executable, "-c", code], env=env, check=False, stdin=subprocess.DEVNULL)


async def test_without_the_library_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    found = await without_the_library(tmp_path, to_file(tmp_path / "t"))

    assert found.returncode == 0
    assert (
        "WARNING no telemetry: telemetry is asked for (COPILOT_OTEL_EXPORTER_TYPE), but OpenTelemetry is not"
        f" installed: {how_to_add('otel')}\n"
    ) in found.stderr.decode()
