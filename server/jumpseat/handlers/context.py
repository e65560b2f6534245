"""What a handler is given: the connection the request came over, and the server behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jumpseat.app import App
    from jumpseat.rpc.connection import Connection


@dataclass(frozen=True, slots=True)
class Context:
    app: App
    connection: Connection
