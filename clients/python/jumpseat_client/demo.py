"""A demo: an agent session from the first ``connect`` to its resumption in a second server process.

``python -m jumpseat_client.demo [--script FILE] [--yes] [--full]``. Runs offline with a scripted model, or with a
real one if ``OPENAI_API_KEY``, ``OPENAI_BASE_URL`` or ``ANTHROPIC_API_KEY`` is set.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from jumpseat_client import (
    Event,
    JumpseatClientError,
    PermissionDecision,
    PermissionHandler,
    PermissionRequest,
    ProviderConfig,
    Session,
    SessionAborted,
    SessionSettings,
    UnknownPermission,
    approve_once,
    connect_stdio,
    reject,
    tool,
)
from jumpseat_protocol.events import (
    AssistantMessage,
    MessageDelta,
    SessionInfo,
    SessionWarning,
    ToolExecutionComplete,
    ToolExecutionStart,
)
from jumpseat_protocol.permissions import (
    CustomToolPermission,
    HookPermission,
    McpPermission,
    MemoryPermission,
    ReadPermission,
    ShellPermission,
    UrlPermission,
    WritePermission,
)

SCRIPT = Path(__file__).with_name("demo_script.yaml")
FIRST_PROMPT = "Can order 1042 still be returned? Use lookup_order, then view returns.md."
SECOND_PROMPT = "Which order did I ask about?"
RETURNS = "# Returns\n\nCoffee and filters: no returns.\nMachines: within 30 days of arrival.\n"


@tool
async def lookup_order(order_id: str) -> dict[str, Any]:
    """Look up an order by its number."""
    return {"order_id": order_id, "item": "espresso machine", "arrived_days_ago": 12}


@dataclass(frozen=True)
class Model:
    """The model to use. ``description`` is shown to the user and has no key."""

    description: str
    provider: ProviderConfig
    name: str | None = None


def choose_model(script: Path | None) -> Model:
    """Return the model of ``script``, else one configured in the environment, else the demo's own script."""
    env = os.environ
    if script is None and (env.get("OPENAI_API_KEY") or env.get("OPENAI_BASE_URL")):
        url = env.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        name = env.get("OPENAI_MODEL") or "gpt-4.1-mini"
        provider = ProviderConfig(type="openai", base_url=url, api_key=env.get("OPENAI_API_KEY") or None)
        return Model(f"{name} at {urlsplit(url).hostname}", provider, name)
    if script is None and env.get("ANTHROPIC_API_KEY"):
        url = env.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com"
        name = env.get("ANTHROPIC_MODEL") or "claude-sonnet-4-5"
        provider = ProviderConfig(type="anthropic", base_url=url, api_key=env["ANTHROPIC_API_KEY"])
        return Model(f"{name} at {urlsplit(url).hostname}", provider, name)
    path = (script or SCRIPT).resolve()
    return Model(
        f"scripted, from {path.name}; no API key, no network", ProviderConfig(type="scripted", script=str(path))
    )


# --- screen -------------------------------------------------------------------------------------------------------


def heading(text: str) -> None:
    bold = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    print(f"\n\033[1m{text}\033[0m" if bold else f"\n{text}")


