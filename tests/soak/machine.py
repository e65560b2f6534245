"""Clients that do anything at any time, as a state machine of Hypothesis over a :class:`World`.

Each rule is one step. It ends with some turns of the event loop, or with a wait until the server is at rest, where
all rules of ``world.py`` are checked. Requests thus meet the server in every state.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from tests.soak.prompts import CLIENTS, PROMPTS
from tests.soak.world import Client, World

SESSIONS = 3
"""The number of sessions; a further one takes the place of an old one."""

NUMBER = st.integers(0, CLIENTS - 1)
PICK = st.integers(0, 7)
YES = st.booleans()
MOSTLY = st.integers(0, 7).map(lambda number: number != 5)
SOMETIMES = st.integers(0, 3).map(lambda number: number == 2)
# Turns of the event loop after a step; -1 waits until the server is at rest.
PAUSE = st.sampled_from([-1, -1, -1, 0, 0, 1, 2, 5, 12, 40])
# One of many: too frequent, it would end every state that the other steps have built.
RARELY = st.integers(0, 11).map(lambda number: number == 5)


class Soak(RuleBasedStateMachine):
    """See the module. ``steps`` counts the steps of all examples."""

    steps = 0

    def __init__(self) -> None:
        super().__init__()
        shared = Path("/dev/shm")
        self._folder = Path(tempfile.mkdtemp(prefix="soak-", dir=shared if shared.is_dir() else None))
        self._world = World(self._folder)

    def teardown(self) -> None:
        """End the server and check that nothing is left."""
        try:
            self._world.close()
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    # --- sessions -------------------------------------------------------------------------------------------------

    @initialize(tools=MOSTLY, permissions=MOSTLY)
    def begin(self, tools: bool, permissions: bool) -> None:
        self.create(0, tools=tools, permissions=permissions, mcp=False, pause=-1)
        for number in range(1, CLIENTS):
            self.resume(number, 0, tools=tools, permissions=permissions, go_on=False, pause=-1)

    @rule(number=NUMBER, tools=MOSTLY, permissions=MOSTLY, mcp=RARELY, pause=PAUSE)
    def create(self, number: int, tools: bool, permissions: bool, mcp: bool, pause: int) -> None:
        client = self._world.connect(number)
        options = self._world.options(client, tools=tools, permissions=permissions, mcp=mcp)
        if len(self._world.sessions) < SESSIONS:
            self._world.ask(client, "session.create", str(uuid.uuid4()), streaming=permissions, **options)
        self._pause(pause)

    @rule(number=NUMBER, pick=PICK, tools=MOSTLY, permissions=MOSTLY, go_on=SOMETIMES, pause=PAUSE)
    def resume(self, number: int, pick: int, tools: bool, permissions: bool, go_on: bool, pause: int) -> None:
        client = self._world.connect(number)
        options = self._world.options(client, tools=tools, permissions=permissions, mcp=False)
        self._ask(number, pick, "session.resume", pause, continuePendingWork=go_on, **options)

    @rule(number=NUMBER, pick=PICK, really=SOMETIMES, pause=PAUSE)
    def leave(self, number: int, pick: int, really: bool, pause: int) -> None:
        if really:
            self._ask(number, pick, "session.destroy", pause)

    @rule(number=NUMBER, really=SOMETIMES, pause=PAUSE)
    def hang_up(self, number: int, really: bool, pause: int) -> None:
        if really:
            self._world.hang_up(number)
            self._pause(pause)

    @rule(
        number=NUMBER,
        pick=PICK,
        method=st.sampled_from(["sessions.close", "session.suspend", "sessions.fork"]),
        really=SOMETIMES,
    )
    def close_or_fork(self, number: int, pick: int, method: str, really: bool) -> None:
        if really and (method != "sessions.fork" or len(self._world.sessions) < SESSIONS):
            self._ask(number, pick, method, -1)

    @rule(number=NUMBER, pick=PICK, really=RARELY, pause=PAUSE)
    def delete(self, number: int, pick: int, really: bool, pause: int) -> None:
        if really and self._world.sessions:
            session = self._world.sessions[pick % len(self._world.sessions)]
            self._world.ask(self._world.connect(number), "session.delete", session)
            self._pause(pause)
            self._world.settle()
            self._world.sessions.remove(session)

    @rule(orderly=YES, really=RARELY)
    def restart(self, orderly: bool, really: bool) -> None:
        if really:
            self._world.restart(orderly=orderly)
            self._step()

    # --- prompts --------------------------------------------------------------------------------------------------

    @rule(number=NUMBER, pick=PICK, name=st.sampled_from(PROMPTS), steer=YES, pause=PAUSE)
    def send(self, number: int, pick: int, name: str, steer: bool, pause: int) -> None:
        mode = "immediate" if steer else "enqueue"
        self._prompt(number, pick, "session.send", pause, name, mode=mode)

    @rule(number=NUMBER, pick=PICK, name=st.sampled_from(PROMPTS), pause=PAUSE)
    def send_and_wait(self, number: int, pick: int, name: str, pause: int) -> None:
        self._prompt(number, pick, "session.sendAndWait", pause, name)

    def _prompt(self, number: int, pick: int, method: str, pause: int, name: str, **params: Any) -> None:
        """Send a prompt; most name a tool of a client that is there."""
        session = self._session(pick)
        client = self._world.connect(number)
        attached = self._world.attached(session) if session else []
        if not attached and session:
            options = self._world.options(client, tools=True, permissions=True, mcp=False)
            self._world.ask(client, "session.resume", session, continuePendingWork=False, **options)
        tool_owner = attached[pick % len(attached)].number if attached else number
        if name[:-1] in ("free", "lookup"):
            name = f"{name[:-1]}{tool_owner}"
        self._ask(number, pick, method, pause, prompt=f"{name} please", **params)

    @rule(number=NUMBER, pick=PICK, pause=PAUSE)
    def abort(self, number: int, pick: int, pause: int) -> None:
        self._ask(number, pick, "session.abort", pause)

    @rule(number=NUMBER, pick=PICK, pause=PAUSE)
    def cancel_request(self, number: int, pick: int, pause: int) -> None:
        client = self._world.connect(number)
        if client.asked:
            request_id = list(client.asked)[pick % len(client.asked)]
            client.memory.send({"method": "$/cancelRequest", "params": {"id": request_id}})
        self._pause(pause)

    @rule(
        number=NUMBER,
        pick=PICK,
        method=st.sampled_from(
            ["session.queue.clear", "session.queue.removeMostRecent", "session.history.compact"]
        ),
        pause=PAUSE,
    )
    def change_queue_or_history(self, number: int, pick: int, method: str, pause: int) -> None:
        self._ask(number, pick, method, pause)

    @rule(number=NUMBER, pick=PICK, position=st.integers(1, 30), pause=PAUSE)
    def truncate(self, number: int, pick: int, position: int, pause: int) -> None:
        session = self._session(pick)
        log = self._world.log_of(session) if session else []
        if len(log) > 1:
            event = log[-min(position, len(log) - 1)]["id"]
            self._ask(number, pick, "session.history.truncate", pause, eventId=event)

    # --- answers --------------------------------------------------------------------------------------------------

    @rule(number=NUMBER, pick=PICK, which=PICK, good=YES, forget=YES, pause=PAUSE)
    def answer(self, number: int, pick: int, which: int, good: bool, forget: bool, pause: int) -> None:
        """Answer a tool call or a permission request; a client that forgets its answer gives it twice."""
        session = self._session(pick)
        client = self._world.connect(number)
        view = client.views.get(session) if session else None
        if view is None or not view.questions:
            self._pause(pause)
            return
        request_id = list(view.questions)[which % len(view.questions)]
        for _ in range(2 if forget else 1):
            if view.questions.get(request_id) == "permission":
                result: Any = {"kind": "approve-once" if good else "reject"}
                method = "session.permissions.handlePendingPermissionRequest"
                self._ask(number, pick, method, 0, requestId=request_id, result=result)
            else:
                outcome = {"result": "found"} if good else {"error": "lost"}
                self._ask(number, pick, "session.tools.handlePendingToolCall", 0, requestId=request_id, **outcome)
        self._pause(pause)

    @rule(number=NUMBER, which=PICK, good=YES, pause=PAUSE)
    def answer_request(self, number: int, which: int, good: bool, pause: int) -> None:
        client = self._world.connect(number)
        if client.requests:
            request = client.requests.pop(which % len(client.requests))
            self._answer_request(client, request, good=good)
        self._pause(pause)

    @rule(pause=PAUSE)
    def answer_everything(self, pause: int) -> None:
        """Answer all that the server has asked so far."""
        for client in list(self._world.clients.values()):
            while client.requests:
                self._answer_request(client, client.requests.pop(), good=True)
            for session, view in client.views.items():
                for request_id, kind in view.questions.items():
                    if kind == "permission":
                        method, answer = "permissions.handlePendingPermissionRequest", {"kind": "approve-once"}
                    else:
                        method, answer = "tools.handlePendingToolCall", {"textResultForLlm": "found"}
                    self._world.ask(client, f"session.{method}", session, requestId=request_id, result=answer)
        self._pause(pause)

    def _answer_request(self, client: Client, request: dict[str, Any], *, good: bool) -> None:
        if not good:
            client.memory.send({"id": request["id"], "error": {"code": -1, "message": "no"}})
        elif request["method"] == "userInput.request":
            client.memory.send({"id": request["id"], "result": {"answer": "this", "wasFreeform": True}})
        else:
            client.memory.send({"id": request["id"], "result": {}})

    # --- settings -------------------------------------------------------------------------------------------------

    @rule(number=NUMBER, pick=PICK, model=st.sampled_from(["small", "large"]), pause=PAUSE)
    def switch_model(self, number: int, pick: int, model: str, pause: int) -> None:
        self._ask(number, pick, "session.model.switchTo", pause, modelId=model)

    @rule(number=NUMBER, pick=PICK, mode=st.sampled_from(["interactive", "plan", "autopilot"]), pause=PAUSE)
    def set_mode(self, number: int, pick: int, mode: str, pause: int) -> None:
        self._ask(number, pick, "session.mode.set", pause, mode=mode)

    @rule(number=NUMBER, pick=PICK, enabled=YES, pause=PAUSE)
    def approve_all(self, number: int, pick: int, enabled: bool, pause: int) -> None:
        self._ask(number, pick, "session.permissions.setApproveAll", pause, enabled=enabled)

    @rule(number=NUMBER, pick=PICK, pause=PAUSE)
    def read(self, number: int, pick: int, pause: int) -> None:
        self._ask(number, pick, "session.getMessages", pause)

    # --------------------------------------------------------------------------------------------------------------

    def _session(self, pick: int) -> str | None:
        sessions = self._world.sessions
        return sessions[pick % len(sessions)] if sessions else None

    def _ask(self, number: int, pick: int, method: str, pause: int, **params: Any) -> None:
        session = self._session(pick)
        if session is not None:
            self._world.ask(self._world.connect(number), method, session, **params)
        self._pause(pause)

    def _pause(self, pause: int) -> None:
        self._step()
        if pause < 0:
            self._world.settle()
        else:
            self._world.spin(pause)
            self._world.assert_no_problem()

    def _step(self) -> None:
        Soak.steps += 1
