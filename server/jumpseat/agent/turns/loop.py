"""Run one prompt: model call, tool calls, model call, until the model calls no more tools.

All functions take a session, and all their effects are events. A prompt ends in one of three ways: the model is
done or a tool call was rejected, a model call failed for good or a hook ended the run (``session.error``), or the
run was cancelled (``abort``). ``session.idle`` follows at the end of the queue's run.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypeAlias

import anyio
import anyio.lowlevel
from msgspec.structs import replace

from jumpseat.agent.blocks import ToolUseBlock
from jumpseat.agent.clock import new_id, utc_now
from jumpseat.agent.compaction.compaction import compact_after_refusal, compact_if_needed
from jumpseat.agent.compaction.overflow import (
    check_progress,
    explain_overflow,
    learn_from_server,
    learn_limit,
    notice_silent_cut,
)
from jumpseat.agent.conversation import tokens
from jumpseat.agent.conversation.attachments import complete_attachments
from jumpseat.agent.conversation.conversation import INTERRUPTED, media_problems
from jumpseat.agent.conversation.portability import check_capability, check_portability
from jumpseat.agent.conversation.prompt import wrap_prompt_in_thread
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import Completed, ModelRequest
from jumpseat.agent.model_calls.auto_mode import CAUSE, SwitchToAutoError
from jumpseat.agent.model_calls.model_call import Answer, ask_model, publish_answer, report_error
from jumpseat.agent.model_calls.requests import (
    build_request,
    find_model,
    system_message,
    tell_of_small_window,
    uses_xml,
    warn_of_missing,
    warn_of_unknown_tools,
    warn_of_written_calls,
)
from jumpseat.agent.model_calls.structured import RESPONSE_FORMAT, problems_of, repair_request
from jumpseat.agent.observation import PromptRun
from jumpseat.agent.session import limits
from jumpseat.agent.session.autopilot import SOURCE
from jumpseat.agent.session.hooks import WARNING, stop_of
from jumpseat.agent.session.prefix import SentPrefix
from jumpseat.agent.session.queue_items import Prompt
from jumpseat.agent.session.session import Session
from jumpseat.agent.session.skill_calls import invoked_skill, load_skill
from jumpseat.agent.turns.silence import asks_again, warn_of_dropped_tools, warn_of_silence
from jumpseat.errors import (
    ConfigError,
    InvalidRequestError,
    JumpseatError,
    PromptBlockedError,
    ProviderContextError,
    ProviderError,
    ResponseFormatError,
    StoreError,
)
from jumpseat_protocol import events

log = logging.getLogger(__name__)

MOST_BLOCKED_ENDS: Final = 8
"""How often hooks may make one run go on."""


async def run_prompt(session: Session, prompt: Prompt) -> None:
    """Run ``prompt`` to its end. Errors become ``session.error``; nothing but cancellation is raised."""
    record = PromptRun(
        session_id=session.id,
        prompt_id=prompt.id,
        interaction_id=prompt.interaction_id,
        text=prompt.text,
        model=session.settings.for_model().options.model,
        agent=session.settings.options.agent,
        parent=prompt.trace,
        opened_in=session.opened_in,
    )
    with session.services.observers.watch(record):
        await _run_turns(session, prompt, record)


async def _run_turns(session: Session, prompt: Prompt, record: PromptRun) -> None:
    open_turn: str | None = None
    try:
        session.emit(events.PendingMessagesModified())
        for notification in session.untold_notifications():
            session.emit(notification)
        if not prompt.continues:
            await _add_user_messages(session, prompt, turn_id=None)
        agent = session.settings.custom_agent
        system = await system_message(session)
        times_kept_going = 0
        # Whether the model has to answer even if no prompt is added.
        is_owed = True
        session.autopilot.begin()
        turn = 0
        while True:
            if turn > 0:
                # If the model and the tools never block, other tasks still have to run, an abort above all.
                await anyio.lowlevel.checkpoint()
            turn_id = open_turn = str(turn)
            prompt.turn, prompt.turn_begun_s = turn, anyio.current_time()
            session.emit(events.TurnStart(turn_id=turn_id, interaction_id=prompt.interaction_id))
            if turn > 0 and not (await _add_steering(session, prompt, turn_id) or is_owed):
                # Hooks have blocked all prompts that made the run go on.
                open_turn = None
                session.emit(events.TurnEnd(turn_id=turn_id))
                session.autopilot.end(prompt.message_ids, None)
                return
            if agent is not (agent := session.settings.custom_agent):
                # Another agent was selected while the prompt runs.
                system = await system_message(session)
            if prompt.continues and (calls := session.conversation.open_calls()):
                # Their MCP servers may still be starting.
                await session.tools.ready()
                outcome, tools_status = await _run_calls(session, calls, turn_id)
            else:
                outcome, tools_status = await _take_turn(session, prompt, system, turn_id)
            open_turn = None
            session.autopilot.end_turn(again=outcome == "again")
            session.emit(events.TurnEnd(turn_id=turn_id, tools_status=tools_status))
            is_owed = outcome == "again"
            if not is_owed and not session.queue.has_steering():
                done = outcome == "done" or session.autopilot.is_complete
                if done and session.work is not None and await _remind_of_check(session, prompt):
                    is_owed = True
                    turn += 1
                    continue
                end = await _ask_to_end(session, prompt, times_kept_going) if done else "allowed"
                is_owed = end == "blocked"
                times_kept_going += is_owed
                # A steering prompt may have arrived while the hook ran.
                if not is_owed and not session.queue.has_steering():
                    text = session.autopilot.continuation() if done and end != "ordered" else None
                    if text is None:
                        session.autopilot.end(prompt.message_ids, None if done else "rejected")
                        _leave_reached_objective(session)
                        return
                    _continue_in_autopilot(session, prompt, text)
                    is_owed, times_kept_going = True, 0
            turn += 1
    except anyio.get_cancelled_exc_class():
        record.aborted = True
        _report_abort(session, open_turn)
        session.autopilot.end(prompt.message_ids, "aborted")
        raise
    except Exception as exc:
        record.error_type = exc.error_type if isinstance(exc, JumpseatError) else "internal"
        record.reason = str(exc) if isinstance(exc, StoreError | ConfigError) else None
        _report_failure(session, prompt, open_turn, exc)
        session.autopilot.end(prompt.message_ids, "error")
    finally:
        await session.tools.settle()


def _continue_in_autopilot(session: Session, prompt: Prompt, text: str) -> None:
    """Make the model continue with a prompt."""
    session.announce_pause()
    session.emit(
        events.UserMessage(
            content="",
            transformed_content=text,
            message_id=new_id(),
            agent_mode="autopilot",
            delivery="idle",
            interaction_id=prompt.interaction_id,
            source=SOURCE,
            is_autopilot_continuation=True,
        )
    )


def _leave_reached_objective(session: Session) -> None:
    """Leave autopilot mode if the prompt has completed the objective."""
    if session.autopilot.has_reached_objective:
        session.change_mode("interactive")


async def _add_steering(session: Session, prompt: Prompt, turn_id: str) -> bool:
    """Add the steering prompts to the conversation, and return whether there are any.

    A task that was complete continues with them. A prompt that a hook blocks is left out.
    """
    taken = session.queue.take_steering()
    if taken:
        _leave_reached_objective(session)
        session.autopilot.reopen()
    is_added = False
    for steering in taken:
        try:
            await _add_user_messages(session, steering, turn_id=turn_id)
        except PromptBlockedError as error:
            prompt.run.steered_by.append(steering.run)
            session.emit(events.SessionWarning(warning_type=WARNING, message=f"A prompt was not sent: {error}"))
        else:
            is_added = True
            _merge_steering(prompt, steering)
    return is_added


async def _remind_of_check(session: Session, prompt: Prompt) -> bool:
    """Remind the model of the project's check if it has changed files without any; return whether that was done."""
    # Imported with the first change of a file.
    from jumpseat.agent.session.checks import SOURCE as CHECK_REMINDER
    from jumpseat.agent.session.checks import reminder

    text = await reminder(session, prompt)
    if text is None:
        return False
    session.autopilot.reopen()
    session.add_context(text, CHECK_REMINDER)
    return True