def short(value: Any, width: int = 76) -> str:
    """Return ``value`` on one line, truncated to ``width`` characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 3] + "..."


class Screen:
    """Prints the events of a session as they arrive."""

    def __init__(self) -> None:
        self._line_is_open = False
        self._tools: dict[str, str] = {}

    def show(self, event: Event) -> None:
        match event.payload:
            case MessageDelta(delta_content=text):
                print(text if self._line_is_open else f"agent  {text}", end="", flush=True)
                self._line_is_open = True
            case AssistantMessage(content=content):
                if self._line_is_open:
                    print()
                elif content:
                    print(f"agent  {content}")
                self._line_is_open = False
            case ToolExecutionStart(tool_call_id=call_id, tool_name=name):
                self._tools[call_id] = name
            case ToolExecutionComplete(tool_call_id=call_id, success=success, result=result, error=error):
                text = result.content if success and result else f"failed, {error.message if error else ''}"
                print(f"tool   {self._tools[call_id]}: {short(text)}")
            case SessionInfo(message=message):
                print(f"       {message}")
            case SessionWarning(message=message):
                print(f"       warning: {message}")
            case _:
                pass


def describe_request(request: PermissionRequest) -> str:
    """Describe a request as the rest of "May I ...": a verb phrase."""
    match request:
        case CustomToolPermission():
            return f"call this program's tool {request.tool_name} with {short(request.args, 50)}"
        case ReadPermission():
            return f"read {request.path}"
        case WritePermission():
            diff = "\n".join(f"         {line}" for line in request.diff.splitlines()[:20])
            return f"write {request.file_name}\n{diff}"
        case ShellPermission():
            return f"run this command: {request.full_command_text}"
        case McpPermission():
            return f"call {request.tool_name} of MCP server {request.server_name} with {short(request.args, 50)}"
        case UrlPermission():
            return f"open {request.url}"
        case MemoryPermission():
            return f"{request.action} a memory: {request.fact}"
        case HookPermission():
            reason = request.hook_message or "no reason given"
            return f"call {request.tool_name}, which a hook wants approved: {reason}"
        case UnknownPermission():
            return f"make this {request.kind} call: {short(request.data)}"


def make_permission_handler(*, yes: bool) -> PermissionHandler:
    """Ask on the terminal, one question at a time; approve without asking if ``yes`` or without a terminal."""
    one_at_a_time = anyio.Lock()

    async def ask(request: PermissionRequest) -> PermissionDecision:
        async with one_at_a_time:
            question = f"asks   May I {describe_request(request)}"
            if yes or not sys.stdin.isatty():
                print(f"{question}\n       yes ({'--yes' if yes else 'automatic: no terminal'})")
                return approve_once()
            print(f"{question}\n       y/n: ", end="", flush=True)
            answer = await read_line()
            return approve_once() if answer.strip().lower() in ("y", "yes") else reject()

    return ask


async def read_line() -> str:
    """Read a line from the terminal, ``""`` at its end."""
    if sys.platform == "win32":
        return await anyio.to_thread.run_sync(sys.stdin.readline, abandon_on_cancel=True)
    # No thread, because a thread waiting for input would delay the exit after ctrl-c.
    await anyio.wait_readable(sys.stdin)
    return os.read(sys.stdin.fileno(), 4096).decode(errors="replace")


# --- the wire -----------------------------------------------------------------------------------------------------


class Transcript:
    """The messages on the wire, one line each, consecutive deltas in one. ``full`` leaves nothing out."""

    def __init__(self, *, full: bool) -> None:
        self._full = full
        self._lines: list[str] = []
        self._left_out = 0
        # Event type and number of the deltas that the last line stands for, if it does.
        self._deltas = ("", 0)
        self._methods: dict[Any, str] = {}

    def begin(self, title: str) -> None:
        self._methods.clear()
        self._lines.append(f"  {title}")

    def record(self, direction: Literal["sent", "received"], message: dict[str, Any]) -> None:
        """Add a message; a ``MessageTap``."""
        arrow = "->" if direction == "sent" else "<-"
        method: str | None = message.get("method")
        params: dict[str, Any] = message.get("params") or {}
        if method == "session.event":
            self._add(arrow, params["event"]["type"], params["event"].get("data") or {})
        elif method is not None:
            if direction == "sent":
                self._methods[message.get("id")] = method
            self._add(arrow, method, params)
        elif "error" in message:
            self._add(arrow, "error", message["error"])
        else:
            self._add(arrow, f"response to {self._methods.get(message['id'], '')}", message.get("result"))

    def print(self) -> None:
        print("\n".join(self._lines))
        if self._left_out:
            print(f"  ({self._left_out} more, such as usage; --full shows them, with make: ARGS=--full)")

    def _add(self, arrow: str, name: str, data: Any) -> None:
        details = DETAILS.get(name)
        if details is None and not self._full:
            self._left_out += 1
            return
        text = details(data) if details else short(data, 60)
        if name.endswith("_delta"):
            count = self._deltas[1] + 1 if self._deltas[0] == name else 1
            if count > 1:
                self._lines.pop()
            self._deltas, text = (name, count), f"x {count}"
        else:
            self._deltas = ("", 0)
        self._lines.append(f"  {arrow} {name:<32} {text}".rstrip())


def _opening_details(data: dict[str, Any]) -> str:
    tools = ", ".join(tool["name"] for tool in data.get("tools", []))
    provider: dict[str, Any] = data.get("provider") or {}
    return f"provider {provider.get('type')}, tools [{tools}]"


def _message_details(data: dict[str, Any]) -> str:
    requests: list[dict[str, Any]] = data.get("toolRequests") or []
    calls = ", ".join(f"call {request['name']}" for request in requests)
    return " + ".join(part for part in (short(data["content"], 60), calls) if part)


def _permission_details(data: dict[str, Any]) -> str:
    request: dict[str, Any] = data.get("permissionRequest") or {}
    what = (
        request.get("toolName") or request.get("path") or request.get("fullCommandText") or request.get("fileName")
    )
    return f"{request.get('kind')}: {short(what or '', 50)}"


def _result_details(data: dict[str, Any]) -> str:
    error: dict[str, Any] = data.get("error") or {}
    result: dict[str, Any] = data.get("result") or {}
    return short(result.get("content", ""), 54) if data.get("success") else f"failed: {error.get('message')}"


# The details to show by event type or method. Messages not listed here are left out.
DETAILS: Final[Mapping[str, Callable[[dict[str, Any]], str]]] = {
    "connect": lambda data: "",
    "response to connect": lambda data: f"server {data.get('version')}, protocol {data.get('protocolVersion')}",
    "session.create": _opening_details,
    "session.resume": lambda data: (
        _opening_details(data) if "sessionId" in data else f"{data['eventCount']} events from disk"
    ),
    "session.start": lambda data: f"session {data.get('sessionId')}",
    "session.send": lambda data: short(data["prompt"], 54),
    "assistant.message_delta": lambda data: "",
    "user.message": lambda data: f"delivery {data.get('delivery')}",
    "assistant.message": _message_details,
    "permission.requested": _permission_details,
    "session.permissions.handlePendingPermissionRequest": lambda data: data["result"]["kind"],
    "permission.completed": lambda data: data["result"]["kind"],
    "external_tool.requested": lambda data: f"{data['toolName']} {short(data.get('arguments'), 40)}",
    "session.tools.handlePendingToolCall": lambda data: short(data.get("result", data.get("error")), 54),
    "tool.execution_complete": _result_details,
    "session.warning": lambda data: short(data["message"]),
    "session.error": lambda data: short(data["message"]),
    "session.idle": lambda data: "aborted" if data.get("aborted") else "",
    "runtime.shutdown": lambda data: "",
    "error": lambda data: f"{data.get('code')} {short(data.get('message'))}",
}


# --- the demo -----------------------------------------------------------------------------------------------------


async def ask(session: Session, prompt: str) -> None:
    print(f"you    {prompt}")
    try:
        await session.ask(prompt)
    except SessionAborted:
        print("       (aborted)")


async def run_demo(model: Model, *, yes: bool, transcript: Transcript, folder: Path) -> None:
    """Run both server processes, one after the other.

    Raises:
        JumpseatClientError: the server or the model failed.
    """
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "returns.md").write_text(RETURNS, encoding="utf-8")
    env = {"COPILOT_HOME": str(folder / "home")}
    show, on_permission = Screen().show, make_permission_handler(yes=yes)

    settings: SessionSettings = {
        "model": model.name,
        "provider": model.provider,
        "working_directory": str(workspace),
        "streaming": True,
    }

    heading("1. A server process and a session, with a tool of this program and the server's tools")
    transcript.begin("first process")
    async with connect_stdio(env=env, on_message=transcript.record) as client:
        session = await client.create_session(
            tools=[lookup_order], on_permission=on_permission, on_event=show, **settings
        )
        await ask(session, FIRST_PROMPT)

    heading("2. The process has ended; a second process resumes the session from disk")
    transcript.begin("second process")
    async with connect_stdio(env=env, on_message=transcript.record) as client:
        session = await client.resume_session(
            session.id, tools=[lookup_order], on_permission=on_permission, on_event=show, **settings
        )
        await ask(session, SECOND_PROMPT)


NEXT_STEPS = """\
  {command} setup      choose a provider and a model, or a local one; no key is needed to look around
  {command}            then talk to it, in the folder of your project
  {command} --help     editors, a page in the browser, scripts, servers"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo and return the exit code."""
    parser = argparse.ArgumentParser(prog="jumpseat demo", description="Demonstrate an agent session.")
    parser.add_argument("--script", type=Path, metavar="FILE", help="YAML or JSON script for the scripted model")
    parser.add_argument("--yes", action="store_true", help="approve every permission request")
    parser.add_argument("--full", action="store_true", help="print the complete transcript")
    options = parser.parse_args(argv)

    model = choose_model(options.script)
    print(f"jumpseat demo\nmodel: {model.description}")
    transcript = Transcript(full=options.full)
    folder = Path(tempfile.mkdtemp(prefix="jumpseat-demo-"))
    failure: str | None = None

    async def run() -> None:
        await run_demo(model, yes=options.yes, transcript=transcript, folder=folder)

    try:
        anyio.run(run)
    except JumpseatClientError as error:
        failure = str(error)
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    finally:
        shutil.rmtree(folder, ignore_errors=True)

    heading("3. The messages on the wire  (-> this program, <- the server)")
    transcript.print()
    if failure is not None:
        print(f"\nThe demo failed: {failure}", file=sys.stderr)
        return 1
    heading("What next")
    print(NEXT_STEPS.format(command=shown(Path(sys.executable).with_name("jumpseat"))))
    return 0


def shown(program: Path) -> str:
    """Return the path of a program, relative to the current folder if it is in there."""
    return str(program.relative_to(Path.cwd()) if program.is_relative_to(Path.cwd()) else program)


if __name__ == "__main__":
    sys.exit(main())
