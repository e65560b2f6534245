"""Conversion between the blocks of the wire and those of the domain."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from jumpseat.adapters.wire import search_rows
from jumpseat.agent import blocks as domain
from jumpseat.agent.conversation.attachments import IMAGE_TYPES, user_block
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.model_calls.requests import ALIASES
from jumpseat.errors import InvalidRequestError
from jumpseat_protocol import blocks as wire

WEB_SEARCH: Final = "web_search"

_MEDIA_TYPE: Final = re.compile(r"\s*[\w.+-]+/[\w.+*-]+\s*(?:;.*)?")


def to_conversation(
    given: list[wire.Message], *, may_end_in_calls: bool = False
) -> tuple[str, list[domain.Message]]:
    """Return the system message and the messages of a conversation.

    The results in a user's message come before its other blocks, because they follow their calls directly.

    Raises:
        InvalidRequestError: a block is in a message of the wrong role, an image is not base64, or calls and results
            do not match.
    """
    system: list[str] = []
    messages: list[domain.Message] = []
    open_calls: dict[str, str] = {}
    for place, message in enumerate(given):
        where = f"messages[{place}]"
        if (message.content is None) == (message.blocks is None):
            raise InvalidRequestError(f"{where}: expected either content or blocks")
        if message.role == "system":
            system.append(_only_text(message, where))
        elif message.role == "assistant":
            _require_results(open_calls, where)
            answer = domain.AssistantMessage(_assistant_blocks(message, where))
            open_calls = {}
            for call in answer.tool_uses():
                if call.id in open_calls:
                    raise InvalidRequestError(f"{where}: two calls have the id {call.id!r}")
                open_calls[call.id] = call.name
            if answer.blocks:
                messages.append(answer)
        else:
            results, blocks = _user_blocks(message, where, open_calls)
            missing = {
                name: open_calls[name] for name in open_calls if name not in {r.tool_use_id for r in results}
            }
            _require_results(missing, where)
            open_calls = {}
            if results:
                messages.append(domain.ToolMessage(results))
            if blocks:
                messages.append(domain.UserMessage(blocks))
    if not may_end_in_calls:
        _require_results(open_calls, "messages")
    return "\n\n".join(system), messages


def _require_results(open_calls: dict[str, str], where: str) -> None:
    for call_id, name in open_calls.items():
        raise InvalidRequestError(
            f"{where}: expected a tool_result for the call {call_id!r} of {name!r} in the user's next message"
        )


def _only_text(message: wire.Message, where: str) -> str:
    texts: list[str] = []
    for place, block in _placed(message, where):
        if not isinstance(block, wire.TextBlock):
            raise InvalidRequestError(f"{place}: a system message has only text")
        texts.append(block.text)
    return "\n\n".join(texts)


def _user_blocks(
    message: wire.Message, where: str, open_calls: dict[str, str]
) -> tuple[list[domain.ToolResultBlock], list[domain.UserBlock]]:
    if message.content == "":
        return [], [domain.TextBlock("")]
    results: list[domain.ToolResultBlock] = []
    blocks: list[domain.UserBlock] = []
    for place, block in _placed(message, where):
        match block:
            case wire.TextBlock():
                blocks.append(domain.TextBlock(block.text))
            case wire.ImageBlock():
                blocks.append(_image(block, place))
            case wire.DocumentBlock():
                _check_media(block, place, "a document")
                blocks.append(user_block(block.data, block.mime_type, block.title))
            case wire.ToolResultBlock():
                if block.tool_use_id not in open_calls:
                    raise InvalidRequestError(
                        f"{place}: tool_result for {block.tool_use_id!r}, which is not a call of the message before"
                    )
                if any(result.tool_use_id == block.tool_use_id for result in results):
                    raise InvalidRequestError(f"{place}: second tool_result for the call {block.tool_use_id!r}")
                results.append(_tool_result(block, open_calls[block.tool_use_id], place))
            case _:
                raise InvalidRequestError(f"{place}: {block.type} is a block of the assistant, not of the user")
    if not results and not blocks:
        raise InvalidRequestError(f"{where}: expected at least one block")
    return results, blocks


def _placed(message: wire.Message, where: str) -> Iterator[tuple[str, wire.Block]]:
    """Iterate over the blocks of a message and their places in the request."""
    member = "blocks" if message.content is None else "content"
    for number, block in enumerate(message.all_blocks()):
        yield f"{where}.{member}[{number}]", block


def _tool_result(block: wire.ToolResultBlock, name: str, where: str) -> domain.ToolResultBlock:
    images: list[domain.ImageBlock] = []
    for number, given in enumerate(block.images):
        image = _image(given, f"{where}.images[{number}]")
        if not isinstance(image, domain.ImageBlock):
            expected = ", ".join(sorted(IMAGE_TYPES))
            raise InvalidRequestError(
                f"{where}.images[{number}]: expected a whole image of type {expected}, got {given.mime_type}"
            )
        images.append(image)
    return domain.ToolResultBlock(block.tool_use_id, name, block.text, block.is_error, images)


def _image(block: wire.ImageBlock, where: str) -> domain.UserBlock:
    _check_media(block, where, "an image")
    return user_block(block.data, block.mime_type, block.alt_text)


def _check_media(block: wire.ImageBlock | wire.DocumentBlock, where: str, kind: str) -> None:
    try:
        content = base64.b64decode(block.data, validate=True)
    except (binascii.Error, ValueError):
        content = b""
    if not content:
        raise InvalidRequestError(f"{where}: expected the data of {kind} in base64")
    if not _MEDIA_TYPE.fullmatch(block.mime_type):
        raise InvalidRequestError(f"{where}: expected a media type such as image/png, got {block.mime_type!r:.100}")


def _assistant_blocks(message: wire.Message, where: str) -> list[domain.AssistantBlock]:
    return [_assistant_block(block, place) for place, block in _placed(message, where)]


def _assistant_block(block: wire.Block, where: str) -> domain.AssistantBlock:
    match block:
        case wire.TextBlock():
            return domain.TextBlock(block.text, [domain.Citation(**dict(c)) for c in block.citations])
        case wire.ReasoningBlock():
            return domain.ReasoningBlock(block.text, block.provider, block.provider_data)
        case wire.ToolUseBlock():
            text = canonical_json(block.input) if block.input_json is None else block.input_json
            arguments = None if block.problem is not None and block.input_json is not None else block.input
            return domain.ToolUseBlock(
                block.tool_use_id,
                block.tool_name,
                text,
                arguments,
                block.provider,
                block.provider_data,
                block.problem,
            )
        case wire.WebSearchUseBlock() | wire.HostedToolUseBlock():
            return domain.HostedToolUseBlock(
                block.tool_use_id, block.tool_name, block.input, block.provider or "", block.provider_data
            )
        case wire.WebSearchResultBlock():
            results = [domain.SearchResult(**dict(result)) for result in block.results]
            return domain.HostedToolResultBlock(
                block.tool_use_id,
                block.text or search_rows(results),
                block.provider or "",
                block.is_error,
                block.provider_data,
                results,
                block.error_code,
            )
        case wire.HostedToolResultBlock():
            return domain.HostedToolResultBlock(
                block.tool_use_id,
                block.text,
                block.provider or "",
                block.is_error,
                block.provider_data,
                error_code=block.error_code,
            )
        case _:
            raise InvalidRequestError(f"{where}: {block.type} is a block of the user, not of the assistant")


def from_conversation(messages: Iterable[domain.Message]) -> list[wire.Message]:
    """Return the messages of a conversation in their wire form; results are in messages of the user."""
    converter = WireBlocks()
    return [
        wire.Message(
            role="assistant" if isinstance(message, domain.AssistantMessage) else "user",
            blocks=[
                converter.convert(block)
                for block in (message.results if isinstance(message, domain.ToolMessage) else message.blocks)
            ],
        )
        for message in messages
    ]


class WireBlocks:
    """Converts the blocks of one answer to their wire form, in their order."""

    def __init__(self) -> None:
        self._searches: set[str] = set()

    def convert(self, block: domain.Block) -> wire.Block:
        """Return the wire form of the next block."""
        match block:
            case domain.TextBlock():
                citations = [_citation(citation) for citation in block.citations]
                return wire.TextBlock(text=block.text, citations=citations)
            case domain.ImageBlock():
                return wire.ImageBlock(data=block.data, mime_type=block.mime_type, alt_text=block.label)
            case domain.DocumentBlock():
                return wire.DocumentBlock(data=block.data, mime_type=block.mime_type, title=block.title)
            case domain.ToolResultBlock():
                images = [cast("wire.ImageBlock", self.convert(image)) for image in block.images]
                return wire.ToolResultBlock(
                    tool_use_id=block.tool_use_id, text=block.text, is_error=block.is_error, images=images
                )
            case domain.ReasoningBlock():
                return wire.ReasoningBlock(
                    text=block.text, provider=block.provider, provider_data=block.provider_data
                )
            case domain.ToolUseBlock():
                arguments = block.arguments or {}
                exact = block.arguments_json
                return wire.ToolUseBlock(
                    tool_use_id=block.id or "call",
                    tool_name=block.name or "unknown",
                    input=arguments,
                    input_json=None if exact == canonical_json(arguments) else exact,
                    problem=block.problem,
                    provider=block.provider,
                    provider_data=block.provider_data,
                )
            case domain.HostedToolUseBlock():
                return self._use(block)
            case domain.HostedToolResultBlock():
                return self._result(block)

    def _use(self, block: domain.HostedToolUseBlock) -> wire.Block:
        name = ALIASES.get(block.name, block.name)
        if name == WEB_SEARCH:
            self._searches.add(block.id)
            return wire.WebSearchUseBlock(
                tool_use_id=block.id,
                input=_search_input(block.input),
                provider=block.provider,
                provider_data=block.provider_data,
            )
        return wire.HostedToolUseBlock(
            tool_use_id=block.id,
            tool_name=name,
            input=block.input,
            provider=block.provider,
            provider_data=block.provider_data,
        )

    def _result(self, block: domain.HostedToolResultBlock) -> wire.Block:
        if block.results is not None or block.tool_use_id in self._searches:
            return wire.WebSearchResultBlock(
                tool_use_id=block.tool_use_id,
                results=[_search_result(result) for result in block.results or []],
                text=block.text,
                is_error=block.is_error,
                error_code=block.error_code,
                provider=block.provider,
                provider_data=block.provider_data,
            )
        return wire.HostedToolResultBlock(
            tool_use_id=block.tool_use_id,
            text=block.text,
            is_error=block.is_error,
            error_code=block.error_code,
            provider=block.provider,
            provider_data=block.provider_data,
        )


def _search_input(given: domain.JsonObject) -> domain.JsonObject:
    """Return the input of a search with its ``query``; some providers have a list of queries."""
    queries: Any = given.get("queries")
    if "query" in given or not isinstance(queries, list):
        return given
    return {"query": "; ".join(str(query) for query in cast("list[Any]", queries)), **given}


def _citation(citation: domain.Citation) -> wire.Citation:
    return wire.Citation(
        kind=citation.kind,
        url=citation.url,
        title=citation.title,
        cited_text=citation.cited_text,
        start=citation.start,
        end=citation.end,
        provider=citation.provider,
        provider_data=citation.provider_data,
    )


def _search_result(result: domain.SearchResult) -> wire.SearchResult:
    return wire.SearchResult(title=result.title, url=result.url, page_age=result.page_age, snippet=result.snippet)
