"""Tools made of annotated functions: the schema, argument validation and the result on the wire.

::

    @tool
    async def lookup_order(order_id: str, verbose: bool = False) -> dict[str, str]:
        '''Look up an order by its number.'''

Async functions run on the event loop, plain functions in a worker thread. A parameter annotated
:class:`ToolContext` receives the call's context and is not part of the schema.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, ParamSpec, TypeAlias, TypeVar, cast, get_type_hints, overload

import anyio.to_thread
import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import to_jsonable_python

from jumpseat_client.session import Session
from jumpseat_protocol.sessions import ClientTool
from jumpseat_protocol.tools import ToolResultObject

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The call that a tool runs for. ``working_directory`` is the session's, if the server sends it."""

    session: Session
    tool_call_id: str
    tool_name: str
    working_directory: str | None = None


@dataclass(frozen=True)
class Tool(Generic[P, R]):
    """A function that the model can call. Called from Python it behaves like the plain function."""

    function: Callable[P, R]
    name: str
    description: str
    parameters: dict[str, Any]
    skip_permission: bool
    overrides_builtin: bool
    is_terminal: bool
    _arguments: TypeAdapter[Any] = dataclasses.field(repr=False)
    _context_name: str | None = dataclasses.field(repr=False)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def definition(self) -> dict[str, Any]:
        """Return the tool's definition as in ``session.create``."""
        return ClientTool(
            name=self.name,
            description=self.description,
            parameters=self.parameters,
            overrides_built_in_tool=self.overrides_builtin,
            skip_permission=self.skip_permission,
            is_terminal=self.is_terminal,
        ).wire()

    async def run(self, arguments: Any, ctx: ToolContext) -> str | dict[str, Any]:
        """Validate ``arguments``, call the function, and return the result in its wire form.

        Invalid arguments give a result of the type ``failure`` that names each offending field.
        Exceptions of the function are not caught.
        """
        try:
            checked = self._arguments.validate_python({} if arguments is None else arguments)
        except ValidationError as error:
            return _bad_arguments(self.name, error).wire()
        # Not `asdict`: it would turn validated nested objects back into dictionaries.
        kwargs = {f.name: getattr(checked, f.name) for f in dataclasses.fields(checked)}
        if self._context_name is not None:
            kwargs[self._context_name] = ctx
        function = cast("Callable[..., Any]", self.function)
        if inspect.iscoroutinefunction(function):
            result = await function(**kwargs)
        else:
            result = await anyio.to_thread.run_sync(partial(function, **kwargs), abandon_on_cancel=True)
            if inspect.isawaitable(result):
                result = await result
        return _wire_result(result)


AnyTool: TypeAlias = Tool[..., Any]


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    skip_permission: bool = False,
    overrides_builtin: bool = False,
    is_terminal: bool = False,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    skip_permission: bool = False,
    overrides_builtin: bool = False,
    is_terminal: bool = False,
) -> Any:
    """Make a tool of a function whose parameters are all annotated.

    Name and description default to the function's name and docstring; describe parameters with ``Annotated[str,
    Field(description=...)]``. ``skip_permission``: the tool runs without a permission request.
    ``overrides_builtin``: the tool replaces the server's tool of the same name. ``is_terminal``: a successful
    call ends the turn without another model call.

    Raises:
        TypeError: the signature cannot be expressed as a schema.
    """

    def make(function: Callable[..., Any]) -> AnyTool:
        arguments, context_name = _arguments_of(function)
        return Tool(
            function=function,
            name=name or function.__name__,
            description=inspect.getdoc(function) or "" if description is None else description,
            parameters=_schema_of(arguments),
            skip_permission=skip_permission,
            overrides_builtin=overrides_builtin,
            is_terminal=is_terminal,
            _arguments=arguments,
            _context_name=context_name,
        )

    return make if function is None else make(function)


def _arguments_of(function: Callable[..., Any]) -> tuple[TypeAdapter[Any], str | None]:
    """Return a validator for the arguments, and the name of the context parameter, if any."""
    hints = get_type_hints(function, include_extras=True)
    context_name: str | None = None
    fields: list[tuple[str, Any, Any]] = []
    for name, parameter in inspect.signature(function).parameters.items():
        where = f"parameter {name!r} of tool {function.__name__!r}"
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"{where} must be passable by name")
        if name not in hints:
            raise TypeError(f"{where} needs an annotation")
        if hints[name] is ToolContext:
            context_name = name
        else:
            fields.append((name, hints[name], _default_of(parameter)))
    # A dataclass rather than a model: its fields may have any name, `copy` or `schema` too.
    cls = dataclasses.make_dataclass(function.__name__, fields, kw_only=True)
    # Unknown arguments are ignored: models invent them.
    cls.__pydantic_config__ = ConfigDict(extra="ignore", arbitrary_types_allowed=False)
    return TypeAdapter(cls), context_name


def _default_of(parameter: inspect.Parameter) -> Any:
    default = parameter.default
    if default is parameter.empty:
        return dataclasses.field()
    if isinstance(default, list | dict | set):
        return dataclasses.field(default_factory=partial(copy.copy, cast("Any", default)))
    return dataclasses.field(default=default)


class _Untitled(GenerateJsonSchema):
    """Leaves out titles, which repeat the names and cost tokens."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def _schema_of(arguments: TypeAdapter[Any]) -> dict[str, Any]:
    schema = arguments.json_schema(schema_generator=_Untitled)
    for definition in (schema, *cast("Mapping[str, dict[str, Any]]", schema.get("$defs", {})).values()):
        definition.pop("title", None)
    # Some providers require `properties` even if a function has no parameters.
    schema.setdefault("properties", {})
    return schema


def _bad_arguments(name: str, error: ValidationError) -> ToolResultObject:
    problems = "; ".join(
        f"{'.'.join(map(str, problem['loc'])) or 'arguments'}: {problem['msg']}"
        for problem in error.errors(include_url=False, include_context=False, include_input=False)
    )
    text = f"Invalid arguments for tool {name!r}: {problems}"
    return ToolResultObject(text_result_for_llm=text, result_type="failure", error=text)


def _wire_result(result: Any) -> str | dict[str, Any]:
    match result:
        case None:
            return ""
        case str():
            return result
        case ToolResultObject():
            return result.wire()
        case _:
            return orjson.dumps(to_jsonable_python(result, by_alias=True)).decode()
