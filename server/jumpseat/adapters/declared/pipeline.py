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

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from jumpseat.adapters.adapter import Adapter, Decoder, Endpoint, HttpRequest, Network, Outcome, PreparedCall
from jumpseat.adapters.capabilities import capabilities
from jumpseat.adapters.declared.canonical import FormatResponse, messages_of, tools_of
from jumpseat.adapters.declared.declaration import (
    API_KEY,
    BASE_URL,
    RAW_FLAGS,
    TEXTS,
    TIMEOUTS,
    Declaration,
    merge,
    network_of,
    timeouts_of,
)
from jumpseat.adapters.declared.decoder import HandlerDecoder, InlineDecoder, MetaDecoder
from jumpseat.adapters.declared.settings import apply_settings
from jumpseat.adapters.declared.view import AdapterView
from jumpseat.adapters.wire import as_object, merge_headers
from jumpseat.agent.blocks import JsonObject
from jumpseat.agent.model import Capabilities, ModelRequest
from jumpseat.declared.env import EnvResolver, EnvValues, MissingValueError, is_scalar
from jumpseat.declared.files import FATAL_ERRORS
from jumpseat.errors import ConfigError, JumpseatError, ProviderRequestError

if TYPE_CHECKING:
    from jumpseat.adapters.declared.request_function import RequestFunction