async def _ask_to_end(session: Session, prompt: Prompt, times: int) -> Literal["allowed", "blocked", "ordered"]:
    """Call the hooks for the end of a run, which they have blocked some ``times`` already.

    If one blocks it, the model is given the reason. One may also order the end, of autopilot mode, too.
    """
    if times >= MOST_BLOCKED_ENDS:
        text = f"Hooks have made the run go on {times} times: it ends now, without asking them"
        session.emit(events.SessionWarning(warning_type=WARNING, message=text))
        return "ordered"
    again = times > 0
    answer = await session.hooks.agent_stop(session.transcript_path, again=again)
    if (stopped := stop_of(answer)) is not None:
        session.emit(events.SessionWarning(warning_type=WARNING, message=str(stopped)))
        return "ordered"
    if answer.decision == "block":
        reason = answer.reason or "Go on."
    elif (reason := await session.call_stop_hook(prompt.run, again=again)) is None:
        return "allowed"
    session.autopilot.reopen()
    session.add_context(reason)
    return "blocked"


def _merge_steering(prompt: Prompt, steering: Prompt) -> None:
    """Merge a steering prompt into the running one: its options apply from now on, and both end together."""
    prompt.headers = {**prompt.headers, **steering.headers}
    prompt.billable = steering.billable
    prompt.agent_mode = steering.agent_mode or prompt.agent_mode
    if steering.response_format is not None:
        prompt.response_format, prompt.repaired = steering.response_format, False
    if steering.tool_choice is not None:
        prompt.tool_choice, prompt.called = steering.tool_choice, False
    if steering.hosted_tools is not None:
        prompt.hosted_tools = steering.hosted_tools
    prompt.run.steered_by.append(steering.run)
    prompt.message_ids += steering.message_ids


