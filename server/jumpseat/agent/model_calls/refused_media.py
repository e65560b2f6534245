"""Requests without the pictures and documents that a provider may have refused.

Providers refuse media in many words, or with an internal error. A request that fails is therefore repeated without
its media; if that succeeds, the media were the reason, and the conversation keeps notes in their place.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from jumpseat.agent.conversation.conversation import REFUSED_ALL_MEDIA, REFUSED_MEDIA
from jumpseat.agent.conversation.media import first_unanswered, has_media, without_images, without_media
from jumpseat.agent.conversation.portability import check_portability
from jumpseat.agent.interfaces import ResolvedModel
from jumpseat.agent.model import ModelRequest
from jumpseat.agent.session.session import Session
from jumpseat.errors import (
    ProviderError,
    ProviderImagesError,
    ProviderRequestError,
    ProviderToolsError,
    UnwritableBodyError,
)
from jumpseat_protocol import events


class Reduction(Struct, frozen=True):
    """A request with fewer media. ``warning_type`` is that of the warning if the provider accepts the request."""

    request: ModelRequest
    warning_type: str


def may_refuse_media(error: ProviderError, request: ModelRequest) -> bool:
    """Return whether the media of a request may be the reason for an error."""
    if isinstance(error, ProviderToolsError | UnwritableBodyError):
        return False
    if not (isinstance(error, ProviderRequestError) or error.status in (413, 500)):
        return False
    return has_media(request.messages, vision=request.vision)


def reductions(request: ModelRequest, error: ProviderError) -> Iterator[Reduction]:
    """Iterate over requests with ever fewer media, after ``request`` was refused."""
    if isinstance(error, ProviderImagesError) and request.vision:
        yield Reduction(replace(request, vision=False), "vision")
    begin = first_unanswered(request.messages)
    if has_media(request.messages[begin:], vision=request.vision):
        yield Reduction(replace(request, messages=without_media(request.messages, begin)), REFUSED_MEDIA)
    if has_media(request.messages[:begin], vision=request.vision):
        yield Reduction(replace(request, messages=without_media(request.messages)), REFUSED_ALL_MEDIA)


def with_notes(request: ModelRequest) -> ModelRequest:
    """Return the request with notes in place of pictures if the model sees none."""
    if request.vision or not has_media(request.messages, vision=True):
        return request
    return replace(request, messages=without_images(request.messages))


def settle(session: Session, resolved: ResolvedModel, accepted: Reduction, error: ProviderError) -> None:
    """Leave the refused media out of later requests too, and warn the user."""
    if accepted.warning_type == "vision":
        session.services.models.learn(resolved, vision=False)
        family = resolved.model.signs_as
        # The next request would warn of the same pictures.
        session.warned.portability = family, check_portability(accepted.request.messages, family, vision=False)
        text = f"{resolved.info.id} does not see images ({error}). From now on it gets a note in place of each."
    else:
        text = f"The provider refused pictures or documents ({error}). The conversation has notes in their place."
    session.emit(events.SessionWarning(warning_type=accepted.warning_type, message=text))
