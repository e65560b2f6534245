"""Reading one block of calls, piece by piece, as forgivingly as is safe.

The reader knows the schemas of the tools: where one asks for a text, everything up to the closing tag is that text,
whatever looks like XML in it. Elsewhere a wrong tag ends the reading of the whole block: of calls that are not
understood for certain, none is run. There are no entity definitions, no depth and no size without a limit, and the
time it takes is linear.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

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
"""How much of a block that cannot be read is kept for the model to see."""

WRAPPERS: Final = frozenset({"parameters", "arguments", "params", "args", "inputs", "input", "action"})
"""Elements that hold parameters and are none, unless the tool has a parameter of that name."""
_NAMED: Final = frozenset({"parameter", "param", "argument", "arg"})

_NAME: Final = r"[^\W\d][\w.-]*"
_VALUE: Final = r"\"[^\"]*\"|'[^']*'|[^\s\"'<>=]*[^\s\"'<>=/]"
START: Final = re.compile(rf"<({_NAME})((?:\s+{_NAME}(?:\s*=\s*(?:{_VALUE}))?)*)\s*(/?)>")
_ATTRIBUTE: Final = re.compile(rf"({_NAME})\s*=\s*({_VALUE})")
_END: Final = re.compile(rf"</({_NAME})\s*>")
# What may yet become a tag. No prefix of a tag is left out, or it would matter how the text comes in pieces.
UNDER_WAY: Final = re.compile(rf"<(?:/|/?{_NAME}(?:[^<>\"']|\"[^\"]*\"|'[^']*')*(?:\"[^\"]*|'[^']*)?)?\Z")
_NOT_SPACE: Final = re.compile(r"\S")
_ENTITY: Final = re.compile(r"&(?:(lt|gt|amp|quot|apos)|#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6}));")
_ENTITIES: Final[Mapping[str, str]] = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}

Role: TypeAlias = Literal["tools", "tool", "wrapper", "value"]


@dataclass(slots=True)
class Element:
    """One element. ``key`` is the name of the parameter it is for, ``raw`` tells that its content is one text."""

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
    """Whether there is CDATA in it."""
    literal: bool = False
    """Whether it holds a ``<`` that is neither CDATA nor a tag of ours."""
    nested: int = 0
    """How many elements of its own name are open in its text."""
    certain: int = 0
    """How many of its parts are up to the end of CDATA."""
    begins: int = 0
    ends: int = 0
    source: str = ""
    """Of a call: where it stands in its block, and how it is written."""

    def text(self) -> str:
        """What it says. CDATA is taken to the letter; else the line breaks next to the tags belong to the tags."""
        whole = "".join(self.parts)
        if self.marked:
            return whole
        if "\n" in whole:
            # The first line may be indented on purpose.
            whole = re.sub(r"\A[ \t]*\r?\n", "", re.sub(r"\r?\n[ \t]*\Z", "", whole))
        else:
            whole = whole.strip()
        # Who has not escaped the one has not escaped the other.
        return whole if self.literal else expanded(whole)

    def child(self, tag: str) -> Element | None:
        return next((one for one in self.children if one.tag == tag), None)


@dataclass(slots=True)
class Block:
    """A block as it was read.

    ``tools`` are its calls; where there is a ``problem``, those before it that count in spite of it. ``source`` is
    then what could not be read, and ``name`` the tool that it was about, if that can be told.
    """

    tools: list[Element]
    problem: str | None = None
    name: str | None = None
    source: str = ""
    cut_off: bool = False
    """Whether the answer ended in the middle of it."""


class _MalformedError(Exception):
    """The text says what is wrong, in words for the model."""


class BlockReader:
    """Reads from the start tag of the root on.

    ``fence`` finds the line break and the line that would end the code block around it.
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
        # Where in all that was taken the text that is being read begins, and where in it we are.
        self._base = 0
        self._at = 0
        self._call_at = 0
        self._problem_at = 0
        self._elements = 0
        self.done = False

    def read(self, text: str, at: int, *, final: bool) -> int:
        """Read on in ``text`` from ``at``; where it stopped, because it is ``done`` or needs more."""
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
        """What was read, when it is done or there is no more."""
        tools = [] if self._root is None else [self._root] if self._root.role == "tool" else self._root.children
        source = "".join(self._taken)
        for tool in tools:
            tool.source = _kept(source[tool.begins : tool.ends])
        if self._problem is not None:
            line = source.count("\n", 0, self._problem_at) + 1
            return Block([], f"line {line}: {self._problem}", self._last_name(tools), _kept(source))
        if len(self._stack) > 1 or (self._stack and self._stack[0].role == "tool"):
            problem = f"<{self._stack[-1].tag}> is never closed"
            return Block(tools[:-1], problem, self._last_name(tools), _kept(source[self._call_at :]), cut_off=True)
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
        """Take one piece of text or markup; the same place means that there is not enough of it yet."""
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
                # The code block ends, and with it what stands in it.
                self._stack.clear()
                self.done = True
                return found.start()
            self._at = found.start()
            raise _MalformedError("there is text between the calls")
        top.parts.append(text[at:end])
        return end

    def _marked(self, text: str, at: int, until: str, *, final: bool) -> int:
        """CDATA and comments, up to their end."""
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
        """A ``<`` where a text is expected: the end of the text, CDATA, or nothing in particular."""
        if text.startswith("<![CDATA[", at):
            return self._cdata(at)
        if not final and _may_become(text, at, "<![CDATA[", f"</{top.tag}", f"<{top.tag}"):
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
            # The same element inside: its end is not the end of this one.
            if re.match(rf"<{re.escape(top.tag)}(?:\s[^<>]*)?(?<!/)>", window):
                top.nested += 1
            elif (
                not final
                and len(window) < MAX_TAG_CHARS
                and re.match(rf"<{re.escape(top.tag)}(?:\s[^<>]*)?\Z", window)
            ):
                return at
        top.parts.append("<")
        top.literal = True
        return at + 1

    def _markup(self, text: str, at: int, *, final: bool) -> int:
        if not final and _may_become(text, at, "<![CDATA[", "<!--"):
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
        # A view of its own: a pattern must not run on through all that comes after.
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
        if len(window) < MAX_TAG_CHARS and UNDER_WAY.match(window):
            # At the end of the answer nothing is known of it.
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
        given = {name: expanded(_unquoted(value)) for name, value in _ATTRIBUTE.findall(attributes)}
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
            # What follows CDATA up to the closing tag is layout.
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

    # --- what cannot be read ------------------------------------------------------------------------------------

    def _skip(self, text: str, at: int, *, final: bool) -> int:
        """Pass over the rest of a block up to where it seems to end."""
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
        # An end may be under way: the last line break is where a fence would begin.
        line = text.rfind("\n", at)
        keep = len(text) - line if self._fence is not None and line >= 0 else 0
        return max(at, len(text) - max(len(closing), min(keep, MAX_TAG_CHARS)))

    def _take(self, text: str) -> None:
        self._chars += len(text)
        if self._problem is None or self._chars <= MAX_BLOCK_CHARS:
            self._taken.append(text)

    def _last_name(self, tools: list[Element]) -> str | None:
        return next((one.key for one in reversed(tools) if one.key), None)