async def _add_user_messages(session: Session, prompt: Prompt, turn_id: str | None) -> None:
    """Add a prompt to the conversation, and before it those that were sent together with it."""
    for earlier in prompt.before:
        await _add_user_message(session, earlier, turn_id, bare=True)
    await _add_user_message(session, prompt, turn_id)


async def _add_user_message(session: Session, prompt: Prompt, turn_id: str | None, *, bare: bool = False) -> None:
    """Add a prompt to the conversation, with the changes and the context of hooks; these see no notification.

    A ``bare`` prompt is sent without the date and the reminder.
    """
    if prompt.notification is not None:
        session.emit(prompt.notification)
        return
    await session.tools.discover(prompt.text)
    attachments = await complete_attachments(prompt.attachments, session.settings.cwd)
    preface = await session.call_start_hook()
    submitted = await session.hooks.user_prompt_submitted(prompt.text)
    wanted = submitted.modified_prompt if submitted.modified_prompt is not None else prompt.text
    text = await wrap_prompt_in_thread(
        session.tools.expand_mentions(f"{preface}\n\n{wanted}" if preface else wanted),
        attachments,
        utc_now(),
        session.settings.cwd,
        after_abort=session.conversation.interrupted,
        tools_gone=() if bare else session.take_tools_gone(),
        bare=bare,
    )
    transformed = await session.hooks.user_prompt_transformed(prompt.text, text)
    contexts = [submitted.additional_context]
    if session.start_source is not None:
        started = await session.hooks.session_start(session.start_source, prompt.text)
        session.start_source = None
        contexts.append(started.additional_context)
    for context in contexts:
        if context:
            session.add_context(context)
    session.emit(
        events.UserMessage(
            content=prompt.shown,
            message_id=prompt.id,
            transformed_content=transformed.modified_transformed_prompt or text,
            attachments=attachments or None,
            agent_mode=prompt.agent_mode or session.settings.mode if prompt.shows_mode else None,
            delivery=prompt.delivery,
            interaction_id=prompt.interaction_id,
            source=prompt.source,
            turn_id=turn_id,
        )
    )
    for problem in media_problems(attachments):
        session.emit(
            events.SessionWarning(warning_type="attachment", message=f"An attachment is not sent: {problem}.")
        )
    _add_invoked_skill(session, prompt.text, attachments)
    limits.add_status(session)


