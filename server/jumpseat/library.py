"""Model calls from Python, in the calling process and without a server.

The same configuration applies as to a server: ``config.toml`` and adapters in the home folder, and keys in the
environment. See ``docs/complete.md``.
"""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import anyio
from pydantic import ValidationError

from jumpseat.errors import ConfigError, InvalidRequestError
from jumpseat.parsing.validation import validation_problems
from jumpseat_protocol.complete import (
    AnswerStream,
    CompleteEvent,
    CompleteOptions,
    CompleteParams,
    CompleteResult,
    ModelChoice,
    options_problem,
)

if TYPE_CHECKING:
    from jumpseat.adapters.models.resolver import Models
    from jumpseat_protocol.blocks import Message
    from jumpseat_protocol.portability import Portability
    from jumpseat_protocol.sessions import ProviderConfig


P = TypeVar("P", bound=ModelChoice)


class ModelLibrary:
    """Access to models, made by :func:`open_models`. Calls may run concurrently and share connections."""

    def __init__(self, models: Models, default: ModelChoice) -> None:
        self._models = models
        self._default = default

    async def complete(
        self, params: CompleteParams | None = None, /, **options: Unpack[CompleteOptions]
    ) -> CompleteResult:
        """Call a model once and return its answer. ``options`` take precedence over ``params``.

        Nothing is stored, and a failed call is not retried.

        Raises:
            InvalidRequestError: the request cannot be carried out as asked.
            ConfigError: the model cannot be resolved.
            ProviderError: the call failed.
        """
        from jumpseat.adapters.completion.call import complete

        return await complete(self._models, self._with_default(_params(params, options, stream=False)))

    @asynccontextmanager
    async def stream(
        self, params: CompleteParams | None = None, /, **options: Unpack[CompleteOptions]
    ) -> AsyncGenerator[AnswerStream]:
        """Call a model once and iterate over its answer; ``result`` is set when the iteration has ended.

        Leaving the context ends the call.

        Raises:
            InvalidRequestError, ConfigError, ProviderError: as :meth:`complete`; the last also while iterating.
        """
        from jumpseat.adapters.completion.call import open_answer

        wanted = self._with_default(_params(params, options, stream=True))
        async with open_answer(self._models, wanted) as pieces:
            yield AnswerStream(_events(pieces))

    async def portability(
        self,
        messages: Sequence[Message],
        *,
        adapter: str | None = None,
        provider: ProviderConfig | None = None,
        model: str | None = None,
    ) -> Portability:
        """Report for each block whether a model would receive it unchanged, converted or not at all.

        Raises:
            InvalidRequestError: the conversation is invalid.
            ConfigError: the model cannot be resolved.
        """
        from jumpseat.adapters.completion.conversion import to_conversation
        from jumpseat.adapters.completion.portability import report
        from jumpseat.adapters.completion.request import resolve_model, settings_of

        target = self._with_default(ModelChoice(adapter=adapter, provider=provider, model=model))
        given = _params(None, {"messages": messages}, stream=False).messages or []
        _, conversation = to_conversation(given, may_end_in_calls=True)
        resolved = await resolve_model(self._models, target, settings_of(target))
        return report(conversation, resolved, given)

    def _with_default(self, params: P) -> P:
        """Return ``params`` with the default model, provider or adapter if they name neither of the latter."""
        if params.adapter is not None or params.provider is not None:
            return params
        default = self._default
        return params.model_copy(
            update={
                "adapter": default.adapter,
                "provider": default.provider,
                "model": params.model or default.model,
            }
        )


@asynccontextmanager
async def open_models(
    *,
    home: str | os.PathLike[str] | None = None,
    environ: Mapping[str, str] | None = None,
    config: Mapping[str, Any] | None = None,
    adapter: str | None = None,
    provider: ProviderConfig | None = None,
    model: str | None = None,
) -> AsyncGenerator[ModelLibrary]:
    """Open access to models; connections are opened by the calls and closed at the end.

    Args:
        home: the folder of ``config.toml`` and of adapters, by default that of a server.
        environ: the environment variables, by default those of the process.
        config: the contents of ``config.toml``, in place of the file.
        adapter, provider, model: the defaults for calls that name no adapter and no provider.

    Raises:
        ConfigError: the configuration is invalid.
    """
    from jumpseat.adapters.models.resolver import Models
    from jumpseat.adapters.providers import environment_providers
    from jumpseat.config import Config, config_problems, home_folder, load_config
    from jumpseat.options import options_of_environ
    from jumpseat.store.user.provider_keys import ProviderKeys
    from jumpseat.store.user.trusted_folders import TrustedFolders

    options = options_of_environ(os.environ if environ is None else environ)
    folder = Path(home) if home is not None else home_folder(options.environ)
    if config is None:
        loaded = load_config(folder, environment_providers())
    else:
        try:
            loaded = Config.model_validate(dict(config))
        except ValidationError as error:
            raise ConfigError(f"config: {validation_problems(error, Config)[0]}") from None
        for problem in config_problems(loaded):
            raise ConfigError(f"config: {problem}")
    trust = TrustedFolders(folder, loaded.trusted_folders)
    config_file = folder / "config.toml" if config is None else None
    models = Models(
        loaded,
        options,
        folder,
        is_trusted=trust.is_trusted,
        config_file=config_file,
        keys=ProviderKeys(folder),
    )
    try:
        yield ModelLibrary(models, ModelChoice(adapter=adapter, provider=provider, model=model))
    finally:
        with anyio.CancelScope(shield=True):
            await models.connections.close()


async def complete(params: CompleteParams | None = None, /, **options: Unpack[CompleteOptions]) -> CompleteResult:
    """Call a model once; see :meth:`ModelLibrary.complete`. For several calls, use :func:`open_models`."""
    async with open_models() as models:
        return await models.complete(params, **options)


def complete_sync(params: CompleteParams | None = None, /, **options: Unpack[CompleteOptions]) -> CompleteResult:
    """Call a model once, from code without an event loop; see :func:`complete`."""
    return anyio.run(partial(complete, params, **options))


@asynccontextmanager
async def stream(
    params: CompleteParams | None = None, /, **options: Unpack[CompleteOptions]
) -> AsyncGenerator[AnswerStream]:
    """Call a model once and iterate over its answer; see :meth:`ModelLibrary.stream`."""
    async with open_models() as models, models.stream(params, **options) as answer:
        yield answer


def _params(params: CompleteParams | None, options: CompleteOptions, *, stream: bool) -> CompleteParams:
    if (problem := options_problem(params, options)) is not None:
        raise InvalidRequestError(problem)
    given = {name: getattr(params, name) for name in params.model_fields_set} if params is not None else {}
    try:
        return CompleteParams.model_validate({**given, **options, "stream": stream}, by_name=True)
    except ValidationError as error:
        raise InvalidRequestError(validation_problems(error, CompleteParams)[0]) from None


async def _events(pieces: Any) -> AsyncGenerator[CompleteEvent | CompleteResult]:
    from jumpseat_protocol.complete import CompleteDelta

    async for piece in pieces:
        if isinstance(piece, CompleteResult):
            yield piece
        elif isinstance(piece, CompleteDelta):
            yield CompleteEvent.model_construct(delta=piece)
        else:
            yield CompleteEvent.model_construct(block=piece)