@dataclass(frozen=True, slots=True)
class DeclaredCaller:
    """Prepares calls to the models of one declared adapter. ``wire`` is ``None`` if handlers do everything.

    ``session_values`` are the session's own values of ``env``; ``endpoint`` holds its headers, options and user
    agent. ``token`` returns the bearer token for each call, which replaces the key; without it, ``key`` returns the
    key. ``kind`` is the built-in provider type of the wire. With ``text_only``, calls expect only text, and
    ``parse_inline`` reads the answer if the adapter has that handler.
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
        can = capabilities(self.wire, model) if self.wire is not None else Capabilities(structured_output="never")
        if self.declaration.handler("build_structured_output") is not None:
            can = replace(can, structured_output="always")
        return can

    def for_text(self) -> DeclaredCaller:
        return replace(self, text_only=True)

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
        filled = ((name, _fill_placeholders(value, values, view)) for name, value in view.headers.items())
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
        if self._reads_inline(request):
            # Set before ``setup``, which may read it.
            view.opts["stream"] = False
            for declared in (view.parameters, view.body):
                if declared.get("stream") is True:
                    declared["stream"] = False
        if view.opts.get("stream") is False:
            request = replace(request, stream=False)
        request = apply_settings(view, request)
        if (setup := declaration.handler("setup")) is not None and await _run_handler(
            view, "setup", setup, view
        ) is False:
            raise ProviderRequestError(f"adapter {view.name!r} refused the request: its setup returned false")
        session_values, token = self.session_values, self.endpoint.bearer_token
        if self.token is not None:
            token = await self.token()
        elif self.key is not None and token is None:
            session_values = {**session_values, API_KEY: await self.key()}
        if token is not None:
            # The token also replaces the key in handlers and headers.
            session_values = {**session_values, API_KEY: token}
        values = await self.resolver.resolve(f"adapter {view.name!r}", view.env, view.lookup, view, session_values)
        view.env_replaced = dict(values.values)
        endpoint = self._endpoint(values, token)
        base = self.wire.request(endpoint, self._for_wire(request)) if self.wire is not None else None
        body = await self._body(view, request, values, base.body if base is not None else {})
        url = self._url(view, values, base, endpoint)
        headers = self._headers(view, request, values, base, endpoint)
        arguments = _argument_values(self.declaration.raw, values)
        # The base URL is not a secret, and errors should contain it.
        secrets = values.secret - {str(values.values.get(BASE_URL))}
        return PreparedCall(
            HttpRequest(url=url, headers=headers, body=body, method=str(view.opts.get("method", "POST"))),
            self._decoder(view, request),
            tuple(secrets),
            lambda outcome: self._run_exit_handlers(view, outcome),
            timeouts_of(view.name, view.opts.get(TIMEOUTS), arguments),
            network_of(arguments),
            self._request_function(view, request),
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
                    raise MissingValueError(values.owner, name, f"expected a string, got {type(found).__name__}")
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

    async def _body(
        self, view: AdapterView, request: ModelRequest, values: EnvValues, wire: JsonObject
    ) -> JsonObject:
        handler = self.declaration.handler
        parameters = {key: _fill_placeholders(value, values, view) for key, value in view.parameters.items()}
        parameters = {key: value for key, value in parameters.items() if value is not None}
        messages = messages_of(request, view.name, view.roles, self._format_response(view))
        tools = tools_of(request.tools)
        parts: list[JsonObject] = []
        if (build := handler("build_parameters")) is not None:
            parts.append(as_object(await _run_handler(view, "build_parameters", build, view, parameters, messages)))
        else:
            parts.append(parameters)
        if (build := handler("build_messages")) is not None:
            parts.append(as_object(await _run_handler(view, "build_messages", build, view, messages)))
        if (build := handler("build_tools")) is not None and tools:
            parts.append(as_object(await _run_handler(view, "build_tools", build, view, tools)))
        if (build := handler("build_structured_output")) is not None and request.response_format is not None:
            wanted = request.response_format
            shape = {"name": wanted.name, "schema": wanted.schema, "strict": wanted.strict}
            parts.append(as_object(await _run_handler(view, "build_structured_output", build, view, shape)))
        parts.append(view.body)
        if (build := handler("build_body")) is not None:
            payload = {"messages": messages, "tools": tools, "session_id": request.session_id}
            parts.append(as_object(await _run_handler(view, "build_body", build, view, payload)))
        body: JsonObject = wire
        for part in reversed(parts):
            body = merge(body, part)
        return body

    def _format_response(self, view: AdapterView) -> FormatResponse | None:
        handler = self.declaration.handler("format_response")
        if handler is None:
            return None

        def format_response(call: JsonObject, text: str) -> Any:
            return handler(view, call, text)

        return format_response

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

    def _request_function(self, view: AdapterView, request: ModelRequest) -> RequestFunction | None:
        """Return the function that replaces the network, if the adapter has one."""
        function = view.opts.get("request")
        if function is None:
            return None
        if not callable(function):
            raise ConfigError(f"adapter {view.name!r}: opts.request: expected a function")
        from jumpseat.adapters.declared.request_function import RequestFunction

        messages = messages_of(request, view.name, view.roles, self._format_response(view))
        payload = {"messages": messages, "tools": tools_of(request.tools), "session_id": request.session_id}
        return RequestFunction(function, view, payload)

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
            text = _fill_placeholders(value, values, view)
            if text is not None and text is not False:
                declared[name] = str(text)
        declared.update(_raw_headers(self.declaration.raw, values))
        return merge_headers(usual, declared, endpoint.headers, request.headers)

    # --- the response ---------------------------------------------------------------------------------------------

    def _decoder(self, view: AdapterView, request: ModelRequest) -> Decoder:
        handlers = self.declaration.handlers
        if self._reads_inline(request):
            return InlineDecoder(view, handlers, self._chat_decoder(view, request))
        return self._chat_decoder(view, request)

    def _reads_inline(self, request: ModelRequest) -> bool:
        """Return whether ``parse_inline`` reads the response; it does not support tool calls."""
        return self.text_only and not request.tools and self.declaration.handler("parse_inline") is not None

    def _chat_decoder(self, view: AdapterView, request: ModelRequest) -> Decoder:
        handlers = self.declaration.handlers
        if "parse_chat" in handlers:
            return HandlerDecoder(view, handlers, request)
        if self.wire is None:
            raise ConfigError(
                f"adapter {view.name!r} cannot read responses: add the handler parse_chat, or extend an adapter"
            )
        decoder = self.wire.decoder(request)
        wants = ("parse_meta", "parse_tokens", "build_reasoning")
        return MetaDecoder(view, handlers, decoder) if any(name in handlers for name in wants) else decoder

    async def _run_exit_handlers(self, view: AdapterView, outcome: Outcome) -> None:
        handler = self.declaration.handler
        if (on_exit := handler("on_exit")) is not None:
            data = {"status": outcome.status, "headers": dict(outcome.headers), "body": outcome.body}
            await _run_handler(view, "on_exit", on_exit, view, data)
        if (teardown := handler("teardown")) is not None:
            await _run_handler(view, "teardown", teardown, view)


async def _run_handler(view: AdapterView, name: str, handler: Any, *args: Any) -> Any:
    """Run a handler and return its result.

    Raises:
        ProviderRequestError: the handler failed; the message contains only the type of its exception, whose own
            message may quote secrets.
    """
    try:
        answer = handler(*args)
        return await answer if inspect.isawaitable(answer) else answer
    except JumpseatError:
        raise
    except (Exception, *FATAL_ERRORS) as error:
        raise ProviderRequestError(
            f"adapter {view.name!r}: its handler {name} failed ({type(error).__name__})"
        ) from error


def _fill_placeholders(value: Any, values: EnvValues, view: AdapterView) -> Any:
    """Return the value of a header or parameter with placeholders filled in; functions are called first."""
    if callable(value):
        try:
            value = value(view)
        except (Exception, *FATAL_ERRORS) as error:
            raise ConfigError(
                f"adapter {view.name!r}: a function in place of a value failed ({type(error).__name__})"
            ) from error
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