def _add_invoked_skill(session: Session, prompt: str, attachments: Sequence[Mapping[str, object]]) -> None:
    """Add the text of the skill or the command file whose slash command a prompt begins with, if any."""
    skill = invoked_skill(session, prompt)
    if skill is None:
        return

    def complete(text: str) -> str:
        # Few sessions have command files.
        from jumpseat.agent.session.command_files import expand

        _, *args = prompt.split(maxsplit=1)
        return expand(text, "".join(args).strip(), attachments, session.settings.cwd)

    try:
        source, context = load_skill(session, skill, "user-invoked", complete)
    except StoreError as error:
        problem = f"The skill {skill.name!r} cannot be loaded: {error}."
        session.emit(events.SessionWarning(warning_type="skill", message=problem))
    else:
        session.add_context(context, source)
        if skill.ignored:
            text = f"Fields of {skill.path.name} that have no effect here: {', '.join(skill.ignored)}"
            session.emit(events.SessionInfo(info_type="skill", message=text))


TurnOutcome: TypeAlias = Literal["again", "done", "rejected"]
"""The result of a turn: call the model again, the model is done, or a tool call was rejected."""


async def _take_turn(
    session: Session, prompt: Prompt, system: str, turn_id: str
) -> tuple[TurnOutcome, events.ToolsStatus | None]:
    """Run one turn: one model call, and the tool calls of the answer; return the status of the calls, too."""
    resolved, request, estimate, answer = await _call_model(session, prompt, system, turn_id)
    message = publish_answer(session, prompt, resolved, estimate, answer, turn_id)
    await session.report_budget()
    prompt.run.answer = message
    is_asked_again = asks_again(session, prompt, request, answer.completed)
    if not is_asked_again:
        warn_of_silence(session, request, answer.completed)
    warn_of_dropped_tools(session, resolved, request, estimate, answer.completed)
    warn_of_written_calls(session, resolved, request, answer.completed)
    calls = answer.completed.message.tool_uses()
    if not calls:
        if is_asked_again or answer.completed.stop_reason == "pause_turn":
            return "again", None
        done = _check_response_format(session, prompt, request, answer.completed)
        return "done" if done else "again", None
    return await _run_calls(session, calls, turn_id)


async def _run_calls(
    session: Session, calls: list[ToolUseBlock], turn_id: str
) -> tuple[TurnOutcome, events.ToolsStatus | None]:
    """Run the tool calls of an answer; return the outcome of the turn, and the status of the calls."""
    if session.delivery.announcements is not None:
        # Nothing is changed for a session that another process has taken over.
        try:
            await session.delivery.announcements.wait()
        except BaseException:
            _interrupt(session, calls)
            raise
    result = await session.tools.run(calls, turn_id)
    if result.stopped is not None:
        raise result.stopped
    return "rejected" if result.ends_turn else "again", result.status


def _interrupt(session: Session, calls: list[ToolUseBlock]) -> None:
    """End calls that have not begun: the run was aborted, or the session cannot be stored."""
    for call in calls:
        error = events.ToolError(message=INTERRUPTED, code="failure")
        try:
            session.emit(events.ToolExecutionComplete(tool_call_id=call.id, success=False, error=error))
        except StoreError:
            # Whoever runs the session next ends the calls.
            return


def _check_required_tools(session: Session, prompt: Prompt) -> None:
    """Check that the tools are available that the prompts of a run require.

    Raises:
        InvalidRequestError: a tool is not available.
    """
    for sent in (*prompt.before, prompt):
        if sent.required_tool is not None and sent.required_tool not in session.tools.names():
            raise InvalidRequestError(f"requiredTool: the tool {sent.required_tool!r} is not available")


