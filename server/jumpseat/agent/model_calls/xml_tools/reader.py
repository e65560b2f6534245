"""Parse one block of calls incrementally, as leniently as is safe.

The reader knows the schemas of the tools: for a string, everything up to the closing tag is text, even if it looks
like XML. Elsewhere a wrong tag rejects the whole block, since no call is run unless it is understood for certain.
There are no entity definitions, depth and size are limited, and the time is linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, field

from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model_calls.xml_tools.schemas import (
    SCALARS,
    as_schema,
    items_of,
    kind_of,
    properties_of,
    property_of,
)

MAX_BLOCK_CHARS: Final = 4 * 1024 * 1024
MAX_TAG_CHARS: Final = 2048
MAX_DEPTH: Final = 32
MAX_ELEMENTS: Final = 20_000
MAX_KEPT_CHARS: Final = 20_000
"""The length of the source of a malformed block that is kept for the model, in characters."""

WRAPPERS: Final = frozenset({"parameters", "arguments", "params", "args", "inputs", "input", "action"})
"""Elements that contain parameters, unless the tool has a parameter of that name."""
_NAMED: Final = frozenset({"parameter", "param", "argument", "arg"})

_NAME: Final = r"[^\W\d][\w.-]*"
_VALUE: Final = r"\"[^\"]*\"|'[^']*'|[^\s\"'<>=]*[^\s\"'<>=/]"
START: Final = re.compile(rf"<({_NAME})((?:\s+{_NAME}(?:\s*=\s*(?:{_VALUE}))?)*)\s*(/?)>")
_ATTRIBUTE: Final = re.compile(rf"(?<![\w.-])({_NAME})\s*=\s*({_VALUE})")
_END: Final = re.compile(rf"</({_NAME})\s*>")
# A possible prefix of a tag. It covers every prefix, so that the result does not depend on where a text is split.
PARTIAL_TAG: Final = re.compile(rf"<(?:/|/?{_NAME}(?:[^<>\"']|\"[^\"]*\"|'[^']*')*(?:\"[^\"]*|'[^']*)?)?\Z")
_REST_OF_TAG: Final = re.compile(r"(?:\s[^<>]*)?(?<!/)>")
_PART_OF_TAG: Final = re.compile(r"(?:\s[^<>]*)?\Z")
_NOT_SPACE: Final = re.compile(r"\S")
_ENTITY: Final = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_ENTITIES: Final[Mapping[str, str]] = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}

Role: TypeAlias = Literal["tools", "tool", "wrapper", "value"]


class Element(Struct):
    """An element. ``key`` is the name of its parameter; the content of a ``raw`` element is a single text."""

    tag: str
    role: Role
    key: str = ""
    attributes: dict[str, str] = field(default_factory=dict[str, str])
    schema: JsonObject = field(default_factory=dict[str, Any])
    root: JsonObject = field(default_factory=dict[str, Any])
    raw: bool = False
    children: list[Element] = field(default_factory=list["Element"])
    parts: list[str] = field(default_factory=list[str])
    marked: bool = False
    """True if the element contains CDATA."""
    literal: bool = False
    """True if the text contains a ``<`` that is neither CDATA nor a tag of this format."""
    nested: int = 0
    """The number of open elements with the same name within the text."""
    certain: int = 0
    """The number of parts up to the end of the last CDATA section."""
    begins: int = 0
    ends: int = 0
    source: str = ""
    """For a call, its offsets in the block, and its source text."""

    def text(self) -> str:
        """Return the text: CDATA verbatim, other text without the line breaks next to the tags."""
        whole = "".join(self.parts)
        if self.marked:
            return whole
        if "\n" in whole:
            # Keep the indentation of the first line, which may be intended.
            whole = re.sub(r"\A[ \t]*\r?\n", "", re.sub(r"\r?\n[ \t]*\Z", "", whole))
        else:
            whole = whole.strip()
        # A model that did not escape "<" has not escaped "&" either.
        return whole if self.literal else expand_entities(whole)

    def child(self, tag: str) -> Element | None:
        return next((child for child in self.children if child.tag == tag), None)


class Block(Struct):
    """A parsed block.

    ``tools`` are its calls, or the valid ones before a ``problem``. In that case ``source`` is the text that could
    not be parsed, and ``name`` the tool it calls, if known.
    """

    tools: list[Element]
    problem: str | None = None
    name: str | None = None
    source: str = ""
    cut_off: bool = False
    """True if the answer ended within the block."""


class _MalformedError(Exception):
    """Raised for malformed XML. The message is for the model."""


class BlockReader:
    """Parses a block from the start tag of its root.

    ``fence`` matches the line break and line that close a code block around it.
    """

    def __init__(self, tools: Mapping[str, JsonObject], fence: re.Pattern[str] | None = None) -> None:
        self._tools = tools
        self._fence = fence
        self._stack: list[Element] = []
        self._root: Element | None = None
        self._until: str | None = None
        self._problem: str | None = None
        self._taken: list[str] = []
        self._chars = 0
        # The offset of the current text in everything read so far, and the position in the text.
        self._base = 0
        self._at = 0
        self._call_at = 0
        self._problem_at = 0
        self._elements = 0
        self.done = False

    def read(self, text: str, at: int, *, final: bool) -> int:
        """Continue in ``text`` at ``at`` until ``done`` or more text is needed; return the new position."""
        start = self._at = at
        self._base = self._chars - at
        if self._problem is None:
            try:
                self._structure(text, final=final)
            except _MalformedError as error:
                self._problem, self._problem_at = str(error), self._base + self._at
        if self._problem is not None and not self.done:
            self._at = self._skip(text, self._at, final=final)
        self._take(text[start : self._at])
        return self._at

    def block(self) -> Block:
        """Return the parsed block, once ``done`` or at the end of the answer."""
        tools = [] if self._root is None else [self._root] if self._root.role == "tool" else self._root.children
        source = "".join(self._taken)
        for tool in tools:
            tool.source = _truncate(source[tool.begins : tool.ends])
        if self._problem is not None:
            line = source.count("\n", 0, self._problem_at) + 1
            return Block([], f"line {line}: {self._problem}", self._last_name(tools), _truncate(source))
        if len(self._stack) > 1 or (self._stack and self._stack[0].role == "tool"):
            problem = f"<{self._stack[-1].tag}> is never closed"
            return Block(
                tools[:-1], problem, self._last_name(tools), _truncate(source[self._call_at :]), cut_off=True
            )
        return Block(tools)

    # --- structure ----------------------------------------------------------------------------------------------

    def _structure(self, text: str, *, final: bool) -> None:
        while self._at < len(text) and not self.done:
            if self._base + self._at > MAX_BLOCK_CHARS:
                raise _MalformedError(f"the block is longer than {MAX_BLOCK_CHARS} characters")
            after = self._token(text, self._at, final=final)
            if after == self._at:
                return
            self._at = after

    def _token(self, text: str, at: int, *, final: bool) -> int:
        """Consume one token and return the new position, which is ``at`` if more text is needed."""
        if self._until is not None:
            return self._marked(text, at, self._until, final=final)
        if text[at] != "<":
            found = text.find("<", at)
            return self._text(text, at, found if found >= 0 else len(text))
        top = self._stack[-1] if self._stack else None
        if top is not None and top.raw:
            return self._in_raw(top, text, at, final=final)
        return self._markup(text, at, final=final)

    def _text(self, text: str, at: int, end: int) -> int:
        top = self._stack[-1]
        if top.role == "tools" and (found := _NOT_SPACE.search(text, at, end)):
            if self._fence is not None and text[found.start()] in "`~":
                # The end of the code block ends the block of calls.
                self._stack.clear()
                self.done = True
                return found.start()
            self._at = found.start()
            raise _MalformedError("there is text between the calls")
        top.parts.append(text[at:end])
        return end

    def _marked(self, text: str, at: int, until: str, *, final: bool) -> int:
        """Consume a CDATA section or comment up to its end."""
        found = text.find(until, at)
        end = found if found >= 0 else len(text) if final else max(at, len(text) - len(until) + 1)
        if until == "]]>":
            self._stack[-1].parts.append(text[at:end])
        if found < 0:
            return end
        self._until = None
        self._stack[-1].certain = len(self._stack[-1].parts)
        return end + len(until)

    def _in_raw(self, top: Element, text: str, at: int, *, final: bool) -> int:
        """Consume a ``<`` within a text: the closing tag, CDATA, or a literal character."""
        # Most of a million are literal.
        if text[at + 1 : at + 2] not in ("", "/", "!", top.tag[0]):
            top.parts.append("<")
            top.literal = True
            return at + 1
        if text.startswith("<![CDATA[", at):
            return self._cdata(at)
        is_near_end = len(text) - at < max(len("<![CDATA["), len(top.tag) + 2)
        if not final and is_near_end and _is_prefix_of(text, at, "<![CDATA[", f"</{top.tag}", f"<{top.tag}"):
            return at
        window = text[at : at + MAX_TAG_CHARS]
        if window.startswith(f"</{top.tag}"):
            rest = window[len(top.tag) + 2 :].lstrip()
            if rest.startswith(">"):
                end = at + window.index(">") + 1
                if top.nested:
                    top.nested -= 1
                    top.parts.append(text[at:end])
                    return end
                return self._close(end)
            if not rest and not final and len(window) < MAX_TAG_CHARS:
                return at
        elif window.startswith(f"<{top.tag}"):
            # A nested element with the same name: its closing tag does not close this one.
            rest = window[len(top.tag) + 1 :]
            if _REST_OF_TAG.match(rest):
                top.nested += 1
            elif not final and len(window) < MAX_TAG_CHARS and _PART_OF_TAG.match(rest):
                return at
        top.parts.append("<")
        top.literal = True
        return at + 1

    def _markup(self, text: str, at: int, *, final: bool) -> int:
        if not final and _is_prefix_of(text, at, "<![CDATA[", "<!--"):
            return at
        if text.startswith("<!--", at):
            self._until = "-->"
            return at + 4
        if text.startswith("<![CDATA[", at):
            if self._stack[-1].role == "tools":
                raise _MalformedError("there is CDATA between the calls")
            return self._cdata(at)
        if text.startswith(("<!", "<?"), at):
            raise _MalformedError("declarations and entity definitions are not allowed")
        # A bounded window keeps patterns from scanning all of the remaining text.
        window = text[at : at + MAX_TAG_CHARS]
        if match := START.match(window):
            self._open(match[1], match[2], at)
            end = at + match.end()
            return self._close(end) if match[3] else end
        if match := _END.match(window):
            top = self._stack[-1]
            if match[1] != top.tag:
                raise _MalformedError(f"</{match[1]}> where </{top.tag}> was expected")
            return self._close(at + match.end())
        if len(window) < MAX_TAG_CHARS and PARTIAL_TAG.match(window):
            # Discard an incomplete tag at the end of the answer.
            return len(text) if final else at
        top = self._stack[-1]
        if top.role != "value":
            raise _MalformedError(f"a tag in <{top.tag}> is not well-formed")
        top.parts.append("<")
        top.literal = True
        return at + 1

    def _cdata(self, at: int) -> int:
        top = self._stack[-1]
        if not top.marked and not "".join(top.parts).strip():
            top.parts.clear()
        top.marked = True
        self._until = "]]>"
        return at + len("<![CDATA[")

    def _open(self, tag: str, attributes: str, at: int) -> None:
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            raise _MalformedError(f"there are more than {MAX_ELEMENTS} elements")
        if len(self._stack) >= MAX_DEPTH:
            raise _MalformedError(f"elements are nested more than {MAX_DEPTH} deep")
        given = {name: expand_entities(_unquote(value)) for name, value in _ATTRIBUTE.findall(attributes)}
        element = self._element(tag, given)
        if element.role == "tool":
            element.begins = self._call_at = self._base + at
        if self._stack:
            self._stack[-1].children.append(element)
        else:
            self._root = element
        self._stack.append(element)

    def _close(self, at: int) -> int:
        element = self._stack.pop()
        element.ends = self._base + at
        if element.marked and not "".join(element.parts[element.certain :]).strip():
            # White space between CDATA and the closing tag is layout.
            del element.parts[element.certain :]
        if element.tag == "name" and self._stack and self._stack[-1].role == "tool":
            tool = self._stack[-1]
            if not tool.key:
                tool.key = element.text().strip()
                tool.schema = tool.root = self._tools.get(tool.key, {})
        self.done = not self._stack
        return at

    def _element(self, tag: str, attributes: dict[str, str]) -> Element:
        parent = self._stack[-1] if self._stack else None
        if parent is None or parent.role == "tools":
            if tag == "tools" and parent is None:
                return Element(tag, "tools", attributes=attributes)
            if tag != "tool":
                raise _MalformedError(f"<{tag}> where <tool> was expected")
            name = attributes.get("name", "").strip()
            schema = self._tools.get(name, {})
            return Element(tag, "tool", name, attributes, schema, schema)
        schema, root = parent.schema, parent.root
        properties = properties_of(schema, root)
        if parent.role in ("tool", "wrapper"):
            key = attributes["name"] if tag in _NAMED and "name" in attributes and tag not in properties else tag
            if _is_wrapper(tag, attributes, properties, root):
                return Element(tag, "wrapper", tag, attributes, schema, root)
            if parent.role == "tool" and tag == "name" and not parent.key:
                return Element(tag, "value", tag, attributes, raw=True)
            inner = property_of(schema, root, key)
        elif kind_of(schema, root) == "array":
            key, inner = tag, items_of(schema, root)
            if tag in properties_of(inner, root):
                inner = property_of(inner, root, tag)
        else:
            key, inner = tag, property_of(schema, root, tag)
        raw = kind_of(inner, root) in SCALARS
        return Element(tag, "value", key, attributes, inner, root, raw)

    # --- malformed blocks ---------------------------------------------------------------------------------------

    def _skip(self, text: str, at: int, *, final: bool) -> int:
        """Skip the rest of a malformed block up to its apparent end."""
        tag = self._root.tag if self._root is not None else "tools"
        closing = f"</{tag}>"
        found = text.find(closing, at)
        fence = self._fence.search(f"{text}\n" if final else text, at) if self._fence is not None else None
        if fence is not None and (found < 0 or fence.start() < found):
            self.done = True
            return fence.start() + 1
        if found >= 0:
            self.done = True
            return found + len(closing)
        if final:
            return len(text)
        # The text may end in a partial closing tag or fence; a fence begins at the last line break.
        line = text.rfind("\n", at)
        keep = len(text) - line if self._fence is not None and line >= 0 else 0
        return max(at, len(text) - max(len(closing), min(keep, MAX_TAG_CHARS)))

    def _take(self, text: str) -> None:
        self._chars += len(text)
        if self._problem is None or self._chars <= MAX_BLOCK_CHARS:
            self._taken.append(text)

    def _last_name(self, tools: list[Element]) -> str | None:
        return next((tool.key for tool in reversed(tools) if tool.key), None)


def expand_entities(text: str) -> str:
    """Expand the five predefined entities of XML and character references; leave all others unchanged."""
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(match: re.Match[str]) -> str:
    if match[1]:
        return _ENTITIES[match[1]]
    number = int(match[2]) if match[2] else int(match[3], 16)
    if number == 0 or number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        return match[0]
    return chr(number)


def _unquote(value: str) -> str:
    return value[1:-1] if value[:1] in ("'", '"') else value


def _is_wrapper(tag: str, attributes: Mapping[str, str], properties: Mapping[str, Any], root: JsonObject) -> bool:
    if tag not in WRAPPERS:
        return False
    if tag not in properties:
        return True
    # The attribute distinguishes an <action> element from a parameter of that name.
    return tag == "action" and "type" in attributes and kind_of(as_schema(properties[tag]), root) in SCALARS


def _is_prefix_of(text: str, at: int, *wanted: str) -> bool:
    """Return whether the rest of ``text`` is a proper prefix of a string in ``wanted``."""
    rest = text[at : at + MAX_TAG_CHARS]
    return any(len(rest) < len(text) and text.startswith(rest) for text in wanted)


def _truncate(source: str) -> str:
    return source if len(source) <= MAX_KEPT_CHARS else f"{source[:MAX_KEPT_CHARS]}..."
