"""Random states and actions of AHP, valid by the protocol, with few ids, so that most actions meet something."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, TypeAlias

Json: TypeAlias = dict[str, Any]
Make: TypeAlias = Callable[[Random], Json]

TIMES: Final = tuple(f"2026-11-28T10:00:0{second}.{ms:03}Z" for second in range(6) for ms in (0, 7, 250))


def one(random: Random, *values: Any) -> Any:
    """Return one of the values."""
    return random.choice(values)


def some(random: Random, **members: Any) -> Json:
    """Return an object with some of the members."""
    return {name: value for name, value in members.items() if random.random() < 0.5}


def message(random: Random) -> Json:
    text = one(random, "hello", "", "what is this?")
    return {"text": text, "origin": {"kind": one(random, "user", "agent", "systemNotification")}}


def turn_id(random: Random) -> str:
    return one(random, "t1", "t1", "t1", "t2")


def _of_turn(kind: str, make: Make) -> Make:
    return lambda random: {"type": f"chat/{kind}", "turnId": turn_id(random), **make(random)}


def _of_call(kind: str, make: Make) -> Make:
    def action(random: Random) -> Json:
        meta = some(random, _meta={"n": random.randrange(3)}) if random.random() < 0.3 else {}
        return {"toolCallId": one(random, "c1", "c1", "c2"), **meta, **make(random)}

    return _of_turn(f"toolCall{kind}", action)


def contributor(random: Random) -> Json:
    return one(
        random,
        {"kind": "client", "clientId": "one"},
        {"kind": "client", "clientId": "two"},
        {"kind": "mcp", "customizationId": "server"},
    )


def options(random: Random) -> list[Json]:
    return [
        {"id": "once", "label": "Allow", "kind": "approve"},
        {"id": "reject", "label": one(random, "No", "Reject"), "kind": "deny"},
    ]


def content(random: Random) -> list[Json]:
    return [{"type": "text", "text": one(random, "out", "more")}]


def text(random: Random) -> Any:
    return one(random, "plain", {"markdown": "*bold*"})


def result(random: Random) -> Json:
    return {
        "success": random.random() < 0.6,
        "pastTenseMessage": text(random),
        **some(random, content=content(random), error={"message": "failed"}, structuredContent={"a": 1}),
    }


def part(random: Random) -> Json:
    return one(
        random,
        {"kind": "markdown", "id": one(random, "p1", "p2"), "content": one(random, "", "begin ")},
        {"kind": "reasoning", "id": one(random, "p2", "p3"), "content": "hm "},
        {"kind": "systemNotification", "content": text(random)},
        {"kind": "error", "error": {"errorType": "e", "message": "m"}},
    )


def answer(random: Random) -> Json:
    return {
        "state": one(random, "draft", "submitted"),
        "value": {"kind": "text", "value": one(random, "yes", "no")},
    }


def request(random: Random) -> Json:
    questions = [{"kind": "text", "id": "q1", "message": "Why?"}]
    return {
        "id": one(random, "r1", "r2"),
        **some(random, message="Please", questions=questions, answers={"q1": answer(random)}),
    }


def _answer_changed(random: Random) -> Json:
    return {
        "type": "chat/inputAnswerChanged",
        "requestId": one(random, "r1", "r2"),
        "questionId": one(random, "q1", "q2"),
        **some(random, answer=answer(random)),
    }


def _input_completed(random: Random) -> Json:
    return {
        "type": "chat/inputCompleted",
        "requestId": one(random, "r1", "r2"),
        "response": one(random, "accept", "decline", "cancel"),
        **some(random, answers={one(random, "q1", "q2"): answer(random)}),
    }


def _turn(random: Random) -> Json:
    return {
        "id": one(random, "old1", "old2", "t1"),
        "message": message(random),
        "responseParts": [],
        "state": one(random, "complete", "cancelled"),
        **some(random, startedAt=one(random, *TIMES), duration=12),
    }


def _work(random: Random) -> Json:
    common = {"id": one(random, "w1", "w2"), "label": "Works", "startedAt": one(random, *TIMES)}
    return one(
        random,
        {"kind": "shell", **common, "command": "sleep 1"},
        {"kind": "subagent", **common, "chat": "ahp-chat:/sub"},
    )


def duration(random: Random) -> Json:
    return {"duration": one(random, -5, 0, 1, 1234, 86_400_000)}


CHAT: Final[Mapping[str, Make]] = {
    "turnStarted": _of_turn(
        "turnStarted",
        lambda r: {
            "startedAt": one(r, *TIMES),
            "message": message(r),
            **some(r, queuedMessageId=one(r, "m1", "m2", "s1")),
        },
    ),
    "turnComplete": _of_turn("turnComplete", duration),
    "turnCancelled": _of_turn("turnCancelled", duration),
    "error": _of_turn(
        "error",
        lambda r: {
            **duration(r),
            "part": {"error": {"errorType": "e", "message": "m"}, **some(r, resumable=r.random() < 0.7)},
        },
    ),
    "turnResume": _of_turn("turnResume", lambda _: {}),
    "responsePart": _of_turn("responsePart", lambda r: {"part": part(r)}),
    "delta": _of_turn("delta", lambda r: {"partId": one(r, "p1", "p2", "c1"), "content": one(r, "a", "b", "")}),
    "reasoning": _of_turn("reasoning", lambda r: {"partId": one(r, "p2", "p3"), "content": "r"}),
    "toolCallStart": _of_call(
        "Start",
        lambda r: {
            "toolName": "bash",
            "displayName": "Bash",
            **some(r, intention="Look", contributor=contributor(r)),
        },
    ),
    "toolCallDelta": _of_call("Delta", lambda r: some(r, content="{", invocationMessage=text(r))),
    "toolCallReady": _of_call(
        "Ready",
        lambda r: {
            "invocationMessage": text(r),
            **some(
                r,
                toolInput=one(r, "{}", '{"a":1}'),
                confirmationTitle=text(r),
                editable=True,
                options=options(r),
                intention="See",
                contributor=contributor(r),
                confirmed=one(r, "not-needed", "setting"),
            ),
        },
    ),
    "toolCallConfirmed": _of_call(
        "Confirmed",
        lambda r: {
            "approved": r.random() < 0.6,
            **some(
                r,
                confirmed="user-action",
                reason=one(r, "denied", "skipped"),
                reasonMessage="Because",
                editedToolInput="{2}",
                selectedOptionId=one(r, "once", "reject", "other"),
            ),
        },
    ),
    "toolCallComplete": _of_call(
        "Complete", lambda r: {"result": result(r), **some(r, requiresResultConfirmation=r.random() < 0.7)}
    ),
    "toolCallResultConfirmed": _of_call("ResultConfirmed", lambda r: {"approved": r.random() < 0.5}),
    "toolCallContentChanged": _of_call("ContentChanged", lambda r: {"content": content(r)}),
    "toolCallAuthRequired": _of_call(
        "AuthRequired", lambda _: {"auth": {"reason": "required", "resource": {"resource": "https://example.org"}}}
    ),
    "toolCallAuthResolved": _of_call("AuthResolved", lambda _: {}),
    "usage": _of_turn("usage", lambda r: {"usage": {"inputTokens": r.randrange(9), "model": "m"}}),
    "inputRequested": lambda r: {"type": "chat/inputRequested", "request": request(r)},
    "inputAnswerChanged": _answer_changed,
    "inputCompleted": _input_completed,
    "pendingMessageSet": lambda r: {
        "type": "chat/pendingMessageSet",
        **one(r, {"kind": "steering", "id": one(r, "s1", "s2")}, {"kind": "queued", "id": one(r, "m1", "m2")}),
        "message": message(r),
    },
    "pendingMessageRemoved": lambda r: {
        "type": "chat/pendingMessageRemoved",
        "kind": one(r, "steering", "queued"),
        "id": one(r, "s1", "s2", "m1", "m2"),
    },
    # Complete orders: the official reducer sorts the rest.
    "queuedMessagesReordered": lambda r: {
        "type": "chat/queuedMessagesReordered",
        "order": one(r, ["m1", "m2"], ["m2", "m1", "m9"]),
    },
    "draftChanged": lambda r: {"type": "chat/draftChanged", **some(r, draft=message(r))},
    "activityChanged": lambda r: {"type": "chat/activityChanged", **some(r, activity="Thinks")},
    "isReadChanged": lambda r: {"type": "chat/isReadChanged", "isRead": r.random() < 0.5},
    "isArchivedChanged": lambda r: {"type": "chat/isArchivedChanged", "isArchived": r.random() < 0.5},
    "truncated": lambda r: {"type": "chat/truncated", **some(r, turnId=one(r, "t1", "old1"))},
    "turnsLoaded": lambda r: {
        "type": "chat/turnsLoaded",
        "turns": [_turn(r)],
        **some(r, turnsNextCursor="older"),
    },
    "backgroundWorkSet": lambda r: {"type": "chat/backgroundWorkSet", "work": _work(r)},
    "backgroundWorkRemoved": lambda r: {"type": "chat/backgroundWorkRemoved", "id": one(r, "w1", "w2")},
    "movableChanged": lambda r: {"type": "chat/movableChanged", "movable": r.random() < 0.5},
    "workingDirectorySet": lambda r: {
        "type": "chat/workingDirectorySet",
        "directory": one(r, "file:///a", "file:///b"),
    },
    "workingDirectoryRemoved": lambda r: {
        "type": "chat/workingDirectoryRemoved",
        "directory": one(r, "file:///a", "file:///b"),
    },
}


# --- sessions ---------------------------------------------------------------------------------------------------


def _chat(random: Random) -> Json:
    return {
        "resource": one(random, "ahp-chat:/1", "ahp-chat:/2"),
        "title": "Chat",
        "status": one(random, 1, 8),
        "modifiedAt": one(random, *TIMES),
    }


def _needed(random: Random) -> Json:
    call = {"toolCallId": "c1", "toolName": "bash", "displayName": "Bash", "invocationMessage": "Runs"}
    return one(
        random,
        {"kind": "chatInput", "id": "n1", "chat": "ahp-chat:/1", "request": {"id": "r1"}},
        {
            "kind": "toolConfirmation",
            "id": one(random, "n1", "n2"),
            "chat": "ahp-chat:/1",
            "turnId": "t1",
            "toolCall": {"status": "pending-confirmation", **call},
        },
        {
            "kind": "toolClientExecution",
            "id": "n3",
            "chat": "ahp-chat:/1",
            "turnId": "t1",
            "clientId": "one",
            "toolCall": {"status": "running", **call, "confirmed": "not-needed"},
        },
    )


def _server(random: Random, name: str) -> Json:
    states = ({"kind": "stopped"}, {"kind": "starting", "blocking": True}, {"kind": "ready"})
    return {
        "type": "mcpServer",
        "id": name,
        "uri": f"mcp://{name}",
        "name": name,
        "state": one(random, *states),
    }


def _customization(random: Random) -> Json:
    children = [
        {"type": "skill", "id": "skill", "uri": "file:///s", "name": "Skill"},
        _server(random, "inner"),
    ]
    return one(
        random,
        {"type": "plugin", "id": "plugin", "uri": "file:///p", "name": "Plugin", **some(random, children=children)},
        {
            "type": "directory",
            "id": "folder",
            "uri": "file:///d",
            "name": "Folder",
            "contents": "skill",
            "enabled": True,
            "writable": False,
            "children": children,
        },
        _server(random, "server"),
    )


def _enablement(random: Random) -> list[Json]:
    scope = one(random, "global", "session")
    return one(random, [], [{"kind": scope, "enabled": random.random() < 0.5}])


def custom_id(random: Random) -> str:
    return one(random, "plugin", "folder", "server", "inner", "skill", "none")


SESSION: Final[Mapping[str, Make]] = {
    "ready": lambda _: {"type": "session/ready"},
    "creationFailed": lambda _: {"type": "session/creationFailed", "error": {"errorType": "e", "message": "m"}},
    "chatAdded": lambda r: {"type": "session/chatAdded", "summary": _chat(r)},
    "chatRemoved": lambda r: {"type": "session/chatRemoved", "chat": one(r, "ahp-chat:/1", "ahp-chat:/2")},
    "chatUpdated": lambda r: {
        "type": "session/chatUpdated",
        "chat": one(r, "ahp-chat:/1", "ahp-chat:/2"),
        "changes": some(r, title="New", status=24, activity="Thinks", modifiedAt=one(r, *TIMES)),
    },
    "chatsReordered": lambda r: {
        "type": "session/chatsReordered",
        "chats": one(r, ["ahp-chat:/2", "ahp-chat:/1"], ["ahp-chat:/1"], ["ahp-chat:/1", "ahp-chat:/1"]),
    },
    "defaultChatChanged": lambda r: {
        "type": "session/defaultChatChanged",
        **some(r, defaultChat=one(r, "ahp-chat:/1", "ahp-chat:/2")),
    },
    "titleChanged": lambda r: {"type": "session/titleChanged", "title": one(r, "A", "B")},
    "isReadChanged": lambda r: {"type": "session/isReadChanged", "isRead": r.random() < 0.5},
    "isArchivedChanged": lambda r: {"type": "session/isArchivedChanged", "isArchived": r.random() < 0.5},
    "activityChanged": lambda r: {"type": "session/activityChanged", **some(r, activity="Thinks")},
    "configChanged": lambda r: {
        "type": "session/configChanged",
        "config": {one(r, "mode", "model"): one(r, "a", 1)},
        **some(r, replace=True),
    },
    "metaChanged": lambda r: {"type": "session/metaChanged", **some(r, _meta={"a": 1})},
    "serverToolsChanged": lambda r: {"type": "session/serverToolsChanged", "tools": [{"name": one(r, "a", "b")}]},
    "activeClientSet": lambda r: {
        "type": "session/activeClientSet",
        "activeClient": {"clientId": one(r, "one", "two"), "tools": [{"name": one(r, "a", "b")}]},
    },
    "activeClientRemoved": lambda r: {"type": "session/activeClientRemoved", "clientId": one(r, "one", "two")},
    "inputNeededSet": lambda r: {"type": "session/inputNeededSet", "request": _needed(r)},
    "inputNeededRemoved": lambda r: {"type": "session/inputNeededRemoved", "id": one(r, "n1", "n2", "n3")},
    "customizationsChanged": lambda r: {
        "type": "session/customizationsChanged",
        "customizations": [_customization(r)],
    },
    "customizationUpdated": lambda r: {"type": "session/customizationUpdated", "customization": _customization(r)},
    "customizationRemoved": lambda r: {"type": "session/customizationRemoved", "id": custom_id(r)},
    "customizationToggled": lambda r: {
        "type": "session/customizationToggled",
        "id": custom_id(r),
        "enablement": _enablement(r),
    },
    "mcpServerStateChanged": lambda r: {
        "type": "session/mcpServerStateChanged",
        "id": custom_id(r),
        "state": {"kind": "ready"},
        **some(r, channel="mcp://one"),
    },
    "mcpServerStartRequested": lambda r: {"type": "session/mcpServerStartRequested", "id": custom_id(r)},
    "mcpServerStopRequested": lambda r: {"type": "session/mcpServerStopRequested", "id": custom_id(r)},
    "mcpServerBackgroundRequested": lambda r: {
        "type": "session/mcpServerBackgroundRequested",
        "id": custom_id(r),
    },
    "workingDirectorySet": lambda r: {
        "type": "session/workingDirectorySet",
        "directory": one(r, "file:///a", "file:///b"),
    },
    "workingDirectoryRemoved": lambda r: {
        "type": "session/workingDirectoryRemoved",
        "directory": one(r, "file:///a", "file:///b"),
    },
    "workingDirectoryReplaced": lambda r: {
        "type": "session/workingDirectoryReplaced",
        "directory": one(r, "file:///a", "file:///b"),
        "replacement": one(r, "file:///a", "file:///c"),
    },
}

ROOT: Final[Mapping[str, Make]] = {
    "agentsChanged": lambda r: {
        "type": "root/agentsChanged",
        "agents": [{"provider": one(r, "a", "b"), "displayName": "A", "description": "", "models": []}],
    },
    "activeSessionsChanged": lambda r: {"type": "root/activeSessionsChanged", "activeSessions": r.randrange(3)},
    "configChanged": lambda r: {
        "type": "root/configChanged",
        "config": {one(r, "x", "y"): r.randrange(3)},
        **some(r, replace=True),
    },
}

TERMINAL: Final[Mapping[str, Make]] = {
    "data": lambda r: {"type": "terminal/data", "data": one(r, "out\n", "more")},
    "input": lambda _: {"type": "terminal/input", "data": "x"},
    "resized": lambda r: {"type": "terminal/resized", "cols": one(r, 80, 120), "rows": 24},
    "claimed": lambda r: {
        "type": "terminal/claimed",
        "claim": one(
            r,
            {"kind": "client", "clientId": "one"},
            {"kind": "session", "session": "ahp-session:/1", "chat": "ahp-chat:/1"},
        ),
    },
    "titleChanged": lambda r: {"type": "terminal/titleChanged", "title": one(r, "A", "B")},
    "cwdChanged": lambda r: {"type": "terminal/cwdChanged", "cwd": one(r, "file:///a", "file:///b")},
    "exited": lambda r: {"type": "terminal/exited", **some(r, exitCode=one(r, 0, 3))},
    "cleared": lambda _: {"type": "terminal/cleared"},
    "commandDetectionAvailable": lambda _: {"type": "terminal/commandDetectionAvailable"},
    "commandExecuted": lambda r: {
        "type": "terminal/commandExecuted",
        "commandId": one(r, "c1", "c2"),
        "commandLine": "ls",
        "timestamp": one(r, 1, 2),
    },
    "commandFinished": lambda r: {
        "type": "terminal/commandFinished",
        "commandId": one(r, "c1", "c2"),
        **some(r, exitCode=0, durationMs=5),
    },
}


def _file(random: Random) -> Json:
    uri = one(random, "file:///a", "file:///b")
    side = {"uri": uri, "content": {"uri": f"{uri}?{random.randrange(2)}"}}
    return {"id": uri, "edit": some(random, before=side, after=side, diff={"added": 1, "removed": 0})}


def _operation(random: Random) -> Json:
    return {"id": one(random, "undo", "stage"), "label": "Undo", "scopes": ["changeset"], "status": "idle"}


def _status(random: Random, *others: str) -> Json:
    status = one(random, "error", *others)
    return {"status": status, **some(random, error={"errorType": "e", "message": "m"})}


CHANGESET: Final[Mapping[str, Make]] = {
    "statusChanged": lambda r: {"type": "changeset/statusChanged", **_status(r, "computing", "ready")},
    "fileSet": lambda r: {"type": "changeset/fileSet", "file": _file(r)},
    "fileRemoved": lambda r: {"type": "changeset/fileRemoved", "fileId": one(r, "file:///a", "file:///b")},
    "filesReviewChanged": lambda r: {
        "type": "changeset/filesReviewChanged",
        "files": one(r, ["file:///a"], ["file:///b", "file:///a"]),
        "reviewed": r.random() < 0.5,
    },
    "contentChanged": lambda r: {
        "type": "changeset/contentChanged",
        "files": one(r, [], [_file(r)]),
        **some(r, operations=one(r, [], [_operation(r)])),
    },
    "operationsChanged": lambda r: {"type": "changeset/operationsChanged", **some(r, operations=[_operation(r)])},
    "operationStatusChanged": lambda r: {
        "type": "changeset/operationStatusChanged",
        "operationId": one(r, "undo", "stage"),
        **_status(r, "idle", "running"),
    },
    "cleared": lambda _: {"type": "changeset/cleared"},
}

INITIAL: Final[Mapping[str, Json]] = {
    "terminal": {
        "title": "ls",
        "content": [],
        "lifecycle": {"status": "running"},
        "claim": {"kind": "session", "session": "ahp-session:/1", "chat": "ahp-chat:/1"},
        "isPty": False,
    },
    "changeset": {"status": "computing", "files": []},
    "root": {"agents": [], "config": {"schema": {"type": "object", "properties": {}}, "values": {}}},
    "session": {
        "provider": "jumpseat",
        "title": "",
        "status": 33,
        "lifecycle": "creating",
        "activeClients": [],
        "chats": [],
        "config": {"schema": {"type": "object", "properties": {}}, "values": {}},
    },
    "chat": {
        "resource": "ahp-chat:/1",
        "title": "",
        "status": 97,
        "modifiedAt": TIMES[0],
        "turns": [],
    },
}
MAKERS: Final[Mapping[str, Mapping[str, Make]]] = {
    "root": ROOT,
    "session": SESSION,
    "chat": CHAT,
    "terminal": TERMINAL,
    "changeset": CHANGESET,
}


def actions(random: Random, reducer: str, length: int) -> list[Json]:
    """Return a sequence of random actions; those that begin and fill turns are frequent."""
    makers = MAKERS[reducer]
    names = list(makers)
    if reducer == "chat":
        frequent = ("turnStarted", "toolCallStart", "toolCallReady", "toolCallConfirmed", "toolCallComplete")
        names += 3 * [*frequent, "responsePart", "delta"]
    return [makers[random.choice(names)](random) for _ in range(length)]
