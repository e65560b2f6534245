"""Commands about the session itself: its model, context, usage and name."""

from __future__ import annotations

from typing import Final

from jumpseat.agent.compaction.compaction import compact
from jumpseat.agent.session.context_usage import context_limits, measure_context
from jumpseat.commands.command import Builtin, Call
from jumpseat.commands.results import Choice, CommandResult, Option, Text
from jumpseat.errors import ConfigError, InvalidRequestError, ProviderError
from jumpseat.sessions.changes import set_session_name
from jumpseat.sessions.options import check_allowed, session_models

MODELS_SHOWN: Final = 50
"""The number of models that ``/model`` offers."""


async def _model(call: Call) -> CommandResult:
    session = call.session
    if call.args:
        check_allowed(session.settings, call.args)
        session.use_model(call.args, "model_command")
        return Text(f"The model is {call.args} from the next call on.")
    resolved = await session.services.models.resolve(session.settings)
    shown = f"The model is {resolved.info.id}"
    try:
        models = await session_models(call.server, session.settings)
    except (ConfigError, ProviderError):
        return Text(f"{shown}.")
    others = [model for model in models if model.id != resolved.info.id]
    if not others:
        return Text(f"{shown}.")
    options = [Option(model.id, model.name or model.id) for model in others[:MODELS_SHOWN]]
    return Choice("model", shown, tuple(options))


async def _compact(call: Call) -> Text:
    done = await compact(call.session, instructions=call.args or None)
    if not done.success:
        raise InvalidRequestError(f"the conversation was not compacted: {done.error}")
    before, after = done.pre_compaction_tokens, done.post_compaction_tokens
    return Text(f"The conversation was compacted from about {before} tokens to {after}.")


async def _context(call: Call) -> Text:
    usage, limits = measure_context(call.session), await context_limits(call.session)
    parts = {"system message": usage.system, "tools": usage.all_tools, "messages": usage.all_messages}
    share = round(100 * usage.total / max(1, limits.prompt))
    lines = [f"{name}: about {tokens} tokens" for name, tokens in parts.items()]
    return Text("\n".join([f"Context: about {usage.total} of {limits.prompt} tokens ({share} %)", *lines]))


async def _usage(call: Call) -> Text:
    models = call.session.metrics.models
    lines = [
        f"{name}: {used.calls} calls, {used.input_tokens} tokens in, {used.output_tokens} out"
        for name, used in models.items()
    ]
    return Text("\n".join(lines) or "No model has been called yet.")


async def _rename(call: Call) -> Text:
    set_session_name(call.server, call.session, call.args, by_user=True)
    return Text(f"The session is named {call.args}.")


async def _session(call: Call) -> Text:
    session, storage = call.session, call.server.registry.storage(call.session)
    workspace = storage.workspace
    rows = {
        "id": session.id,
        "name": workspace.name if workspace else None,
        "started": session.started_at,
        "folder": str(session.settings.cwd),
        "mode": session.settings.mode,
        "events": str(session.history.event_count),
        "stored in": storage.shown_path,
    }
    return Text("\n".join(f"{label}: {value}" for label, value in rows.items() if value))


COMMANDS: Final = (
    Builtin(
        "compact",
        "Summarize the conversation to free up context",
        _compact,
        hint="what the summary should keep",
        while_prompting=False,
    ),
    Builtin("context", "Show how much of the context is used", _context),
    Builtin("model", "Show or change the model", _model, aliases=("models",), hint="name of a model"),
    Builtin("rename", "Name the session", _rename, hint="name", required=True),
    Builtin("session", "Show the id, the folder and the name of the session", _session, aliases=("sessions",)),
    Builtin("usage", "Show the usage of this session since it was opened", _usage),
)
