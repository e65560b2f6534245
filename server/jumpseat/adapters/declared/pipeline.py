"""Turn a declaration and a request into one HTTP call, in the order that handlers may rely on.

1. copy the adapter for this request, with the chosen model and the settings;
2. run ``setup``, which may change the copy or refuse the request;
3. resolve the values of ``env``;
4. build the body from ``build_parameters``, ``build_messages``, ``build_tools``, ``build_structured_output``, the
   declared ``body`` and ``build_body``, earlier ones taking precedence, and fill in the remaining fields of the
   wire;
5. build URL and headers, last, because handlers may change them until here.

After the response, ``on_exit`` and ``teardown`` are run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
from msgspec import Struct
from msgspec.structs import replace

from jumpseat.adapters.adapter import Adapter, Decoder, Endpoint, HttpRequest, Network, Outcome, PreparedCall
from jumpseat.adapters.capabilities import capabilities
from jumpseat.adapters.declared.canonical import messages_of, tools_of
from jumpseat.adapters.declared.declaration import (
    API_KEY,
    BASE_URL,
    RAW_FLAGS,
    TEXTS,
    TIMEOUTS,
    Declaration,
    handler_timeout_s,
    merge,
    network_of,
    timeouts_of,
)
from jumpseat.adapters.declared.decoder import HandlerDecoder, InlineDecoder, MetaDecoder
from jumpseat.adapters.declared.functions import Functions, value_from
from jumpseat.adapters.declared.merged import drops_tools
from jumpseat.adapters.declared.schema import SchemaEntry
from jumpseat.adapters.declared.settings import apply_settings
from jumpseat.adapters.declared.view import AdapterView, Table
from jumpseat.adapters.failures import Redactor
from jumpseat.adapters.wire import as_object, merge_headers
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import Capabilities, ModelRequest
from jumpseat.declared.env import EnvResolver, EnvValues, MissingValueError, is_scalar
from jumpseat.errors import AdapterError, ConfigError, JumpseatError, ProviderRequestError
from jumpseat.parsing.validation import kind_of

if TYPE_CHECKING:
    from jumpseat.adapters.declared.request_function import RequestFunction

LAST_S: Final = 2.0
"""The time limit of ``on_exit`` and of ``teardown``, which a cancelled call waits for, too."""

HANDLER_DECODERS: Final = (HandlerDecoder, InlineDecoder, MetaDecoder)
"""The decoders that call functions of the adapter."""


class DeclaredCaller(Struct, frozen=True):
    """Prepares calls to the models of one declared adapter. ``wire`` is ``None`` if handlers do everything.

    ``session_values`` are the session's own values of ``env``; ``endpoint`` holds its headers, options and user
    agent. ``token`` returns the bearer token for each call, which replaces the key; without it, ``key`` returns the
    key. ``kind`` is the built-in provider type of the wire. With ``text_only``, calls expect only text, and
    ``parse_inline`` reads the answer if the adapter has that handler. With ``strict``, failures of ``on_exit`` and
    ``teardown`` are raised.
    """

    declaration: Declaration
    wire: Adapter | None
    resolver: EnvResolver
    session_values: Mapping[str, Any]
    endpoint: Endpoint
    token: Callable[[], Awaitable[str]] | None = None
    kind: str | None = None
    text_only: bool = False
    key: Callable[[], Awaitable[str]] | None = None
    strict: bool = False

    @property
    def adapter_name(self) -> str:
        return self.declaration.name

    @property
    def wire_name(self) -> str:
        return self.kind or self.declaration.name

    @property
    def signs_as(self) -> str:
        own = self.wire is None or self.declaration.handler("parse_chat") is not None
        return self.declaration.name if own or self.wire is None else self.wire.signature

    def capabilities(self, model: str) -> Capabilities:
        if self.wire is not None:
            can = capabilities(self.wire, model)
        else:
            can = Capabilities(
                structured_output="never", limits_calls=False, drops_tools=drops_tools(self.declaration)
            )
        if self.declaration.handler("build_tools") is not None:
            # The handler gets the tools, but not the choice.
            can = replace(can, limits_calls=False)
        if self.declaration.handler("build_structured_output") is not None:
            can = replace(can, structured_output="always")
        return can

    def for_text(self) -> DeclaredCaller:
        return replace(self, text_only=True)

    def functions_of(self, model: str) -> Functions:
        """Return the functions of the adapter for a request to ``model``."""
        view = AdapterView(self.declaration, model)
        limit_s = handler_timeout_s(view.name, view.opts.get(TIMEOUTS))
        return Functions(view, self.declaration.handlers, limit_s)

    async def resolve_endpoint(self) -> tuple[Endpoint, Network | None]:
        """Return the current endpoint with its credentials and declared headers, and the network settings.

        Raises:
            ConfigError: a required value is missing.
        """
        view = AdapterView(self.declaration)
        values = await self.resolver.resolve(
            f"adapter {view.name!r}", view.env, view.lookup, view, self.session_values
        )
        endpoint = self._endpoint(values, self.endpoint.bearer_token)
        filled = (
            (name, _fill_placeholders(f"headers.{name}", value, values, view))
            for name, value in view.headers.items()
        )
        declared = {name: str(text) for name, text in filled if text is not None and text is not False}
        base = self.wire.request(endpoint, ModelRequest("model", "", [])) if self.wire is not None else None
        usual = base.url.removeprefix(endpoint.base_url) if base is not None else ""
        raw = self.declaration.raw
        where = replace(
            endpoint,
            base_url=self._url(view, values, base, endpoint).removesuffix(usual),
            headers=merge_headers(declared, _raw_headers(raw, values), endpoint.headers),
        )
        return where, network_of(_argument_values(raw, values))

    async def prepare(self, request: ModelRequest) -> PreparedCall:
        """Prepare the call.

        Raises:
            JumpseatError: a setting is invalid, a placeholder has no value, or a handler refused or failed.
        """
        declaration = self.declaration
        view = AdapterView(declaration, request.model)
        # Handlers read and change the body.
        request = replace(request, written=None)
        if self._reads_inline(request):
            # Set before ``setup``, which may read it.
            view.opts["stream"] = False
            for declared in (view.parameters, view.body):
                if declared.get("stream") is True:
                    declared["stream"] = False
        if view.opts.get("stream") is False:
            request = replace(request, stream=False)
        functions = Functions(view, declaration.handlers, handler_timeout_s(view.name, view.opts.get(TIMEOUTS)))
        request = await self._with_settings(functions, request)
        if "setup" in functions:
            # A function without a result agrees.
            answer = await functions.call("setup")
            if answer is False:
                await _run_last(functions, "teardown")
                raise ProviderRequestError(f"adapter {view.name!r} refused the request: its setup returned false")
            if answer not in (None, True):
                raise functions.unusable("setup", "return true, or false to refuse the request", answer)
        try:
            return await self._prepare_call(functions, request)
        except BaseException:
            # The call is never made, but ``setup`` has run.
            with anyio.CancelScope(shield=True):
                await _run_last(functions, "teardown")
            raise

    async def _with_settings(self, functions: Functions, request: ModelRequest) -> ModelRequest:
        view = functions.view
        if any(map(is_computed, view.schema.values())):
            return await functions.in_thread(lambda: apply_settings(view, request), "functions of its schema")
        return apply_settings(view, request)

    async def _prepare_call(self, functions: Functions, request: ModelRequest) -> PreparedCall:
        view = functions.view
        session_values, token = self.session_values, self.endpoint.bearer_token
        if self.token is not None:
            token = await self.token()
        elif self.key is not None and token is None:
            session_values = {**session_values, API_KEY: await self.key()}
        if token is not None:
            # The token also replaces the key in handlers and headers.
            session_values = {**session_values, API_KEY: token}
        values = await self.resolver.resolve(f"adapter {view.name!r}", view.env, view.lookup, view, session_values)
        view.env_replaced = Table(values.values)
        # The base URL is not a secret, and errors should contain it.
        secrets = values.secret - {str(values.values.get(BASE_URL))}
        functions.mask = Redactor(
            (*secrets, self.endpoint.api_key, token), (self.endpoint.headers, request.headers)
        )
        endpoint = self._endpoint(values, token)
        base = self.wire.request(endpoint, self._for_wire(request)) if self.wire is not None else None
        messages = await self._messages(functions, request)
        body = await self._body(functions, request, values, messages, base.body if base is not None else {})
        url = self._url(view, values, base, endpoint)
        headers = self._headers(view, request, values, base, endpoint)
        arguments = _argument_values(self.declaration.raw, values)
        decoder = self._decoder(functions, request)
        return PreparedCall(
            HttpRequest(url=url, headers=headers, body=body, method=str(view.opts.get("method", "POST"))),
            decoder,
            tuple(secrets),
            lambda outcome: _run_exit_handlers(functions, outcome, strict=self.strict),
            timeouts_of(view.name, view.opts.get(TIMEOUTS), arguments),
            network_of(arguments),
            self._request_function(functions, messages, request),
            functions.in_thread if isinstance(decoder, HANDLER_DECODERS) else None,
        )

    # --- the parts of a request -----------------------------------------------------------------------------------

    def _endpoint(self, values: EnvValues, token: str | None) -> Endpoint:
        base_url, key = values.values.get(BASE_URL), values.values.get(API_KEY)
        if self.wire is not None:
            # Without these values, a wire would send the request all the same.
            for name in TEXTS:
                missing = values.missing.get(name)
                if missing is not None and not missing.optional:
                    raise MissingValueError(values.owner, name, missing.reason)
                if name in values.values and not is_scalar(found := values.values[name]):
                    # The value is the result of a function or of a dotted path.
                    raise MissingValueError(values.owner, name, f"expected a string, got {kind_of(found)}")
        # A key read from a file may end in a line break.
        key = str(key).strip() if key else self.endpoint.api_key
        return replace(
            self.endpoint,
            base_url=str(base_url).strip().rstrip("/") if base_url else self.endpoint.base_url,
            api_key=None if token is not None else key,
            bearer_token=token,
        )

    def _for_wire(self, request: ModelRequest) -> ModelRequest:
        """Return the request without the parts that handlers write, so that the wire leaves them out."""
        handler = self.declaration.handler
        if handler("build_messages") is not None:
            request = replace(request, system="", messages=[])
        if handler("build_tools") is not None:
            request = replace(request, tools=[], tool_choice=None)
        if handler("build_structured_output") is not None:
            request = replace(request, response_format=None)
        return request

    async def _messages(self, functions: Functions, request: ModelRequest) -> list[JsonObject]:
        view = functions.view
        if "format_response" not in functions:
            return messages_of(request, view.name, view.roles, None)

        def format_response(call: JsonObject, text: str) -> JsonObject | None:
            made = functions.run("format_response", tool_call=call, output=text)
            if made is not None and not isinstance(made, dict):
                raise functions.unusable("format_response", "return a message such as {role, tools, content}", made)
            return cast("JsonObject | None", made)

        return await functions.in_thread(lambda: messages_of(request, view.name, view.roles, format_response))

    async def _body(
        self,
        functions: Functions,
        request: ModelRequest,
        values: EnvValues,
        messages: list[JsonObject],
        wire: JsonObject,
    ) -> JsonObject:
        view = functions.view
        parameters = {
            key: _fill_placeholders(f"parameters.{key}", value, values, view)
            for key, value in view.parameters.items()
        }
        parameters = {key: value for key, value in parameters.items() if value is not None}
        tools = tools_of(request.tools)
        parts: list[JsonObject] = []
        if "build_parameters" in functions:
            parts.append(
                await functions.table("build_parameters", "{temperature}", params=parameters, messages=messages)
            )
        else:
            parts.append(parameters)
        if "build_messages" in functions:
            parts.append(await functions.table("build_messages", "{messages}", messages=messages))
        if "build_tools" in functions and tools:
            parts.append(await functions.table("build_tools", "{tools}", tools=tools))
        if "build_structured_output" in functions and request.response_format is not None:
            wanted = request.response_format
            shape = {"name": wanted.name, "schema": wanted.schema, "strict": wanted.strict}
            parts.append(await functions.table("build_structured_output", "{response_format}", schema=shape))
        parts.append(view.body)
        if "build_body" in functions:
            payload = {"messages": messages, "tools": tools, "session_id": request.session_id}
            parts.append(await functions.table("build_body", "{stop}", data=payload))
        body: JsonObject = wire
        for part in reversed(parts):
            body = merge(body, part)
        return body

    def _url(self, view: AdapterView, values: EnvValues, base: HttpRequest | None, endpoint: Endpoint) -> str:
        template = view.url
        if template is not None and BASE_URL in self.session_values and f"${{{BASE_URL}}}" not in template:
            # The session's base URL replaces the declared URL; only a path that the wire would use too is kept.
            whole = base.url if base is not None else endpoint.base_url
            path = whole.removeprefix(endpoint.base_url)
            return whole if path and template.partition("?")[0].endswith(path) else endpoint.base_url
        if template is None:
            if base is None:
                raise ConfigError(f"adapter {view.name!r} has no url")
            if not endpoint.base_url:
                raise ConfigError(f"adapter {view.name!r} needs a base_url")
            return base.url
        url = values.text(template)
        if url is None:
            raise ConfigError(f"adapter {view.name!r}: a value in its url is missing: {template}")
        return url

    def _request_function(
        self, functions: Functions, messages: list[JsonObject], request: ModelRequest
    ) -> RequestFunction | None:
        """Return the function that replaces the network, if the adapter has one."""
        view = functions.view
        function = view.opts.get("request")
        if function is None:
            return None
        if not callable(function):
            # Set by a handler: a declared one has been checked.
            raise ConfigError(f"adapter {view.name!r}: opts.request: expected a function")
        from jumpseat.adapters.declared.request_function import RequestFunction

        payload = {"messages": messages, "tools": tools_of(request.tools), "session_id": request.session_id}
        return RequestFunction(function, view, payload, functions.mask)

    def _headers(
        self,
        view: AdapterView,
        request: ModelRequest,
        values: EnvValues,
        base: HttpRequest | None,
        endpoint: Endpoint,
    ) -> dict[str, str]:
        usual: Mapping[str, str] = (
            base.headers
            if base is not None
            else {
                "Content-Type": "application/json",
                "Accept": "text/event-stream" if request.stream else "application/json",
                "User-Agent": endpoint.user_agent,
            }
        )
        declared: dict[str, str] = {}
        for name, value in view.headers.items():
            text = _fill_placeholders(f"headers.{name}", value, values, view)
            if text is not None and text is not False:
                declared[name] = str(text)
        declared.update(_raw_headers(self.declaration.raw, values))
        return merge_headers(usual, declared, endpoint.headers, request.headers)

    # --- the response ---------------------------------------------------------------------------------------------

    def _decoder(self, functions: Functions, request: ModelRequest) -> Decoder:
        view = functions.view
        if self._reads_inline(request):
            can_stream = "parse_chat" in functions or self.wire is not None
            streamed = self._chat_decoder(functions, request) if can_stream else None
            return InlineDecoder(functions, request, streamed)
        if "parse_chat" not in functions and self.wire is None:
            raise ConfigError(
                f"adapter {view.name!r} cannot read responses: add the handler parse_chat, or extend an adapter"
            )
        return self._chat_decoder(functions, request)

    def _reads_inline(self, request: ModelRequest) -> bool:
        """Return whether ``parse_inline`` reads the response; it does not support tool calls."""
        return self.text_only and not request.tools and self.declaration.handler("parse_inline") is not None

    def _chat_decoder(self, functions: Functions, request: ModelRequest) -> Decoder:
        if "parse_chat" in functions:
            return HandlerDecoder(functions, request)
        assert self.wire is not None
        decoder = self.wire.decoder_at(self.endpoint, request)
        wants = ("parse_meta", "parse_tokens", "build_reasoning")
        return MetaDecoder(functions, decoder) if any(name in functions for name in wants) else decoder


def is_computed(entry: SchemaEntry) -> bool:
    """Return whether the value of a setting depends on functions."""
    return any(callable(value) for value in (entry.default, entry.choices, entry.enabled, entry.check))


async def _run_exit_handlers(functions: Functions, outcome: Outcome, *, strict: bool) -> str | None:
    """Run ``on_exit``, then ``teardown``; return the error that ``on_exit`` has returned or raised on purpose.

    Their failures are only logged, because the call has ended; with ``strict``, they are raised.
    """
    data = {
        "body": outcome.body,
        "exit": 1 if outcome.status is None or outcome.broken else 0,
        "headers": [f"{name}: {value}" for name, value in outcome.headers.items()],
        "status": outcome.status or 0,
    }
    try:
        return _error_of(await _run_last(functions, "on_exit", strict=strict, data=data))
    finally:
        await _run_last(functions, "teardown", strict=strict)


async def _run_last(functions: Functions, name: str, *, strict: bool = False, **values: Any) -> Any:
    if name in functions:
        try:
            return await functions.call(name, limit_s=LAST_S, **values)
        except AdapterError:
            if strict:
                raise
        except JumpseatError as error:
            return str(error)
    return None


def _error_of(result: Any) -> str | None:
    """Return the text of an error that ``on_exit`` has returned: a string, or ``{status: "error", output}``."""
    if isinstance(result, Mapping):
        table = cast("Mapping[str, Any]", result)
        output = table.get("output") if table.get("status") == "error" else None
        result = as_object(output).get("content", output)
    return result if isinstance(result, str) else None


def _fill_placeholders(what: str, value: Any, values: EnvValues, view: AdapterView) -> Any:
    """Return the value of a header or parameter with placeholders filled in; functions are called first."""
    if callable(value):
        value = value_from(view, what, value)
    if isinstance(value, str):
        return values.text(value)
    if isinstance(value, Mapping):
        table = cast("Mapping[str, Any]", value)
        return {k: values.text(v) if isinstance(v, str) else v for k, v in table.items()}
    return value


def _raw_headers(raw: list[str], values: EnvValues) -> dict[str, str]:
    found: dict[str, str] = {}
    for meaning, text in _arguments(raw, values):
        if meaning == "header":
            name, _, content = text.partition(":")
            found[name.strip()] = content.strip()
    return found


def _argument_values(raw: list[str], values: EnvValues) -> dict[str, str]:
    """Return the values of curl arguments by meaning; the last one applies if an argument is repeated."""
    return dict(_arguments(raw, values))


def _arguments(raw: list[str], values: EnvValues) -> Iterator[tuple[str, str]]:
    """Iterate over the meaning and value of each argument; those without their optional value are omitted."""
    at = 0
    while at < len(raw):
        meaning, count = RAW_FLAGS[raw[at]]
        text = values.text(raw[at + 1]) if count else ""
        if text is not None:
            yield meaning, text
        at += 1 + count
