"""Requests of the Copilot SDK protocol: find their handlers by the names of the methods, and call them.

The table of the protocol lists the methods with the types of their params. A handler takes a :class:`Context` and
its validated params, and returns a result model, plain JSON or ``None``. Plain functions run at once, in the order
of arrival; coroutine functions run as tasks.
"""

from __future__ import annotations

import builtins
import inspect
import logging
import re
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from keyword import iskeyword
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

import anyio
from pydantic import ValidationError, create_model

from jumpseat.errors import AuthenticationRequiredError, InvalidRequestError, UnsupportedError
from jumpseat.rpc.wire_errors import SHOWN_PROBLEMS, InvalidParamsError, check_size, invalid_params
from jumpseat.sessions.context import Context
from jumpseat_protocol.events import SessionWarning
from jumpseat_protocol.members import UnknownMember, dotted, misspelt, nearest, unknown_members
from jumpseat_protocol.methods import CLIENT_REQUESTS, FOLDERS, PROTOCOL_VERSION, namespace_of
from jumpseat_protocol.unserved import UNKNOWN, WithoutEffect, changes_nothing, listed, without_effect
from jumpseat_protocol.unsupported import NEUTRAL_ANSWERS, REFUSALS, UNSUPPORTED_REQUESTS
from jumpseat_protocol.wire import WireModel, WireStruct, to_wire

log = logging.getLogger(__name__)

EXTENSIONS: Final = frozenset(
    {
        "adapterSettings",
        "apiKeyCommand",
        "editTools",
        "hostedTools",
        "keepInterruptedAnswers",
        "oneOff",
        "responseFormat",
        "toolChoice",
        "toolProtocol",
    }
)
"""The members that this server adds to the methods of the Copilot SDK protocol."""

ALMOST: Final = 0.8
"""Similarity from which an unknown member is a misspelled extension; the names of all SDKs are less similar."""

MOST_UNKNOWN: Final = 200
"""The unknown members of a request; the same member of several objects counts once."""

MOST_COMPARED: Final = 20
"""The unknown members of a request that are compared with all known names of their objects."""

LOGGED_AT_MOST: Final = 500
"""Limits the memory that a client with random names can use up."""


