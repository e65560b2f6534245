import asyncio
import os

from copilot import CopilotClient, RuntimeConnection, define_tool
from copilot.rpc import PermissionDecisionApproveOnce
from copilot.session_events import AssistantMessageDeltaData, PermissionRequestCustomTool, PermissionRequestShell
from pydantic import BaseModel, Field


class GetTemperature(BaseModel):
    city: str = Field(description="Name of the city")


@define_tool(description="Returns the current temperature in a city")
def get_temperature(args: GetTemperature) -> str:
    print("tool: get_temperature", args.city)
    return f"18 degrees in {args.city}"


def approve(request, _invocation):
    match request:
        case PermissionRequestShell():
            print("permission: shell", request.full_command_text)
        case PermissionRequestCustomTool():
            print("permission: custom-tool", request.tool_name)
    return PermissionDecisionApproveOnce()


def show(event):
    if isinstance(event.data, AssistantMessageDeltaData):
        print(event.data.delta_content, end="", flush=True)


async def main():
    program = os.environ.get("JUMPSEAT", "jumpseat")
    options = {"streaming": True, "tools": [get_temperature], "on_permission_request": approve}
    async with (
        CopilotClient(connection=RuntimeConnection.for_stdio(path=program)) as client,
        await client.create_session(**options) as session,
    ):
        session.on(show)
        await session.send_and_wait("How warm is it in Berlin?")
        print()


asyncio.run(main())