async def _call_model(
    session: Session, prompt: Prompt, system: str, turn_id: str
) -> tuple[ResolvedModel, ModelRequest, tokens.TokenEstimate, Answer]:
    """Call the model until it answers; compactions and a switch to auto mode may change the request and the model.

    Returns:
        The model that answered, its request, the estimated tokens of the request, and the answer.

    Raises:
        JumpseatError: the call failed for good.
    """
    shortened = False
    while True:
        limits.check(session)
        try:
            await session.tools.ready()
            if turn_id == "0":
                _check_required_tools(session, prompt)
            resolved = await find_model(session)
            await session.admit(resolved)
        except JumpseatError as error:
            await report_error(session, error, recoverable=False)
            raise
        # An abort may have arrived while the model was resolved.
        await anyio.lowlevel.checkpoint_if_cancelled()
        request = build_request(session, prompt, system, resolved)
        session.note_offered_tools(tool.name for tool in request.tools)
        if turn_id != "0" and session.conversation.ends_in_summary:
            request = replace(request, unasked=True)
        estimate = tokens.of_request(request)
        if await learn_from_server(session, resolved, request, estimate):
            continue
        check_progress(prompt.progress, session.conversation.compactions, request.messages, resolved)
        session.prompt_limit = resolved.known.prompt_limit
        if await _clear_results(session, resolved, request, estimate):
            continue
        if await compact_if_needed(session, resolved, request, estimate):
            continue
        compactions = session.conversation.compactions
        _warn_about_portability(session, resolved, request)
        warn_of_missing(session, prompt, resolved, request)
        tell_of_small_window(session, resolved, request)
        await warn_of_unknown_tools(session, request)
        _warn_about_capability(session, resolved, request)
        await _note_prefix(session, request)
        try:
            answer = await ask_model(session, prompt, resolved, request, turn_id)
        except SwitchToAutoError as switch:
            session.use_model(switch.model, None, cause=CAUSE)
        except ProviderContextError as error:
            # A compaction may have changed the conversation during the call.
            if session.conversation.compactions != compactions:
                continue
            if learn_limit(session, resolved, error, request, estimate):
                continue
            request = build_request(session, prompt, system, resolved)
            if shortened or not await compact_after_refusal(session, resolved, request):
                explain_overflow(error, request, estimate, resolved)
                raise
            shortened = True
        else:
            prompt.called = True
            prompt.progress.note(answer.completed.message.tool_uses())
            if answer.completed.cleared is not None:
                # The count is that of a shorter request.
                from jumpseat.agent.model_calls.context_editing import report_cleared

                report_cleared(session, resolved, estimate, answer.completed.cleared)
            elif answer.completed.usage is not None:
                counted = answer.completed.usage.input_tokens
                session.compactor.calibrate(estimate.total, counted)
                notice_silent_cut(session, resolved, estimate, counted)
            if session.conversation.compactions != compactions:
                estimate = tokens.of_request(replace(request, messages=session.conversation.messages()))
            return resolved, request, estimate, answer


async def _note_prefix(session: Session, request: ModelRequest) -> None:
    """Note a request, and log if it does not begin as the last one, also that before the session was opened."""
    is_main, sent = session.identity is None, session.sent_prefix
    if sent is None:
        # A new session has no file.
        earlier = is_main and len(request.messages) > 1
        stored = await anyio.to_thread.run_sync(session.storage.read_prefix) if earlier else None
        sent = session.sent_prefix = SentPrefix(stored)
    if (found := sent.note(request, session.conversation)) is not None:
        sent.log(session.id, found)
    if is_main and (digest := sent.changed(found, request)) is not None:
        try:
            await anyio.to_thread.run_sync(session.storage.write_prefix, digest)
        except StoreError as error:
            log.warning("session %s: %s", session.id, error)