def expanded(text: str) -> str:
    """``text`` with the five entities of XML and those by number; all others stay as they are."""
    return _ENTITY.sub(_character, text) if "&" in text else text


def _character(match: re.Match[str]) -> str:
    if match[1]:
        return _ENTITIES[match[1]]
    number = int(match[2]) if match[2] else int(match[3], 16)
    if number == 0 or number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
        return match[0]
    return chr(number)


def _unquoted(value: str) -> str:
    return value[1:-1] if value[:1] in ("'", '"') else value


def _is_wrapper(tag: str, attributes: Mapping[str, str], properties: Mapping[str, Any], root: JsonObject) -> bool:
    if tag not in WRAPPERS:
        return False
    if tag not in properties:
        return True
    # A parameter called `action` and the element that names one: the attribute tells them apart.
    return tag == "action" and "type" in attributes and kind_of(as_schema(properties[tag]), root) in SCALARS


def _may_become(text: str, at: int, *wanted: str) -> bool:
    """Whether ``text`` ends in what may be the beginning of one of them."""
    rest = text[at : at + MAX_TAG_CHARS]
    return any(len(rest) < len(one) and one.startswith(rest) for one in wanted)


def _kept(source: str) -> str:
    return source if len(source) <= MAX_KEPT_CHARS else f"{source[:MAX_KEPT_CHARS]}..."
