"""The canvases of a session: those that its clients provide, and the instances that are open.

A canvas is a surface that a client shows to its user, such as a board or a form. Models and hosts open instances
of canvases and invoke actions on them; the client that provides a canvas carries out both. The log records which
instances are open, so that a resumed session opens them again as soon as their provider is back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, TypeAlias

from msgspec import Struct

from jumpseat.agent.client import Attachment, Client
from jumpseat.agent.json_schema import UnusableSchemaError, problems_of
from jumpseat.agent.projection import Appliers, Projection
from jumpseat.agent.session.clients import Clients
from jumpseat.agent.settings import SessionSettings
from jumpseat.errors import ClientCallError, InvalidRequestError
from jumpseat_protocol import events
from jumpseat_protocol.callbacks import (
    CanvasActionParams,
    CanvasCloseParams,
    CanvasOpenParams,
    CanvasSessionContext,
)
from jumpseat_protocol.sessions import CanvasDeclaration

log = logging.getLogger(__name__)

Provided: TypeAlias = tuple[Attachment, CanvasDeclaration]
"""A canvas, and what its client provides."""


class _Open(Struct, frozen=True):
    """An instance that a client shows."""

    client: Client
    data: events.SessionCanvasOpened


class Canvases(Projection):
    """The canvases of one session."""

    def __init__(
        self,
        session_id: str,
        settings: SessionSettings,
        clients: Clients,
        emit: Callable[[events.EventPayload], object],
    ) -> None:
        self._session_id = session_id
        self._settings = settings
        self._clients = clients
        self._emit = emit
        self._known: list[events.CanvasInfo] = []
        self._recorded: dict[str, events.SessionCanvasRecorded] = {}
        self._open: dict[str, _Open] = {}
        clients.on_change.append(self._handle_change)

    def detach(self) -> None:
        """Stop following the clients."""
        self._clients.on_change.remove(self._handle_change)

    # --- canvases -------------------------------------------------------------------------------------------------

    def provided(self, canvas_id: str | None = None, provider: str | None = None) -> list[Provided]:
        """Return the canvases of the attached clients, optionally those with an id or of a provider.

        Of two clients with the same provider, the one that attached last counts.
        """
        found: dict[tuple[str, str], Provided] = {}
        for attachment in self._clients.attachments():
            for canvas in attachment.canvases.values():
                if canvas_id in (None, canvas.id) and provider in (None, attachment.canvas_provider):
                    found.setdefault((attachment.canvas_provider, canvas.id), (attachment, canvas))
        return list(found.values())

    def find(self, canvas_id: str, provider: str | None = None) -> Provided:
        """Return the canvas with an id.

        Raises:
            InvalidRequestError: there is none, or several providers have one.
        """
        found = self.provided(canvas_id, provider)
        if not found:
            of = "" if provider is None else f" by {provider!r}"
            raise InvalidRequestError(f'No canvas "{canvas_id}" is registered{of}')
        if len(found) > 1:
            providers = ", ".join(repr(attachment.canvas_provider) for attachment, _ in found)
            raise InvalidRequestError(
                f"canvas {canvas_id!r} has several providers: extensionId is required, one of {providers}"
            )
        return found[0]

    def infos(self) -> list[events.CanvasInfo]:
        """Return all canvases, as events show them."""
        return [_info(attachment, canvas) for attachment, canvas in self.provided()]

    def announce(self) -> None:
        """Publish the canvases, for example to a client that has just resumed the session."""
        if self._known:
            self._emit(events.SessionCanvasRegistryChanged(canvases=self._known))

    # --- instances ------------------------------------------------------------------------------------------------

    def open_instances(self) -> list[events.SessionCanvasOpened]:
        """Return the instances that a client shows, in the order of their opening."""
        return [instance.data for instance in self._open.values()]

    async def open(
        self, canvas_id: str, instance_id: str, canvas_input: Any = None, provider: str | None = None
    ) -> events.SessionCanvasOpened:
        """Open an instance, or open it again with another input.

        Raises:
            InvalidRequestError: the canvas is unknown, the input does not match its schema, or the instance is one
                of another canvas.
            ClientCallError: the client has refused, or has disconnected.
        """
        attachment, canvas = self.find(canvas_id, provider)
        earlier = self._open.get(instance_id)
        place = (attachment.canvas_provider, canvas_id)
        if earlier is not None and (earlier.data.extension_id, earlier.data.canvas_id) != place:
            raise InvalidRequestError(
                f"canvas instance {instance_id!r} is already open on canvas {earlier.data.canvas_id!r} of"
                f" {earlier.data.extension_id!r}"
            )
        canvas_input = {} if canvas_input is None else canvas_input
        _check(canvas_input, canvas.input_schema, f"canvas {canvas_id!r}")
        return await self._show(attachment, canvas_id, instance_id, canvas_input)

    async def invoke(self, instance_id: str, action_name: str, action_input: Any = None) -> Any:
        """Invoke an action on an open instance and return the client's result, which is any JSON.

        Raises:
            InvalidRequestError: the instance is not open, the action is unknown, or the input does not match its
                schema.
            ClientCallError: the client has failed, or has disconnected.
        """
        instance = self._open.get(instance_id)
        attachment = None if instance is None else self._clients.get(instance.client)
        if instance is None or attachment is None:
            raise self._not_open(instance_id)
        canvas_id = instance.data.canvas_id
        actions = {action.name: action for action in attachment.canvases[canvas_id].actions or ()}
        action = actions.get(action_name)
        if action is None:
            raise InvalidRequestError(
                f'Unknown action "{action_name}" on canvas "{canvas_id}". Known actions: [{", ".join(actions)}]'
            )
        action_input = {} if action_input is None else action_input
        _check(action_input, action.input_schema, f"action {action_name!r} of canvas {canvas_id!r}")
        return await instance.client.invoke_canvas_action(
            CanvasActionParams(
                session_id=self._session_id,
                extension_id=instance.data.extension_id,
                canvas_id=canvas_id,
                instance_id=instance_id,
                action_name=action_name,
                input=action_input,
                session=self._context(),
            )
        )

    async def close(self, instance_id: str) -> None:
        """Close an instance; an instance whose provider has left is only forgotten.

        Raises:
            InvalidRequestError: the instance is not open.
            ClientCallError: the client has failed; the instance stays open.
        """
        recorded = self._recorded.get(instance_id)
        if recorded is None:
            raise self._not_open(instance_id)
        names = {
            "instance_id": instance_id,
            "extension_id": recorded.extension_id,
            "canvas_id": recorded.canvas_id,
        }
        if (instance := self._open.get(instance_id)) is not None:
            await instance.client.close_canvas(
                CanvasCloseParams(session_id=self._session_id, **names, session=self._context())
            )
        if instance_id not in self._recorded:
            # Closed by another request in the meantime.
            return
        self._open.pop(instance_id, None)
        self._emit(events.SessionCanvasClosed(**names))
        self._emit(events.SessionCanvasRemoved(**names))

    # --- logs and clients -----------------------------------------------------------------------------------------

    def _record(self, payload: events.SessionCanvasRecorded) -> None:
        self._recorded[payload.instance_id] = payload

    def _forget(self, payload: events.SessionCanvasRemoved) -> None:
        self._recorded.pop(payload.instance_id, None)

    appliers: ClassVar[Appliers] = {events.SessionCanvasRecorded: _record, events.SessionCanvasRemoved: _forget}

    async def restore(self, client: Client) -> None:
        """Open the recorded instances of a client's canvases again, where they are not open. Never fails."""
        attachment = self._clients.get(client)
        if attachment is None:
            return
        for recorded in list(self._recorded.values()):
            if (
                recorded.instance_id not in self._open
                and recorded.extension_id == attachment.canvas_provider
                and recorded.canvas_id in attachment.canvases
            ):
                try:
                    await self._show(attachment, recorded.canvas_id, recorded.instance_id, recorded.input)
                except ClientCallError as error:
                    log.info("canvas instance %r was not opened again: %s", recorded.instance_id, error)

    def _handle_change(self) -> None:
        """Publish the canvases and the instances that have come or gone with a client."""
        for instance_id, instance in list(self._open.items()):
            attachment = self._clients.get(instance.client)
            if attachment is None or instance.data.canvas_id not in attachment.canvases:
                del self._open[instance_id]
                self._emit(
                    events.SessionCanvasUnavailable(
                        instance_id=instance_id,
                        extension_id=instance.data.extension_id,
                        canvas_id=instance.data.canvas_id,
                    )
                )
        before, self._known = self._known, self.infos()
        # A single client knows its own canvases.
        if self._known != before and len(self._clients) and (before or len(self._clients) > 1):
            self._emit(events.SessionCanvasRegistryChanged(canvases=self._known))

    async def _show(
        self, attachment: Attachment, canvas_id: str, instance_id: str, canvas_input: Any
    ) -> events.SessionCanvasOpened:
        client = attachment.client
        names = {
            "instance_id": instance_id,
            "extension_id": attachment.canvas_provider,
            "canvas_id": canvas_id,
        }
        shown = await client.open_canvas(
            CanvasOpenParams(session_id=self._session_id, **names, input=canvas_input, session=self._context())
        )
        current = self._clients.get(client)
        if current is None or canvas_id not in current.canvases:
            raise ClientCallError(f"the client of canvas {canvas_id!r} has left the session")
        opened = events.SessionCanvasOpened(
            **names,
            extension_name=attachment.canvas_provider_name,
            title=shown.title,
            status=shown.status,
            url=shown.url,
            input=canvas_input,
        )
        self._open[instance_id] = _Open(client, opened)
        self._emit(opened)
        recorded = events.SessionCanvasRecorded(**names, title=shown.title, input=canvas_input)
        if self._recorded.get(instance_id) != recorded:
            self._emit(recorded)
        return opened

    def _context(self) -> CanvasSessionContext:
        return CanvasSessionContext(working_directory=str(self._settings.cwd))

    def _not_open(self, instance_id: str) -> InvalidRequestError:
        if (recorded := self._recorded.get(instance_id)) is not None:
            return InvalidRequestError(
                f"canvas instance {instance_id!r} is not available: {recorded.extension_id!r}, the provider of its"
                " canvas, is not connected"
            )
        listed = ", ".join(f'"{name}"' for name in self._open)
        return InvalidRequestError(
            f'Canvas instance "{instance_id}" is not open. Currently open instances: [{listed}]'
        )


