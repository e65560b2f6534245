"""A real session in this process: scripted model, real tools, a log in memory and a client that records events.

::

    made = make_session(tasks, script=[{"tool_calls": [{"name": "add"}]}, {"text": "3"}], tools=[ADD])
    made.send("What is 1 + 2?")
    asked = await made.client.wait_for(events.ExternalToolRequested)
    made.answer_tool(asked, result="3")
    await made.idle()
    assert made.client.types() == [...]

``tasks`` is the fixture of that name.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
from anyio.abc import TaskGroup
from msgspec.structs import replace

from jumpseat.adapters.scripted import Script, ScriptedModel
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.client import Attachment, ProvidedTool
from jumpseat.agent.clock import utc_now
from jumpseat.agent.interfaces import AskToken, Brief, ResolvedModel, RunUsage
from jumpseat.agent.model import Model, ModelInfo
from jumpseat.agent.retry import RetryPolicy
from jumpseat.agent.session.queue_items import Prompt, QueuedCommand
from jumpseat.agent.session.session import Session, SessionServices
from jumpseat.agent.settings import SessionSettings
from jumpseat.agent.turns.loop import run_prompt
from jumpseat.errors import ClientCallError, StoreError
from jumpseat.sandbox.session import Sandboxes
from jumpseat.tools.declared.declarations import Declarations
from jumpseat.tools.findings import Checker
from jumpseat.tools.orchestrator.environment import Environment, RepeatLimits, ScriptSettings
from jumpseat.tools.orchestrator.session_tools import ToolOrchestrator
from jumpseat.tools.tool import BuiltinTool, SourceMaker
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import (
    AutoModeSwitchParams,
    CancelClientTaskParams,
    CancelClientTaskResult,
    CanvasActionParams,
    CanvasCloseParams,
    CanvasOpenParams,
    CanvasOpenResult,
    ExitPlanModeParams,
    ExitPlanModeResponse,
    GitHubTokenParams,
    GitHubTokenResult,
    HttpRequestChunkParams,
    HttpRequestStartParams,
    UserInputResponse,
)
from jumpseat_protocol.permissions import PermissionDecision
from jumpseat_protocol.sessions import ClientTool
from jumpseat_protocol.tools import HandlePendingToolCallParams
from tests.support.limits import WAIT_S

P = TypeVar("P", bound=events.EventPayload)

MODEL = "scripted-model"


@dataclass(eq=False)
class RecordingClient:
    """A client that records events and hook calls, in order."""

    events: list[events.Event] = field(default_factory=list[events.Event])
    hooks: dict[str, list[JsonObject | Exception | None]] = field(
        default_factory=dict[str, "list[JsonObject | Exception | None]"]
    )
    """Results of the hooks by type, one per call."""
    hook_calls: list[tuple[str, JsonObject]] = field(default_factory=list[tuple[str, JsonObject]])
    """The hook calls so far: type and input."""
    user_answers: list[UserInputResponse] = field(default_factory=list[UserInputResponse])
    to_transform: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """The sections it was asked to rewrite; its answer is each in upper case."""
    _news: anyio.Event = field(default_factory=anyio.Event)

    def deliver(self, session_id: str, event: events.Event) -> None:
        self.events.append(event)
        self._news.set()
        self._news = anyio.Event()

    behind = False

    async def drain(self) -> None:
        await anyio.lowlevel.checkpoint()

    async def invoke_hook(self, session_id: str, hook_type: str, hook_input: JsonObject) -> JsonObject | None:
        self.hook_calls.append((hook_type, hook_input))
        answers = self.hooks.get(hook_type, [])
        answer = answers.pop(0) if answers else None
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def ask_user(
        self, session_id: str, question: str, choices: list[str] | None, *, allow_freeform: bool
    ) -> UserInputResponse:
        if not self.user_answers:
            raise ClientCallError("nobody answers")
        return self.user_answers.pop(0)

    async def exit_plan_mode(self, params: ExitPlanModeParams) -> ExitPlanModeResponse:
        raise ClientCallError("nobody answers")

    async def auto_mode_switch(self, params: AutoModeSwitchParams) -> events.AutoModeSwitchAnswer:
        raise ClientCallError("nobody answers")

    mcp_servers: Collection[str] = ()

    async def ask_mcp(
        self, server_id: str, message: JsonObject, notified: Callable[[JsonObject], None]
    ) -> JsonObject:
        raise ClientCallError("this client serves nothing")

    async def transform_system_message(self, session_id: str, sections: dict[str, str]) -> dict[str, str]:
        self.to_transform.append(sections)
        return {name: text.upper() for name, text in sections.items()}

    async def provider_token(self, session_id: str, provider_name: str) -> str:
        raise ClientCallError("this client has no tokens")

    async def github_token(self, params: GitHubTokenParams) -> GitHubTokenResult:
        raise ClientCallError("this client has no tokens")

    async def open_canvas(self, params: CanvasOpenParams) -> CanvasOpenResult:
        raise ClientCallError("this client has no canvases")

    async def invoke_canvas_action(self, params: CanvasActionParams) -> Any:
        raise ClientCallError("this client has no canvases")

    async def close_canvas(self, params: CanvasCloseParams) -> None:
        raise ClientCallError("this client has no canvases")

    async def cancel_task(self, params: CancelClientTaskParams) -> CancelClientTaskResult:
        raise ClientCallError("this client has no tasks")

    async def start_http_request(self, params: HttpRequestStartParams) -> None:
        raise ClientCallError("this client makes no requests")

    async def send_http_chunk(self, params: HttpRequestChunkParams) -> None:
        raise ClientCallError("this client makes no requests")

    def payloads(self, kind: type[P]) -> list[P]:
        """Return the payloads of one type so far."""
        return [event.payload for event in self.events if isinstance(event.payload, kind)]

    def types(self, *, persisted_only: bool = False) -> list[str]:
        """Return the wire names of all events so far."""
        return [event.type for event in self.events if event.persisted or not persisted_only]

    async def news(self) -> None:
        """Wait for the next event."""
        await self._news.wait()

    async def wait_for(self, kind: type[P], count: int = 1) -> P:
        """Wait for the ``count``-th event of a type; returns its payload."""
        with anyio.fail_after(WAIT_S):
            while len(found := self.payloads(kind)) < count:
                await self._news.wait()
        return found[count - 1]


@dataclass
class MemoryLog:
    """An event log that keeps encoded lines; while ``broken`` is set, writing fails."""

    announcements: None = None
    lines: list[bytes] = field(default_factory=list[bytes])
    broken: bool = False
    syncs: int = 0

    def append(self, event: events.Event) -> None:
        if self.broken:
            raise StoreError("cannot write the session log: the disk is full")
        self.lines.append(event.encode())

    def sync_soon(self) -> None:
        self.syncs += 1

    async def flush(self) -> None:
        pass


@dataclass
class FolderStorage:
    """A storage with ``log``, whose other files lie in ``folder``."""

    log: MemoryLog
    folder: Path
    objective: str | None = None
    briefs: dict[str, Brief] = field(default_factory=dict[str, Brief])
    prefix: bytes | None = None
    runs: list[RunUsage] = field(default_factory=list[RunUsage])

    def append_run(self, run: RunUsage) -> None:
        self.runs.append(run)

    def read_objective(self) -> str | None:
        return self.objective

    def write_objective(self, content: str | None) -> None:
        self.objective = content

    def read_brief(self, cwd: str) -> Brief | None:
        return self.briefs.get(cwd)

    def write_brief(self, cwd: str, brief: Brief) -> None:
        self.briefs[cwd] = brief

    def read_prefix(self) -> bytes | None:
        return self.prefix

    def write_prefix(self, digest: bytes) -> None:
        self.prefix = digest

    @property
    def shown_path(self) -> str:
        return str(self.folder)

    @property
    def virtual_files(self) -> None:
        return None

    @property
    def own_folders(self) -> tuple[Path, ...]:
        return (self.folder / "temp", self.folder / "files")

    def save_output(self, name: str, data: bytes, folder: str | None) -> str:
        path = (Path(folder) if folder is not None else self.folder / "temp") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return str(path)


@dataclass
class OneModel:
    """A model resolver that returns the same model for every session."""

    model: Model
    info: ModelInfo = field(default_factory=lambda: ModelInfo(MODEL))
    known: ModelInfo | None = None

    def unsupported_settings(self, settings: SessionSettings) -> list[str]:
        return []

    async def ask_server(self, resolved: ResolvedModel, *, again: bool = False) -> bool:
        return False

    def learn(self, resolved: ResolvedModel, **facts: Any) -> None:
        self.info = replace(self.info, **facts)

    def check(self, settings: SessionSettings) -> None:
        pass

    async def resolve(self, settings: SessionSettings, *, ask_token: AskToken | None = None) -> ResolvedModel:
        return ResolvedModel(self.model, self.info.id, self.info, filled=self.known)


@dataclass
class MadeSession:
    """A session with its client and log. ``changes`` lists the changes reported to the registry."""

    session: Session
    client: RecordingClient
    log: MemoryLog
    changes: list[str] = field(default_factory=list[str])

    def send(self, text: str, **prompt: Any) -> Prompt:
        """Queue a prompt; keyword arguments are fields of :class:`~jumpseat.agent.session.Prompt`."""
        sent = Prompt(text, **prompt)
        self.session.send(sent)
        return sent

    async def ask(self, text: str, **prompt: Any) -> Prompt:
        """Send a prompt and wait for the end of its run."""
        sent = self.send(text, **prompt)
        with anyio.fail_after(WAIT_S):
            await sent.run.done.wait()
        return sent

    async def idle(self, count: int = 1) -> events.SessionIdle:
        """Wait for the end of the ``count``-th run."""
        return await self.client.wait_for(events.SessionIdle, count)

    def answer_tool(
        self, request: events.ExternalToolRequested, result: Any = None, *, error: str | None = None
    ) -> bool:
        """Answer a call of a client tool; returns whether the call was waiting for an answer."""
        return self.session.clients.external_calls.answer(
            request.request_id,
            HandlePendingToolCallParams(
                session_id=self.session.id, request_id=request.request_id, result=result, error=error
            ),
        )

    def decide(self, request: events.PermissionRequested, decision: dict[str, Any]) -> bool:
        """Answer a permission request with a decision in wire form; returns whether the request was open."""
        return self.session.permissions.questions.pending.answer(
            request.request_id, PermissionDecision.model_validate(decision)
        )


def make_session(
    tasks: TaskGroup,
    *,
    script: Sequence[dict[str, Any]] | dict[str, Any] | Model = (),
    settings: SessionSettings | None = None,
    tools: Sequence[ClientTool] = (),
    builtin: Sequence[BuiltinTool[Any]] = (),
    handles_permissions: bool = True,
    handles_user_input: bool = False,
    hooks: dict[str, list[JsonObject | Exception | None]] | None = None,
    approve_all: bool = False,
    allow_unasked: bool = False,
    model_info: ModelInfo | None = None,
    known: ModelInfo | None = None,
    retry: RetryPolicy | None = None,
    instructions: str = "",
    session_id: str = "session-1",
    declared: Mapping[str, Mapping[str, Any]] | None = None,
    repeats: RepeatLimits | None = None,
    checkers: Sequence[Checker] = (),
    sandboxes: Sandboxes | None = None,
    scripts: ScriptSettings | None = None,
) -> MadeSession:
    """Make a live session with one attached client; its tasks run in ``tasks``.

    ``script`` is a list of scripted turns, a whole script, or a model. ``tools`` are the client's tools,
    ``builtin`` the server's, ``declared`` those of its configuration. With ``approve_all`` no permission is
    requested. ``checkers`` look at changes of files. ``sandboxes`` and ``scripts`` are those of the server. Without
    ``retry``, failed model calls are retried without a delay. Large outputs go to ``temp`` in the working directory
    of ``settings``.
    """
    settings = settings or SessionSettings(cwd=Path("/project"))
    log = MemoryLog()
    client = RecordingClient(hooks=hooks or {})
    changes: list[str] = []
    sources: tuple[SourceMaker, ...] = ()
    if declared is not None:
        found = Declarations(declared, None, os.environ, is_trusted=lambda _path: False)
        sources = (SourceMaker(found.source),)
    services = SessionServices(
        tasks=tasks,
        models=OneModel(_model(script), model_info or ModelInfo(MODEL), known),
        make_tools=lambda session: ToolOrchestrator(
            session,
            Environment(
                lambda: builtin,
                (lambda: {"PATH": os.environ["PATH"]}) if declared else dict,
                sources,
                repeats=repeats or RepeatLimits(),
                checkers=tuple(lambda _session, checker=checker: checker for checker in checkers),
                sandboxes=sandboxes,
                scripts=scripts or ScriptSettings(),
                reserved=frozenset(tool.name for tool in builtin),
            ),
        ),
        read_instructions=lambda _settings: instructions,
        run_prompt=run_prompt,
        run_command=ignore_command,
        retry=retry or RetryPolicy(first_wait_s=0),
        allow_unasked=allow_unasked,
        allow_old_clients=False,
        on_change=lambda session: changes.append(session.id),
    )
    session = Session(session_id, settings, FolderStorage(log, settings.cwd), services, utc_now())
    session.permissions.mode = "allow-all" if approve_all else "manual"
    session.attach(
        Attachment(
            client,
            handles_permissions=handles_permissions,
            handles_user_input=handles_user_input,
            has_hooks=hooks is not None,
            has_transforms=settings.options.system_message.has_transforms(),
            tools={tool.name: ProvidedTool.of(tool) for tool in tools},
        )
    )
    return MadeSession(session, client, log, changes)


async def ignore_command(_session: Session, _command: QueuedCommand) -> bool:
    """Run no command: these sessions have no server around them."""
    return False


def _model(script: Sequence[dict[str, Any]] | dict[str, Any] | Model) -> Model:
    if isinstance(script, dict):
        return ScriptedModel(Script.model_validate(script))
    if isinstance(script, Sequence):
        return ScriptedModel(Script.model_validate({"turns": list(script)}))
    return script