class IgnoredMembers:
    """The ignored members of one process: each is logged once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], WithoutEffect] = {}
        """By method and path. SDKs send the same members each time."""

    def missed(self, method: str, unknown: Iterable[UnknownMember]) -> dict[str, str]:
        """Return the members that the client may miss, and why they have no effect, as text by key.

        Raises:
            InvalidParamsError: a member seems to name a provider, or its address or key.
            UnsupportedError: a member restricts the request.
        """
        missed: dict[str, str] = {}
        shapes: set[tuple[str, ...]] = set()
        for member in unknown:
            shapes.add(member.shape)
            if len(shapes) > MOST_UNKNOWN:
                # Each is compared with all known names.
                raise InvalidParamsError(method, [f"more than {MOST_UNKNOWN} unknown members"])
            if (meant := meant_for_provider(method, member)) is not None:
                # A prompt and a key must not go to another host than the one that was meant.
                raise InvalidParamsError(method, [f"{dotted(member.path)}: unknown, did you mean {meant!r}?"])
            found = self.note(method, member, compare=len(shapes) <= MOST_COMPARED)
            if found.state == "neutral" or changes_nothing(found.key, member.value):
                continue
            path = dotted(member.path)
            if found.state == "refused":
                raise UnsupportedError(f"{method} with {path}", found.because)
            missed.setdefault(found.key, f"{path!r:.200} ({found.because})")
        return missed

    def note(self, method: str, member: UnknownMember, *, compare: bool = False) -> WithoutEffect:
        """Log a member that this server does not serve, without its value, and return why.

        With ``compare``, the reason names the known member that an unknown one resembles.
        """
        path = ".".join(member.shape)
        if (known := self._known.get((method, path))) is not None:
            return known
        found = without_effect(method, path)
        if (meant := misspelled_extension(member)) is not None:
            found = WithoutEffect(found.key, f"did you mean {meant!r}?", "unsupported")
        elif compare and found.because == UNKNOWN:
            meant = nearest(str(member.path[-1]), member.known, ALMOST)
            found = found if meant is None else found._replace(because=f"{UNKNOWN}, did you mean {meant!r}?")
        if len(self._known) < LOGGED_AT_MOST:
            self._known[method, path] = found
            # SDKs send some members with every request. Nothing is different without them.
            same = found.state == "neutral" or changes_nothing(found.key, member.value)
            level = logging.DEBUG if same else logging.INFO
            log.log(level, "%s: the member %.200r is ignored: %s", method, path, found.because)
        return found


def misspelled_extension(member: UnknownMember) -> str | None:
    """Return the extension that a member was probably meant to be."""
    name = str(member.path[-1])
    if nearest(name, EXTENSIONS, ALMOST) is None:
        # Most unknown members are those of newer SDKs: they are compared with few names.
        return None
    found = nearest(name, member.known, ALMOST)
    return found if found in EXTENSIONS else None


def meant_for_provider(method: str, member: UnknownMember) -> str | None:
    """Return the member that an unknown one was probably meant to be, if that decides where prompts and keys go.

    Names of other programs for the address and the key count as well. Members that SDKs send are never taken for
    others.
    """
    if listed(".".join((method, *member.shape))) is not None:
        return None
    name = str(member.path[-1])
    near = misspelt(name, member.known) or nearest(name, member.known, ALMOST)
    if "baseUrl" in member.known:
        is_address = _ADDRESS.search(name) or _is_address(member.value)
        other = "baseUrl" if is_address else "apiKey" if _CREDENTIAL.search(name) else None
        return near or other
    if "wireModel" in member.known or not {"provider", "providers"}.isdisjoint(member.shape[:-1]):
        return near
    if _is_provider(member.value):
        return "provider"
    if "provider" not in member.known:
        return None
    inside = nearest(name, ("baseUrl", "apiKey", "apiKeyCommand", "bearerToken"), ALMOST)
    if inside is None and _ADDRESS.search(name) and _is_address(member.value):
        inside = "baseUrl"
    return f"provider.{inside}" if inside is not None else near if near in ("provider", "providers") else None


def _is_address(value: Any) -> bool:
    return isinstance(value, str) and _WEB.match(value) is not None


def _is_provider(value: Any) -> bool:
    """Return whether an object names an address or a key as a provider does."""
    if not isinstance(value, dict):
        return False
    members = cast("dict[str, Any]", value)
    return any(
        isinstance(members.get(name), str) for name in ("baseUrl", "baseURL", "base_url", "apiKey", "api_key")
    )


_WEB: Final = re.compile("https?://", re.IGNORECASE)
_ADDRESS: Final = re.compile("ur[li]|base|endpoint|host|server|address", re.IGNORECASE)
_CREDENTIAL: Final = re.compile("key|token|secret|password|bearer|auth", re.IGNORECASE)


async def warn_later(ctx: Context, method: str, missed: Mapping[str, str], params: Any, result: Any) -> Any:
    """Wait for the result of a request, then warn the clients of its session of members without effect.

    A session has one warning about each member.
    """
    if inspect.isawaitable(result):
        result = await result
    given = cast("Mapping[str, Any]", params).get("sessionId")
    session_id = getattr(result, "session_id", None) or given
    # The request may have ended its session.
    session = await ctx.registry.find_live(session_id) if isinstance(session_id, str) else None
    new = missed.keys() - session.warned.members if session is not None else ()
    if session is not None and new:
        session.warned.members |= new
        texts = ", ".join(sorted(text for key, text in missed.items() if key in new))
        session.emit(
            SessionWarning(warning_type="unsupported_option", message=f"{method}: without effect: {texts}")
        )
    return result


@cache
def fixed_answer_params(method: str) -> type[WireModel]:
    """Return the type of a method's params: the session, if it is about one, and its required strings."""
    answer = NEUTRAL_ANSWERS.get(method)
    required = (*(("sessionId",) if method.startswith("session.") else ()), *(answer.needs if answer else ()))
    fields: dict[str, Any] = dict.fromkeys(required, (str, ...))
    return create_model("FixedAnswerParams", __base__=WireModel, **fields)


def fixed_answer(ctx: Context, method: str, params: Mapping[str, Any]) -> Any:
    """Return the fixed answer to ``method``.

    Raises:
        SessionNotFoundError: the method is about a session that is not live.
        InvalidRequestError: the answer is a refusal, with a message that clients know.
        UnsupportedError: the answer does not apply to these params.
    """
    # Some methods of the server name a session, too.
    if method.startswith(("session.", "sessions.")) and isinstance(session_id := params.get("sessionId"), str):
        ctx.registry.live(session_id)
    if method in REFUSALS:
        raise InvalidRequestError(REFUSALS[method])
    answer = NEUTRAL_ANSWERS[method]
    if any(params.get(name) != value for name, value in answer.only.items()):
        raise UnsupportedError(method)
    if answer.echoes:
        return {name: params.get(name) for name in answer.echoes}
    return answer.result


Handler: TypeAlias = Callable[[Context, Any], Any]
M = TypeVar("M", bound=WireModel)

