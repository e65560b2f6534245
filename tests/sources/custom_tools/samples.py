"""The code samples of the document "Custom Tools", translated from TypeScript for the official Python SDK.

Each sample stands below a comment with its heading and its first line in the document. Run as a program, this
module creates a session with all tools, sends one prompt and prints the finished tool calls as JSON. It runs in the
virtual environment of the SDK and imports no code of jumpseat.
"""
# pyright: basic, reportMissingImports=false
# The SDK lives in a virtual environment of its own, where the type checker does not look.

import asyncio
import base64
import json
import os
import sys
import time
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Literal

from copilot import CopilotClient, RuntimeConnection, define_tool
from copilot.rpc import PermissionDecisionApproveOnce
from copilot.session import MCPHTTPServerConfig, MCPStdioServerConfig
from copilot.tools import Tool, ToolBinaryResult, ToolInvocation, ToolResult
from pydantic import BaseModel, Field

# --- what the samples call: the application around them ---


async def do_something(arg1, arg2):
    return f"{arg1}: {arg2}"


async def fetch_weather(city, units):
    return SimpleNamespace(temp=18, condition=f"rain in {units}")


async def generate_chart(data):
    return b"\x89PNG\r\n\x1a\n" + data.encode()


async def risky_operation(args):
    raise ValueError(f"no such operation: {args.name}")


async def search_users(term, limit):
    if term == "broken":
        raise OSError("the database is locked")
    found = [SimpleNamespace(name="John Doe", email="john@example.com")]
    return found[:limit] if term == "John" else []


sent = []
db = SimpleNamespace(users=SimpleNamespace(search=search_users))
users = {123: SimpleNamespace(name="John Doe", email="john@example.com")}


# --- Basic Tool Definition, line 32: a schema written by hand ---


async def my_handler(invocation: ToolInvocation) -> ToolResult:
    args = invocation.arguments
    # Your implementation
    result = await do_something(args["arg1"], args.get("arg2"))
    return ToolResult(text_result_for_llm=result)


my_tool = Tool(
    name="tool_name",
    description="Clear description of what the tool does",
    parameters={
        "type": "object",
        "properties": {
            "arg1": {"type": "string", "description": "What this arg is for"},
            "arg2": {"type": "number", "description": "Another parameter"},
        },
        "required": ["arg1"],
    },
    handler=my_handler,
)


# --- Type-Safe Tools with Zod, line 57: with pydantic ---


class GetWeather(BaseModel):
    city: str = Field(description="The city name")
    units: Literal["celsius", "fahrenheit"] | None = None


@define_tool("get_weather", description="Get current weather for a city")
async def get_weather(args: GetWeather):
    # args is fully typed
    weather = await fetch_weather(args.city, args.units)
    return {
        "city": args.city,
        "temperature": weather.temp,
        "condition": weather.condition,
    }


# --- Handler Patterns ---


class NoArguments(BaseModel):
    pass


# Simple String Return, line 82
@define_tool("simple_string", description="Return a string")
async def simple_string(args: NoArguments):
    return "Operation completed successfully"


# Structured Object Return, line 89
@define_tool("structured_object", description="Return an object")
async def structured_object(args: NoArguments):
    return {
        "status": "success",
        "data": {"id": 123, "name": "Result"},
    }


# Advanced Result with Metadata, line 99
@define_tool("advanced_result", description="Return a result with metadata")
async def advanced_result(args: NoArguments):
    return ToolResult(
        text_result_for_llm="Processed 5 records successfully",
        result_type="success",
        tool_telemetry={
            "recordsProcessed": 5,
            "duration": 120,
        },
        session_log="Detailed logs for debugging (not sent to AI)",
    )


class ChartData(BaseModel):
    data: str


# Binary Results (Images, Files), line 114
@define_tool("binary_result", description="Return an image")
async def binary_result(args: ChartData):
    image_buffer = await generate_chart(args.data)
    return ToolResult(
        text_result_for_llm="Chart generated successfully",
        binary_results_for_llm=[
            ToolBinaryResult(
                data=base64.b64encode(image_buffer).decode(),
                mime_type="image/png",
                type="image",
                description="Sales chart for Q4",
            )
        ],
    )


# Handler Context, line 133
@define_tool("handler_context", description="Describe the invocation")
async def handler_context(args: NoArguments, invocation: ToolInvocation):
    # invocation.session_id - Current session ID
    # invocation.tool_call_id - Unique ID for this tool call
    # invocation.tool_name - Name of the tool being called
    result = f"Tool {invocation.tool_name} called in session {invocation.session_id}"
    print(result, file=sys.stderr)
    return result


# --- Real-World Example: Database Query Tool, line 155 ---


class QueryUsers(BaseModel):
    searchTerm: str = Field(description="Name or email to search for")  # noqa: N815 - as in the document
    limit: int = 10


@define_tool("query_users", description="Search users in the database by name or email")
async def query_users(args: QueryUsers):
    try:
        found = await db.users.search(args.searchTerm, args.limit)
        listed = ", ".join(f"{u.name} ({u.email})" for u in found)
        return ToolResult(
            text_result_for_llm=f'Found {len(found)} users matching "{args.searchTerm}": {listed}',
            tool_telemetry={
                "resultCount": len(found),
                "searchTerm": args.searchTerm,
            },
        )
    except Exception as error:
        return ToolResult(
            text_result_for_llm=f"Error searching users: {error}",
            result_type="failure",
            error=str(error),
        )