def _info(attachment: Attachment, canvas: CanvasDeclaration) -> events.CanvasInfo:
    return events.CanvasInfo(
        extension_id=attachment.canvas_provider,
        extension_name=attachment.canvas_provider_name,
        canvas_id=canvas.id,
        display_name=canvas.display_name,
        description=canvas.description,
        input_schema=canvas.input_schema,
        actions=None if canvas.actions is None else list(_action_infos(canvas)),
    )


def _action_infos(canvas: CanvasDeclaration) -> Iterator[events.CanvasActionInfo]:
    for action in canvas.actions or ():
        yield events.CanvasActionInfo(
            name=action.name, description=action.description, input_schema=action.input_schema
        )


def _check(value: Any, schema: dict[str, Any] | None, of: str) -> None:
    """Validate the input of a canvas or an action.

    Raises:
        InvalidRequestError: the input does not match the schema, or the schema is unusable.
    """
    if schema is None:
        return
    try:
        problems = problems_of(value, schema)
    except UnusableSchemaError as error:
        raise InvalidRequestError(f"the input schema of {of} is unusable: {error}") from None
    if problems:
        listed = "; ".join(f"{problem.pointer or '/'}: {problem.text}" for problem in problems)
        raise InvalidRequestError(f"Invalid input for {of}: {listed}")