OURS: Final = "jumpseat."
"""The prefix of methods that the Copilot SDK protocol does not have."""

ALIASES: Final[Mapping[str, str]] = {
    "sessions.getMetadata": "session.getMetadata",
    # Older names, which SDKs before 1.0 use.
    "session.auth.getStatus": "session.gitHubAuth.getStatus",
    "session.destroy": "session.detach",
    "session.workspace.createFile": "session.workspaces.createFile",
    "session.workspace.listFiles": "session.workspaces.listFiles",
    "session.workspace.readFile": "session.workspaces.readFile",
}
"""The methods that have the handler of another method."""


SERVER_WIDE: Final = frozenset(
    {
        "account.getAllUsers",
        "account.login",
        "account.logout",
        "session.gitHubAuth.getAllAuthAvailable",
        "session.gitHubAuth.login",
        "session.gitHubAuth.logoutUser",
        "session.gitHubAuth.switchToAuth",
        "llmInference.setProvider",
        "llmInference.httpResponseStart",
        "llmInference.httpResponseChunk",
        "mcp.config.list",
        "mcp.config.add",
        "mcp.config.update",
        "mcp.config.remove",
        "mcp.config.enable",
        "mcp.config.disable",
        "hooks.discover",
        "jumpseat.plugins.programs",
        "jumpseat.plugins.trust",
        "plugins.builtin.set",
        "plugins.list",
        "plugins.install",
        "plugins.uninstall",
        "plugins.update",
        "plugins.updateAll",
        "plugins.enable",
        "plugins.disable",
        "plugins.marketplaces.list",
        "plugins.marketplaces.add",
        "plugins.marketplaces.remove",
        "plugins.marketplaces.browse",
        "plugins.marketplaces.refresh",
        "session.plugins.install",
        "session.plugins.uninstall",
        "session.plugins.update",
        "session.plugins.enable",
        "session.plugins.disable",
        "session.plugins.marketplaces.list",
        "session.plugins.marketplaces.add",
        "session.plugins.marketplaces.remove",
        "session.plugins.marketplaces.browse",
        "session.plugins.marketplaces.refresh",
        "runtime.shutdown",
        "secrets.addFilterValues",
        "skills.config.setDisabledSkills",
        "skills.config.setSkillDisabled",
        "user.settings.get",
        "user.settings.set",
        "user.settings.reload",
        "session.mcp.oauth.login",
        "session.permissions.folderTrust.addTrusted",
        "session.permissions.locations.addToolApproval",
        "jumpseat.adapters.register",
        "jumpseat.setup.get",
        "jumpseat.setup.putKey",
        "jumpseat.setup.removeKey",
        "jumpseat.setup.addServer",
        "jumpseat.setup.models",
        "jumpseat.setup.check",
        "jumpseat.setup.setModel",
        "jumpseat.tools.register",
        "jumpseat.web.login",
        "jumpseat.web.logout",
    }
)
"""The methods that show or change what all sessions of the server share; only tokens with the right ``all`` may."""


CREATE: Final = "session.create"
OPENING: Final = frozenset({CREATE, "session.resume"})
"""The methods that open sessions; requests about a session that is being opened wait for them."""


class Route(NamedTuple):
    """A handler, and the type of its params in the protocol."""

    handler: Handler
    params: type[WireModel]


@cache
def load_route(method: str) -> Route:
    """Import the handler of ``method``, which must be one of the protocol's."""
    module, function = handler_of(method)
    return Route(getattr(import_module(f"jumpseat.handlers.{module}"), function), CLIENT_REQUESTS[method].params)


def handler_of(method: str) -> tuple[str, str]:
    """Return the module, below ``jumpseat.handlers``, and the function that serve ``method``.

    The module is named after the namespace: ``session.mcp.oauth.login`` is ``oauth_login`` in ``session/mcp.py``.
    Methods without a namespace are in ``server.py``, those directly in a folder in a module of the folder's name:
    ``session.send`` is in ``session/session.py``. A function whose name Python has taken ends with an underscore.
    """
    method = ALIASES.get(method, method)
    namespace = namespace_of(method)
    *folder, module = _snake_case(namespace).split(".")
    if namespace in FOLDERS:
        folder = [module]
    function = _snake_case(method.removeprefix(f"{namespace}.")).replace(".", "_")
    if hasattr(builtins, function) or iskeyword(function):
        function += "_"
    return ".".join([*folder, module or "server"]), function


def _snake_case(name: str) -> str:
    return re.sub("(?<=[a-z0-9])[A-Z]", r"_\g<0>", name).lower()