async def _clear_results(
    session: Session, resolved: ResolvedModel, request: ModelRequest, estimate: tokens.TokenEstimate
) -> bool:
    """Clear results of tools if the request nearly fills the context; return whether the conversation changed.

    A summary that is being made will replace them.
    """
    compactor = session.compactor
    used = compactor.apply_calibration(estimate.total)
    if request.context_editing is not None and request.context_editing.kept:
        # The provider does it.
        return False
    if compactor.trigger is not None or not session.compaction_policy.clears(used, resolved.known.prompt_limit):
        return False
    # Most sessions end before.
    from jumpseat.agent.clearing.clear import clear_results

    return await clear_results(session, resolved, request, estimate)


def _check_response_format(session: Session, prompt: Prompt, request: ModelRequest, completed: Completed) -> bool:
    """Return whether the answer matches the requested schema; if not, ask the model once to correct it.

    Raises:
        ResponseFormatError: the corrected answer does not match either, or the model refused to answer.
    """
    if request.response_format is None:
        return True
    problems = problems_of(completed.message.text(), request.response_format.schema)
    if not problems:
        return True
    if completed.stop_reason == "refusal":
        raise ResponseFormatError("the model refused to answer in the requested format")
    if completed.stop_reason == "content_filter":
        raise ResponseFormatError(
            "a content filter of the provider ended the answer before it matched the requested format"
        )
    if prompt.repaired:
        raise ResponseFormatError(f"the answer does not match the requested schema: {'; '.join(problems)}")
    prompt.repaired = True
    session.add_context(repair_request(problems), source=RESPONSE_FORMAT)
    return False


def _warn_about_portability(session: Session, resolved: ResolvedModel, request: ModelRequest) -> None:
    """Warn the user about content that cannot be sent to the model unchanged, if it is new."""
    family = resolved.model.signs_as
    found = check_portability(request.messages, family, vision=request.vision)
    # The same limits of another provider are worth a warning too.
    if found and (family, found) != session.warned.portability:
        text = found.describe(resolved.info.id)
        session.emit(events.SessionWarning(warning_type="portability", message=text))
    session.warned.portability = family, found


def _warn_about_capability(session: Session, resolved: ResolvedModel, request: ModelRequest) -> None:
    """Warn the user about capabilities that the request needs and the model is known to lack, if it is new.

    The request is sent anyway, because the known capabilities may be out of date.
    """
    can = resolved.model.capabilities(resolved.wire_name)
    found = check_capability(request, resolved.known, can, xml_tools=uses_xml(resolved.info))
    if found and found != session.warned.capability:
        session.emit(events.SessionWarning(warning_type="capability", message=found))
    session.warned.capability = found


def _report_abort(session: Session, open_turn: str | None) -> None:
    """Publish the abort of the run, and end the open turn."""
    try:
        session.record_abort()
        if open_turn is not None:
            session.emit(events.TurnEnd(turn_id=open_turn))
    except StoreError as error:
        log.error("session %s: cannot write an abort to the log: %s", session.id, error)


def _report_failure(session: Session, prompt: Prompt, open_turn: str | None, exc: Exception) -> None:
    """End the open turn and publish the error that ends the prompt."""
    if isinstance(exc, ProviderError):
        attempts = f" (tried {exc.attempts} times)" if exc.attempts > 1 else ""
        payload = events.SessionError(
            error_type=exc.error_type,
            message=events.FAILED + (exc.explanation or f"{exc}{attempts}"),
            status_code=exc.status,
            error_code=exc.code,
        )
    elif isinstance(exc, JumpseatError):
        payload = events.SessionError(error_type=exc.error_type, message=f"{events.FAILED}{exc}")
    else:
        log.error("session %s: internal error in a turn", session.id, exc_info=exc)
        payload = events.SessionError(error_type="internal", message=f"{events.FAILED}internal error")
    payload.originating_message_id = prompt.id
    try:
        if open_turn is not None:
            session.emit(events.TurnEnd(turn_id=open_turn))
    except JumpseatError:
        log.debug("session %s: cannot write the end of a failed turn to the log", session.id)
    prompt.run.error = session.fail(payload)