# --- Error Handling, line 217 ---


class RiskyOperation(BaseModel):
    name: str


@define_tool("risky", description="Run a risky operation")
async def risky(args: RiskyOperation):
    try:
        result = await risky_operation(args)
        return result
    except Exception as error:
        return ToolResult(
            text_result_for_llm=f"Operation failed: {error}",
            result_type="failure",
            error=str(error),
            session_log=f"{type(error).__name__} in risky",  # private debug info
        )


# --- Best Practices ---


# 1. Clear Descriptions, line 236, and 2. Detailed Parameter Descriptions, line 245
class GetForecast(BaseModel):
    city: str = Field(default="", description="The city name (e.g., 'Seattle', 'Tokyo')")
    includeHourly: bool | None = Field(  # noqa: N815 - as in the document
        default=None, description="Whether to include hourly forecast"
    )


# 3. Return Useful Context, line 253, 4. Handle Edge Cases, line 262, and 5. Use Tool Telemetry, line 273
@define_tool("get_forecast", description="Get the current weather forecast for a specific city")
async def get_forecast(args: GetForecast):
    start_time = time.monotonic()
    if not args.city:
        return ToolResult(text_result_for_llm="City name is required", result_type="failure")
    results = [SimpleNamespace(summary="rain")] if args.city == "Seattle" else []
    if len(results) == 0:
        return f'No results found for "{args.city}"'
    return ToolResult(
        text_result_for_llm=f"Found {len(results)} results: {', '.join(r.summary for r in results)}",
        tool_telemetry={
            "duration": time.monotonic() - start_time,
            "recordsProcessed": len(results),
            "apiCalls": 1,
        },
    )


# --- Multiple Tools Example, line 314 ---


class GetUser(BaseModel):
    userId: int  # noqa: N815 - as in the document


class SendNotification(BaseModel):
    userId: int  # noqa: N815 - as in the document
    message: str


class DateRange(BaseModel):
    start: str
    end: str


class CalculateAnalytics(BaseModel):
    userId: int  # noqa: N815 - as in the document
    dateRange: DateRange  # noqa: N815 - as in the document


@define_tool("get_user", description="Get user details by ID")
async def get_user(args: GetUser):
    user = users[args.userId]
    return f"User: {user.name}, Email: {user.email}"


@define_tool("send_notification", description="Send a notification to a user")
async def send_notification(args: SendNotification):
    sent.append((args.userId, args.message))
    return "Notification sent successfully"


@define_tool("calculate_analytics", description="Calculate user engagement analytics")
async def calculate_analytics(args: CalculateAnalytics):
    stats = SimpleNamespace(sessions=3, duration=42)
    return f"User engagement: {stats.sessions} sessions, {stats.duration}min total"


# --- Implementation in Caco, line 435 ---


@define_tool("get_time", description="Get the current date and time")
def get_time():
    return datetime.now(UTC).isoformat()


class SearchFiles(BaseModel):
    pattern: str = Field(description="Glob pattern to match")
    maxResults: int = 10  # noqa: N815 - as in the document


@define_tool("search_files", description="Search for files in the workspace")
async def search_files(args: SearchFiles):
    # Implementation
    return f"Found {args.maxResults} files"


# --- Error Handling (Security Note), line 519: the SDK hides the details of an exception ---


@define_tool("fails", description="Raise an exception")
async def fails(args: NoArguments):
    raise RuntimeError("the password is hunter2")


# --- Internal Types, line 487, and MCP Server Config Types, line 411: the same members under Python's names ---


def members(cls):
    return {field.name for field in fields(cls)} if is_dataclass(cls) else set(cls.__annotations__)


assert {"session_id", "tool_call_id", "tool_name", "arguments"} <= members(ToolInvocation)
assert {
    *("text_result_for_llm", "binary_results_for_llm", "result_type", "error", "session_log", "tool_telemetry"),
} <= members(ToolResult)
assert {"name", "description", "parameters", "handler"} <= members(Tool)
assert {"type", "command", "args", "working_directory", "env"} <= members(MCPStdioServerConfig)
assert {"type", "url", "headers"} <= members(MCPHTTPServerConfig)


TOOLS = [
    *(my_tool, get_weather, simple_string, structured_object, advanced_result, binary_result, handler_context),
    *(query_users, risky, get_forecast, get_user, send_notification, calculate_analytics),
    *(get_time, search_files, fails),
]


async def main():
    events = []
    client = CopilotClient(connection=RuntimeConnection.for_stdio(path=os.environ["JUMPSEAT"]))
    async with client:
        # Using Tools in Sessions, line 146; Multiple Tools Example, line 314
        session = await client.create_session(
            tools=TOOLS,
            on_permission_request=lambda request, context: PermissionDecisionApproveOnce(),
        )
        async with session:
            session.on(lambda event: events.append(event.to_dict()))
            await session.send_and_wait("Call them all.")
    print(json.dumps(events))


if __name__ == "__main__":
    asyncio.run(main())