def find_route(ctx: Context, ignored: IgnoredMembers, method: str) -> Callable[[Any], Any] | None:
    """Return the function that serves ``method`` on one connection; ``None`` if the protocol lacks the method.

    Unknown members of params are an error in our own methods. In those of the SDKs, which may be newer than this
    server, they are ``ignored``.
    """
    is_fixed = method in NEUTRAL_ANSWERS or method in REFUSALS
    if not is_fixed and method not in CLIENT_REQUESTS and method not in UNSUPPORTED_REQUESTS:
        return None

    def serve(params: Any, *, waited: bool = False) -> Any:
        check_call(ctx, method)
        check_size(method, params)
        if (opened := _awaited(ctx, method, params, waited=waited)) is not None:
            return _serve_later(opened, serve, params)
        if is_fixed:
            # Nothing is done that a member could restrict.
            for member in unknown_members(fixed_answer_params(method), params)[:MOST_UNKNOWN]:
                ignored.note(method, member)
            _validate(method, fixed_answer_params(method), params)
            return fixed_answer(ctx, method, params or {})
        if method not in CLIENT_REQUESTS:
            raise UnsupportedError(method)
        route = load_route(method)
        unknown = unknown_members(route.params, params)
        if unknown and method.startswith(OURS):
            raise InvalidParamsError(method, [str(member) for member in unknown[:SHOWN_PROBLEMS]])
        missed = ignored.missed(method, unknown) if unknown else {}
        result = route.handler(ctx, _validate(method, route.params, params))
        if missed:
            result = warn_later(ctx, method, missed, params, result)
        if not inspect.isawaitable(result):
            return _encode(result)
        work = _encode_later(result)
        return _Opening(ctx, method, params, work) if method in OPENING else work

    return serve


def check_call(ctx: Context, method: str) -> None:
    """Check that a connection may call a method now, and note what its first call tells about the client.

    Raises:
        AuthenticationRequiredError: the client has not presented a token.
        InvalidRequestError: the method needs the right ``all``, or the server is ending.
    """
    access = ctx.connection.access
    if access is not None:
        ctx.connection.admit()
    elif method != "connect":
        raise AuthenticationRequiredError("AUTHENTICATION_FAILED: connect with the connection token first")
    if method in SERVER_WIDE:
        ctx.require_all(method)
    if ctx.connection.protocol is None:
        # SDKs that send `ping` first know only protocol 2 (0.1), or both versions (0.2, 0.3).
        ctx.connection.protocol = ctx.process.protocol or (2 if method == "ping" else PROTOCOL_VERSION)
    if ctx.process.ending:
        raise InvalidRequestError("the server is shutting down")


def _awaited(ctx: Context, method: str, params: Any, *, waited: bool) -> anyio.Event | None:
    """Return what a request about a session has to wait for: the session may still be on its way."""
    session_id = _session_id(params) if method.startswith("session.") and method != CREATE else None
    if session_id is None:
        return None
    return ctx.all_sessions.awaited(session_id, to_resume=method in OPENING, waited=waited)


def _session_id(params: Any) -> str | None:
    session_id = cast("dict[str, Any]", params).get("sessionId") if isinstance(params, dict) else None
    return session_id if isinstance(session_id, str) else None


class _Opening(Awaitable[Any]):
    """The work of a request that opens a session.

    The session counts as being opened from the arrival of the request, because those that arrive with it are served
    before the work begins. ``close`` drops work that never begins.
    """

    def __init__(self, ctx: Context, method: str, params: Any, work: Coroutine[Any, Any, Any]) -> None:
        self._work = work
        self._opening = ExitStack()
        if (session_id := _session_id(params)) is not None:
            self._opening.enter_context(ctx.all_sessions.opening(session_id, is_new=method == CREATE))

    def __await__(self) -> Generator[Any, Any, Any]:
        with self._opening:
            return (yield from self._work.__await__())

    def close(self) -> None:
        self._work.close()
        self._opening.close()


async def _serve_later(opened: anyio.Event, serve: Callable[..., Any], params: Any) -> Any:
    await opened.wait()
    result = serve(params, waited=True)
    return await result if inspect.isawaitable(result) else result


def _validate(method: str, model: type[M], params: Any) -> M:
    try:
        return model.model_validate({} if params is None else params)
    except ValidationError as error:
        raise invalid_params(method, error, model) from None


async def _encode_later(result: Awaitable[Any]) -> Any:
    return _encode(await result)


def _encode(result: Any) -> Any:
    if isinstance(result, list):
        return [_encode(item) for item in cast("list[Any]", result)]
    if isinstance(result, WireStruct):
        return to_wire(result)
    return result.wire() if isinstance(result, WireModel) else result
