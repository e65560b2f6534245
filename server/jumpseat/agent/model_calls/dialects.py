"""Calls in the terms of other agents, whose tools many models were trained on: other names of tools and arguments.

A call is translated only if the tool that it means is offered, and the translated arguments fit its schema.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, cast

import orjson
from msgspec.structs import replace

from jumpseat.agent.blocks import JsonObject, ToolUseBlock
from jumpseat.agent.conversation.conversation import canonical_json
from jumpseat.agent.model import ToolSpec
from jumpseat.agent.model_calls.xml_tools.schemas import as_schema

# Names without case, hyphens and underscores.
_TOOLS: Final[Mapping[str, str]] = {
    "edit": "editfile multiedit multireplacestringinfile replace replaceinfile replacestringinfile searchreplace"
    " strreplace updatefile",
    "create": "write writefile writetofile createfile newfile savefile",
    "apply_patch": "patch applydiff",
    "view": "read readfile viewfile openfile cat ls list listdir listdirectory listfiles readmanyfiles",
    "bash": "shell exec execcommand execute executecommand run runcommand runshellcommand runinterminal"
    " runterminalcmd shellcommand localshell terminal containerexec container.exec",
    "grep": "grepsearch searchfiles searchfilecontent ripgrep rg",
    "glob": "globsearch filesearch find findfiles",
    "read_bash": "bashoutput getterminaloutput",
    "stop_bash": "killshell killbash",
    "web_fetch": "fetch fetchurl fetchwebpage",
    "web_search": "searchweb googlewebsearch",
    "ask_user": "askuserquestion askfollowupquestion question",
    "task": "agent dispatchagent runsubagent spawnagent",
}
_MEANT: Final = {alias: name for name, aliases in _TOOLS.items() for alias in aliases.split()}

_EDITORS: Final = frozenset({"strreplaceeditor", "strreplacebasededittool", "texteditor", "editor"})
_EDITOR_COMMANDS: Final[Mapping[str, str]] = {
    "view": "view",
    "create": "create",
    "str_replace": "edit",
    "insert": "edit",
}

_ARGUMENTS: Final[Mapping[str, str]] = {
    "path": "filepath file filename targetfile absolutepath relativeworkspacepath dirpath directory dir",
    "old_str": "oldstring oldtext search find",
    "new_str": "newstring newtext replace replacement inserttext",
    "file_text": "content contents text filecontent",
    "command": "cmd script commandline input",
    "input": "patch patchtext diff content",
    "pattern": "query regex regexp searchpattern globpattern",
    "question": "prompt text",
    "url": "uri link",
    "glob": "include includepattern filepattern includes",
    "-A": "after aftercontext linesafter",
    "-B": "before beforecontext linesbefore",
    "-C": "context contextlines",
    "-i": "ignorecase caseinsensitive",
    "-n": "linenumbers showlinenumbers",
    "head_limit": "limit maxresults maxmatches",
    "shellId": "bashid sessionid terminalid id",
    "agent_type": "subagenttype subagent agent type",
}
"""Other names of arguments: of required ones, and of those in :data:`_OPTIONAL`."""

_OPTIONAL: Final = ("path", "glob", "-A", "-B", "-C", "-i", "-n", "head_limit")
"""Optional arguments without which a call would mean something else than it says."""

_FILES: Final = ("path", "filepath", "file", "filename", "targetfile", "absolutepath", "relativeworkspacepath")
"""Names of a path that may be relative to another argument, the folder."""

_FORMS: Final[Mapping[str, str]] = {
    "folder": "directory dir dirpath directorypath folder folderpath path cwd workdir workingdir workingdirectory"
    " currentdirectory currentworkingdirectory basedir basepath root rootdir searchpath searchdirectory"
    " targetdirectory",
    "background": "isbackground runinbackground background",
    "first line": "offset lineoffset start startline linestart fromline firstline startlineonebased"
    " startlineoneindexed",
    "last line": "end endline lineend toline lastline endlineonebased endlineoneindexed endlineoneindexedinclusive",
    "count": "limit count maxlines numlines linecount",
    "range": "range linerange lines",
    "with case": "casesensitive iscasesensitive",
    "as regex": "isregexp isregex regexp regex",
}
"""Names of arguments that our tools have in another form."""


def translate(call: ToolUseBlock, bare_name: str, tools: Mapping[str, ToolSpec]) -> ToolUseBlock:
    """Return ``call`` in the terms of the offered tool that it means, or unchanged if none fits.

    ``bare_name`` is its name without noise. A translated call has this name as ``dialect``.
    """
    if call.arguments is None:
        return call
    arguments = call.arguments
    name = call.name if call.name in tools else meant_tool(bare_name, arguments)
    if name is None or name not in tools:
        return call
    schema = tools[name].parameters
    properties = as_schema(schema.get("properties"))
    if (
        name != call.name
        or _missing(arguments, schema)
        or (name in _TOOLS and properties and not schema.get("additionalProperties"))
    ):
        arguments = _in_terms_of(schema, _with_own_forms(name, arguments, properties))
    elif properties and any(key not in properties for key in arguments):
        arguments = _respelled(arguments, properties)
    if (name, arguments) == (call.name, call.arguments) or _missing(arguments, schema):
        return call
    return replace(
        call, name=name, arguments=arguments, arguments_json=canonical_json(arguments), dialect=bare_name
    )


_PATCH: Final = "apply_patch"
_HEREDOC: Final = re.compile(
    r"\s*(?:cd\s+(?P<folder>[\w./-]+)\s*&&\s*)?apply_?patch\s*<<-?\s*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)\s*"
)
_NAMED: Final = re.compile(r"(?m)^(\*\*\* ?(?:\w+ File|Move to): *)(?=[^/~\s])")
"""The beginning of a line with a path that is relative to the folder of the command."""


def as_patch(call: ToolUseBlock, bare_name: str, tools: Mapping[str, ToolSpec]) -> ToolUseBlock:
    """Return a call of ``apply_patch`` for one that is its shell command, or whose arguments are the patch."""
    if _PATCH not in tools:
        return call
    text: str | None = None
    arguments = call.arguments or {}
    if call.name == _PATCH:
        text = call.arguments_json if call.arguments is None else None
    elif (call.name if call.name in tools else meant_tool(bare_name, arguments)) == "bash":
        commands = [value for key, value in arguments.items() if _plain(key) in ("command", "cmd")]
        text = _patch_of(commands[0]) if len(commands) == 1 else None
        folders = [value for key, value in arguments.items() if _plain(key) in _FORMS["folder"].split() and value]
        if text is not None and folders:
            text = _below(folders[0], text) if isinstance(folders[0], str) else None
    if text is None or "*** " not in text:
        return call
    arguments = {"input": text}
    arguments_json = canonical_json(arguments)
    if call.name != _PATCH:
        return replace(call, name=_PATCH, arguments=arguments, arguments_json=arguments_json, dialect=bare_name)
    # The provider's own data for the call is as malformed as the text.
    return replace(call, arguments=arguments, arguments_json=arguments_json, provider=None, provider_data=None)


def _patch_of(command: Any) -> str | None:
    """Return the patch that a command line, or a list of its words, applies and does nothing else."""
    if isinstance(command, list):
        words = cast("list[Any]", command)
        if len(words) == 2 and words[0] in (_PATCH, "applypatch") and isinstance(words[1], str):
            return words[1]
        return _patch_of(_command_line(words)) if all(isinstance(word, str) for word in words) else None
    if not isinstance(command, str):
        return None
    first, *lines = command.strip().split("\n")
    heredoc = _HEREDOC.fullmatch(first)
    if heredoc is not None:
        ends = [index for index, line in enumerate(lines) if line.strip() == heredoc["end"]]
        text = "\n".join(lines[:-1]) if ends == [len(lines) - 1] else None
        return text if text is None or heredoc["folder"] is None else _below(heredoc["folder"], text)
    try:
        words = shlex.split(command) if first.lstrip().startswith(("apply_patch ", "applypatch ")) else []
    except ValueError:
        return None
    return words[1] if len(words) == 2 else None


def _below(folder: str, text: str) -> str:
    """Return a patch with the paths that a command has in another folder."""
    return _NAMED.sub(lambda match: f"{match[1]}{folder.rstrip('/')}/", text)


def _plain(name: str) -> str:
    return re.sub(r"[-_\s]", "", name).casefold()


def meant_tool(name: str, arguments: JsonObject) -> str | None:
    """Return the name of our tool that another agent calls ``name``; ``None`` if no tool is meant for certain."""
    plain = _plain(name)
    if plain in _EDITORS:
        command = arguments.get("command")
        return _EDITOR_COMMANDS.get(command) if isinstance(command, str) else None
    meant = _MEANT.get(plain) or _MEANT.get(plain.removesuffix("tool"))
    return meant or next((tool for tool in _TOOLS if _plain(tool) == plain.removesuffix("tool")), None)


def _missing(arguments: JsonObject, schema: JsonObject) -> bool:
    required: Any = schema.get("required") or ()
    return any(arguments.get(name) is None for name in required)


def _with_own_forms(name: str, arguments: JsonObject, properties: JsonObject) -> JsonObject:
    """Return the arguments with values in the form of our tools. Those in ``properties`` keep their meaning."""
    arguments = dict(arguments)
    others = _Others(arguments, properties)
    if name != "bash" and "command" not in properties and arguments.get("command") in _EDITOR_COMMANDS:
        del arguments["command"]
    if name == "view" and "view_range" not in arguments:
        _use_range(arguments, others)
    if name == _PATCH:
        _use_folder_of_patch(arguments, others)
    elif name not in ("bash", "task"):
        _use_folder_of_path(arguments, others)
    if name == "bash":
        for key in ("command", "cmd"):
            words: Any = arguments.get(key)
            if isinstance(words, list) and all(isinstance(word, str) for word in cast("list[Any]", words)):
                arguments[key] = _command_line(cast("list[str]", words))
        _use_folder(arguments, others)
    if name in ("bash", "task") and others.take("background", _is_bool) is True:
        arguments.setdefault("mode", "async" if name == "bash" else "background")
    if name == "task" and "name" not in arguments and isinstance(text := arguments.get("description"), str):
        arguments["name"] = re.sub(r"[\W_]+", "-", text[:40].casefold()).strip("-") or "agent"
    if name == "grep":
        if others.take("with case", _is_bool) is False:
            arguments.setdefault("-i", True)
        exact = others.take("as regex", _is_bool) is False
        for key in ("query", "pattern"):
            if exact and isinstance(text := arguments.get(key), str):
                arguments[key] = re.escape(text)
    if isinstance(edits := arguments.get("edits"), str):
        arguments["edits"] = _parsed(edits)
    if name == "edit" and not any(_plain(key) in ("oldstr", "oldstring") for key in arguments):
        if isinstance(edits := arguments.get("edits"), list) and edits and isinstance(edits[0], dict):
            # The first one takes the place of the required arguments.
            arguments = {**arguments, **cast("JsonObject", edits[0]), "edits": edits[1:]}
        elif isinstance(arguments.get("insert_line"), int):
            arguments["old_str"] = ""
    return arguments


class _Others:
    """The arguments of a call that its tool does not have."""

    def __init__(self, arguments: JsonObject, properties: JsonObject) -> None:
        self._arguments = arguments
        self._properties = properties

    def of(self, arguments: JsonObject) -> _Others:
        """Return the same for some of the arguments."""
        return _Others(arguments, self._properties)

    def take(self, form: str, fits: Callable[[Any], bool]) -> Any:
        """Remove the first one with a name of this form and a value that fits, and return the value."""
        names = _FORMS[form].split()
        for key, value in self._arguments.items():
            if key not in self._properties and _plain(key) in names and fits(value):
                return self._arguments.pop(key)
        return None


def _use_range(arguments: JsonObject, others: _Others) -> None:
    """Replace the first line, and the last one or the count, by a range."""
    lines: list[Any] | None = others.take("range", _is_range)
    if lines is not None:
        arguments["view_range"] = [_number(line) for line in lines]
        return
    first = max(1, _number(others.take("first line", _is_count)) or 1)
    count = _number(others.take("count", lambda value: _is_count(value) and _number(value) != 0))
    last = first + count - 1 if count is not None else _number(others.take("last line", _is_line))
    if first > 1 or last is not None:
        arguments["view_range"] = [first, -1 if last is None else last]


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool)


def _is_line(value: Any) -> bool:
    return _number(value) is not None


def _is_count(value: Any) -> bool:
    number = _number(value)
    return number is not None and number >= 0


def _is_range(value: Any) -> bool:
    return isinstance(value, list) and [_is_line(line) for line in cast("list[Any]", value)] == [True, True]


def _use_folder(arguments: JsonObject, others: _Others) -> None:
    """Replace the folder of a command by its change."""
    command = next((key for key in ("command", "cmd") if isinstance(arguments.get(key), str)), None)
    if command is None:
        return
    folder: str | None = others.take("folder", lambda value: isinstance(value, str))
    if folder not in (None, "", ".", "./"):
        arguments[command] = f"cd {shlex.quote(folder)} && {arguments[command]}"


def _use_folder_of_path(arguments: JsonObject, others: _Others) -> None:
    """Make the path of a call one in its folder, unless the path is absolute or the folder is the only path."""
    keys = [key for key in arguments if _plain(key) in _FILES]
    if len(keys) != 1 or not isinstance(path := arguments[keys[0]], str):
        return
    rest = {key: value for key, value in arguments.items() if key != keys[0]}
    folder = others.of(rest).take("folder", lambda value: isinstance(value, str))
    if folder is None:
        return
    arguments.clear()
    arguments.update(rest)
    is_whole = path.startswith(("/", "~", "\\")) or re.match(r"[A-Za-z]:[\\/]", path) or not folder
    arguments[keys[0]] = path if is_whole else f"{folder.rstrip('/') or '/'}/{path}".replace("//", "/")


def _use_folder_of_patch(arguments: JsonObject, others: _Others) -> None:
    keys = [key for key in arguments if _plain(key) in ("input", "patch", "patchtext", "diff")]
    if len(keys) != 1 or not isinstance(text := arguments[keys[0]], str):
        return
    folder = others.take("folder", lambda value: isinstance(value, str))
    if folder:
        arguments[keys[0]] = _below(folder, text)


def _number(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"\d{1,9}", value.strip()):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _parsed(text: str) -> Any:
    """Return the value that a text is in JSON, or the text."""
    try:
        return orjson.loads(text)
    except ValueError:
        return text


def unwrapped(arguments: JsonObject, schema: JsonObject) -> JsonObject:
    """Return the arguments that the only one contains, such as ``input``; lists may be written as JSON."""
    properties = as_schema(schema.get("properties"))
    if len(arguments) == 1:
        [(key, value)] = arguments.items()
        inner = _parsed(value) if isinstance(value, str) and value.lstrip().startswith("{") else value
        if key in _WRAPPERS and key not in properties and isinstance(inner, dict):
            arguments = cast("JsonObject", inner)
    return {key: _shaped(value, as_schema(properties.get(key))) for key, value in arguments.items()}


_WRAPPERS: Final = frozenset({"input", "arguments", "args", "params", "parameters", "tool_input", "kwargs"})


def _shaped(value: Any, schema: JsonObject) -> Any:
    parsed: Any = _parsed(value) if isinstance(value, str) else value
    fits = {"array": isinstance(parsed, list), "object": isinstance(parsed, dict)}
    return parsed if fits.get(str(schema.get("type"))) else value


def _command_line(words: list[str]) -> str:
    if len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh", "zsh") and words[1] in ("-c", "-lc"):
        return words[2]
    return shlex.join(words)


def _in_terms_of(schema: JsonObject, arguments: JsonObject) -> JsonObject:
    """Rename the arguments that have another spelling or another name in the schema."""
    properties = as_schema(schema.get("properties"))
    renamed = _respelled(arguments, properties)
    required: Any = schema.get("required") or ()
    for name in (*required, *(name for name in _OPTIONAL if name in properties)):
        if name in renamed:
            continue
        aliases = {
            *_ARGUMENTS.get(name, "").split(),
            *(_FORMS["folder"].split() if name == "path" and name not in required else ()),
        }
        found = [key for key in renamed if key not in properties and _plain(key) in aliases]
        if len(found) == 1:
            renamed = {name if key == found[0] else key: value for key, value in renamed.items()}
    for name, value in renamed.items():
        items = as_schema(as_schema(properties.get(name)).get("items"))
        if isinstance(value, list) and items.get("properties"):
            renamed[name] = [
                _in_terms_of(items, cast("JsonObject", item)) if isinstance(item, dict) else item
                for item in cast("list[object]", value)
            ]
    return renamed


def _respelled(arguments: JsonObject, properties: JsonObject) -> JsonObject:
    """Rename arguments whose names differ from those of the schema in case, hyphens and underscores only."""
    spelled: dict[str, list[str]] = {}
    for name in properties:
        spelled.setdefault(_plain(name), []).append(name)

    def names() -> Iterator[str]:
        for key in arguments:
            meant = spelled.get(_plain(key), [])
            yield meant[0] if key not in properties and len(meant) == 1 and meant[0] not in arguments else key

    renamed = dict(zip(names(), arguments.values(), strict=True)) if arguments else {}
    return renamed if len(renamed) == len(arguments) else arguments
