"""A model that writes calls into its text in the form that it was trained on, seen as one that makes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from msgspec.structs import replace

from jumpseat.agent.blocks import (
    AssistantBlock,
    AssistantMessage,
    TextBlock,
    ToolUseBlock,
    UserMessage,
)
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.model import (
    Completed,
    Model,
    ModelEvent,
    ModelRequest,
    Rewriter,
    RewritingModel,
    TextDelta,
    ToolCallDelta,
    ToolSpec,
)
from jumpseat.agent.model_calls.answer_so_far import CONTINUE

if TYPE_CHECKING:
    from jumpseat.agent.model_calls.call_finder import EmbeddedCalls, WholeAnswer
    from jumpseat.agent.model_calls.xml_tools.arguments import WrittenCall

_FIRST: Final = frozenset("<[{`acf")
"""The characters with which the forms of written calls begin."""

_MARKS: Final = ("</", "<|", "<｜", "[TOOL_CALLS]", '"name"', "'name'", '"tool"', '"function"', '"tool_name"')
_MAX_SEARCHED: Final = 200_000

_AGAIN: Final = "The call could not be parsed: {problem}. Call the tool again, with all of its arguments."
_ALONE: Final = "Not run: only one call at a time is allowed, and this was not the first."
_CUT_OFF: Final = "Not run: the answer was cut off in this call. Send a shorter call, or several."


class WrittenCallsModel(RewritingModel):
    """A model that may write its calls into its text.

    They are taken from an answer that consists of calls alone, or with ``anywhere`` from the beginning or the end
    of an answer.
    """

    def __init__(self, inner: Model, *, anywhere: bool) -> None:
        super().__init__(inner)
        self._anywhere = anywhere

    def rewrite_request(self, request: ModelRequest) -> ModelRequest:
        return request

    def rewriter_for(self, request: ModelRequest) -> Rewriter | None:
        return _WithWrittenCalls(request, anywhere=self._anywhere) if _takes_calls(request) else None


def _takes_calls(request: ModelRequest) -> bool:
    """Return whether calls may be in the answer: its format is free, and it does not continue an earlier text."""
    choice, last = request.tool_choice, request.messages[-1] if request.messages else None
    continues = isinstance(last, UserMessage) and last.blocks == [TextBlock(CONTINUE)]
    free = request.response_format is None and (choice is None or choice.mode != "none")
    return bool(request.tools) and free and not continues


class _WithWrittenCalls(Rewriter):
    def __init__(self, request: ModelRequest, *, anywhere: bool) -> None:
        self._request = request
        self._anywhere = anywhere
        self._ids = _Ids()
        self._streamed = _Text(request, self._ids, anywhere=anywhere)

    @property
    def passes(self) -> bool:
        return self._streamed.is_plain

    def events_for(self, event: ModelEvent) -> Iterable[ModelEvent]:
        match event:
            case TextDelta():
                return self._deltas(self._streamed.feed(event.text))
            case ToolCallDelta():
                # The answer has other calls.
                return [*self._deltas(self._streamed.stop()), event]
            case Completed():
                rest = self._deltas(self._streamed.finish(cut_off=event.stop_reason == "max_tokens"))
                return [*rest, self._completed(event)]
            case _:
                return (event,)

    def _deltas(self, pieces: Iterable[str | ToolUseBlock]) -> list[ModelEvent]:
        deltas: list[ModelEvent] = []
        for piece in pieces:
            if isinstance(piece, str):
                deltas.append(TextDelta(piece))
            else:
                deltas.append(ToolCallDelta(piece.id, piece.name, piece.arguments_json))
        return deltas

    def _completed(self, completed: Completed) -> Completed:
        """Return the whole answer with its calls, which keep the ids of their deltas.

        Citations are dropped if there are any, since their texts change.
        """
        message = completed.message
        whole, text = message.text(), self._streamed
        if message.tool_uses() or not (self._anywhere or whole.lstrip()[:1] in _FIRST):
            return completed
        if text.is_plain and whole.startswith(text.source):
            return completed
        if text.source != whole:
            # It was not streamed, or not exactly: reasoning may have been separated from it.
            if len(whole) > _MAX_SEARCHED:
                return completed
            text = _Text(self._request, self._ids.again(), anywhere=self._anywhere)
            text.feed(whole)
            text.finish(cut_off=completed.stop_reason == "max_tokens")
        pieces = text.pieces
        calls = [piece for piece in pieces if isinstance(piece, ToolUseBlock)]
        if not calls:
            return completed
        shown = "".join(piece for piece in pieces if isinstance(piece, str))
        blocks: list[AssistantBlock] = [block for block in message.blocks if not isinstance(block, TextBlock)]
        if shown.strip():
            blocks.append(TextBlock(shown))
        reason = "tool_use" if completed.stop_reason in ("end_turn", "stop_sequence") else completed.stop_reason
        answer = AssistantMessage([*blocks, *calls])
        return replace(completed, message=answer, stop_reason=reason, written_for=text.parser)


class _Ids:
    """The ids of the calls of an answer, by their number."""

    def __init__(self, known: dict[int, str] | None = None) -> None:
        self._known: dict[int, str] = {} if known is None else known
        self.count = 0

    def again(self) -> _Ids:
        """Return the same ids from the first call on."""
        return _Ids(self._known)

    def next(self) -> str:
        number, self.count = self.count, self.count + 1
        return self._known.setdefault(number, f"call_{uuid4().hex}")


class _Text:
    """Separates the text of one answer into text and calls."""

    def __init__(self, request: ModelRequest, ids: _Ids, *, anywhere: bool) -> None:
        self._request = request
        self._ids = ids
        self._anywhere = anywhere
        self._added: list[str] = []
        self.pieces: list[str | ToolUseBlock] = []
        # The layout at the beginning; ``None`` after it.
        self._layout: list[str] | None = []
        self._whole: WholeAnswer | None = None
        self._embedded: EmbeddedCalls | None = None
        choice = request.tool_choice
        self._alone = choice is not None and choice.parallel is False
        # Nothing that follows can be a call.
        self.is_plain = False

    @property
    def parser(self) -> str | None:
        """The options of servers that parse the form of the first call."""
        forms = [finder.form for finder in (self._whole, self._embedded) if finder is not None]
        return next((form.parser for form in forms if form is not None), None)

    @property
    def source(self) -> str:
        """The text that was added, until it was known to be plain."""
        return "".join(self._added)

    def feed(self, text: str) -> Sequence[str | ToolUseBlock]:
        """Add text and return the parts known so far, in order."""
        self._added.append(text)
        if self._layout is not None:
            first = text.lstrip()[:1]
            if not first:
                self._layout.append(text)
                return ()
            text = "".join([*self._layout, text])
            self._layout = None
            if self._anywhere or first in _FIRST:
                self._prepare()
            else:
                self.is_plain = True
        if self._whole is None:
            return self._kept([text])
        pieces = self._kept(self._through_embedded(self._whole.feed(text)))
        self.is_plain = self._embedded is None and self._whole.is_text
        return pieces

    def finish(self, *, cut_off: bool = False) -> Sequence[str | ToolUseBlock]:
        """Return the rest at the end of the answer, which may be ``cut_off`` at its limit."""
        pieces: list[str | WrittenCall] = ["".join(self._layout)] if self._layout else []
        self._layout = []
        if self._whole is not None:
            pieces += self._through_embedded(self._whole.finish())
        if self._embedded is not None:
            pieces += self._embedded.finish()
        return self._kept(pieces, cut_off=cut_off)

    def stop(self) -> Sequence[str | ToolUseBlock]:
        """Return held text; everything from here on is text."""
        held = self.finish()
        self._layout = self._whole = self._embedded = None
        self.is_plain = True
        return held

    def _through_embedded(self, pieces: list[str | WrittenCall]) -> Iterator[str | WrittenCall]:
        for piece in pieces:
            if self._embedded is not None and isinstance(piece, str):
                yield from self._embedded.feed(piece)
            else:
                yield piece

    def _prepare(self) -> None:
        # Imported late: few answers need it.
        from jumpseat.agent.model_calls.call_finder import EmbeddedCalls, WholeAnswer
        from jumpseat.agent.model_calls.dialects import translate
        from jumpseat.agent.model_calls.written_calls.offered import Offered

        offered = Offered(self._request.tools, translate)
        self._whole = WholeAnswer(offered)
        self._embedded = EmbeddedCalls(offered) if self._anywhere else None

    def _kept(self, pieces: Iterable[str | WrittenCall], *, cut_off: bool = False) -> Sequence[str | ToolUseBlock]:
        parts = [self._part(piece, cut_off=cut_off) for piece in pieces]
        self.pieces += parts
        return parts

    def _part(self, piece: str | WrittenCall, *, cut_off: bool = False) -> str | ToolUseBlock:
        if isinstance(piece, str):
            return piece
        problem = piece.problem and (_CUT_OFF if cut_off else _AGAIN.format(problem=piece.problem))
        if self._alone and self._ids.count > 0:
            problem = problem or _ALONE
        arguments = piece.arguments
        return ToolUseBlock(
            self._ids.next(), piece.name, canonical_json(arguments or {}), arguments, problem=problem
        )


def describe_written_calls(
    model: str, parser: str | None, message: AssistantMessage, tools: Sequence[ToolSpec]
) -> str | None:
    """Return the warning about calls that a model with native ones has written, for the user.

    ``parser`` is that of the calls that were taken from the answer; ``None`` if there are none, but maybe in the
    text.
    """
    if parser is not None:
        calls = message.tool_uses()
        malformed = sum(call.problem is not None for call in calls)
        done = "It is taken as a call, because it is the whole answer"
        if malformed:
            which = "It" if len(calls) == 1 else f"{malformed} of its {len(calls)} calls"
            done = f"{which} cannot be run as written: the model gets the reason"
    else:
        text = message.text()
        if len(text) > _MAX_SEARCHED or not any(mark in text for mark in _MARKS):
            return None
        from jumpseat.agent.model_calls.call_finder import find_calls

        calls, rest, form = find_calls(text, tools)
        if not calls or form is None:
            return None
        why = "the answer has other text, too" if rest.strip() else "the request did not ask for calls"
        done, parser = f"It was not run, because {why}", form.parser
    vllm = parser or "vLLM: --tool-call-parser NAME; SGLang: --tool-call-parser NAME"
    return (
        f"{model} wrote a tool call as text. {done}. Its server does not parse tool calls: start it with its"
        f" parser ({vllm.replace('--tool', '--enable-auto-tool-choice --tool', 1)}; llama.cpp: --jinja), or set"
        ' tool_protocol = "xml" for the model in config.toml.'
    )
