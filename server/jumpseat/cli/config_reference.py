"""Write the reference of ``config.toml``: ``python -m jumpseat.cli.config_reference > docs/configuration.md``."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from jumpseat.config import DECLARED, Config
from jumpseat_protocol.descriptions import field_docstrings

INTRODUCTION: Final = """\
# Configuration

The file is `config.toml` in the home folder, which is `~/.jumpseat` unless `COPILOT_HOME` names another one.
Every setting is optional. An unknown one is an error that names its line, and `jumpseat doctor` looks at the file.

Most people need no more than this:

```toml
default_model = "fast"              # an alias, or "adapter/model"

[adapters.work]                     # the name in "work/gpt-5"
type = "openai"
base_url = "https://llm.example.com/v1"
api_key_env = "WORK_LLM_KEY"        # the name of the variable; keys never belong in this file
models = ["gpt-5", {id = "gpt-5-mini", vision = true, context_window = 400000}]

[models.fast]                       # an alias
adapter = "work"
model = "gpt-5-mini"

[permissions]
allow = ["read", "shell(git status)"]
deny = ["read(~/.ssh)"]

[mcp.servers.files]                 # an MCP server of every session
command = "npx"
args = ["-y", "@modelcontextprotocol/server-filesystem", "/srv/data"]
```

Paths begin with `/` or `~`. The rest of this page lists every setting; it is generated from the server's own table.
"""

_WORDS: Final = {bool: "`true` or `false`", str: "text", int: "integer", float: "number"}


class _Table(NamedTuple):
    name: str
    model: type[BaseModel]
    text: str


def page() -> str:
    """Return the page."""
    top = _Table("", Config, "")
    return "\n".join([INTRODUCTION, "## Settings outside of tables\n", *_rows(top), *_sections(top)])


def _sections(outer: _Table) -> Iterator[str]:
    """Yield the parts of the page about the tables inside of one."""
    for table in _tables(outer):
        yield f"## `[{table.name}]`\n"
        if table.text:
            yield f"{table.text}\n"
        yield from _rows(table)
        yield from _sections(table)


def _tables(table: _Table) -> Iterator[_Table]:
    """Yield the tables inside of one."""
    texts = field_docstrings(table.model)
    prefix = f"{table.name}." if table.name else ""
    for name, field in table.model.model_fields.items():
        model = _section(field.annotation)
        if model is not None:
            place = prefix + (field.alias or name) + (".NAME" if _is_named(field.annotation) else "")
            yield _Table(place, model, _linked(texts[name]))
    extra = get_type_hints(table.model).get("__pydantic_extra__")
    if (model := _section(extra)) is not None:
        yield _Table(f"{prefix}NAME", model, "")


def _rows(table: _Table) -> Iterator[str]:
    """Yield a list of the settings of a table that are no tables."""
    texts = field_docstrings(table.model)
    rows = [
        f"| {_keys(name, field)} | {_type(field.annotation)} | {_default(field)} | {_linked(texts[name])} |"
        for name, field in table.model.model_fields.items()
        if _section(field.annotation) is None
    ]
    if rows:
        yield "| setting | type | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _keys(name: str, field: FieldInfo) -> str:
    keys = sorted(DECLARED) if name == "declaration" else [field.alias or name]
    return ", ".join(f"`{key}`" for key in keys)


def _parts(kind: Any) -> tuple[Any, ...]:
    """Return the members of a union, without ``None`` and without annotations."""
    if get_origin(kind) is Annotated:
        return _parts(get_args(kind)[0])
    if get_origin(kind) in (UnionType, Union):
        return tuple(part for inner in get_args(kind) for part in _parts(inner) if part is not NoneType)
    return (kind,)


def _is_named(kind: Any) -> bool:
    return any(get_origin(part) is dict for part in _parts(kind))


def _section(kind: Any) -> type[BaseModel] | None:
    """Return the model of a table, or of the tables of a dictionary."""
    for part in _parts(kind):
        inner = get_args(part)[1] if get_origin(part) is dict else part
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            return inner
    return None


def _type(kind: Any) -> str:
    return ", or ".join(_word(part) for part in _parts(kind))


def _word(kind: Any) -> str:
    match get_origin(kind):
        case origin if origin is Literal:
            return ", ".join(f"`{json.dumps(value)}`" for value in get_args(kind))
        case origin if origin is list:
            return f"list of {_type(get_args(kind)[0])}"
        case origin if origin is dict:
            return "table"
        case _:
            return _WORDS.get(kind, "table")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "" if value in (None, {}, []) else f"`{json.dumps(value)}`"


def _linked(text: str) -> str:
    """Return a docstring as Markdown: names of pages become links."""
    text = re.sub(r"``(.*?)``", r"`\1`", text)
    return re.sub(r"docs/([a-z-]+)\.md", r"[\1](\1.md)", text).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
