"""Values that must not be told: what clients have registered is taken out of events, logs and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, TypeVar, cast

from jumpseat.errors import InvalidRequestError

MASK: Final = "[redacted]"
SHORTEST: Final = 4
# Of a value of several lines, such as a key, tools show the lines one by one.
SHORTEST_LINE: Final = 16

T = TypeVar("T")


class Secrets:
    """The values of one process, for all its sessions. Calling it masks a text; it is false while there are none.

    What was written or sent before a value was added stays as it is.
    """

    def __init__(self) -> None:
        self._values: tuple[str, ...] = ()
        self._pattern: re.Pattern[str] | None = None

    def __bool__(self) -> bool:
        return bool(self._values)

    def add(self, values: Iterable[str]) -> None:
        """Hide these from now on, as they are and as they stand in JSON. Empty ones are left out.

        Raises:
            InvalidRequestError: one is so short that it occurs by chance; none is added then.
        """
        found = set(self._values)
        for value in filter(None, (value.strip() for value in values)):
            if len(value) < SHORTEST:
                raise InvalidRequestError(f"a value to hide must have {SHORTEST} characters or more")
            found.update((value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]))
            lines = (line.strip() for line in value.splitlines())
            found.update(line for line in lines if len(line) >= SHORTEST_LINE)
        # Longest first, so that no secret is left half visible because another one is its beginning.
        self._values = tuple(sorted(found, key=len, reverse=True))
        self._pattern = re.compile("|".join(map(re.escape, self._values))) if found else None

    def __call__(self, text: str) -> str:
        return self._pattern.sub(MASK, text) if self._pattern else text

    def over(self, value: T) -> T:
        """``value`` with all texts in it masked, but for the ids in our own types; itself where nothing is."""
        return cast("T", self._over(value)) if self._values else value

    def split(self, text: str) -> tuple[str, str]:
        """The masked beginning of ``text`` and the end of it that may be the beginning of a secret."""
        done = 0
        longest = max(map(len, self._values), default=0)
        while True:
            found = self._pattern.search(text, done) if self._pattern else None
            places = range(max(done, len(text) - longest + 1), len(text))
            begun = next((place for place in places if self._begins(text, place)), len(text))
            # The leftmost one counts, also where another one begins within it.
            if found is None or begun <= found.start():
                return self(text[:begun]), text[begun:]
            done = found.end()

    def _begins(self, text: str, place: int) -> bool:
        left = len(text) - place
        return any(len(value) > left and value.startswith(text[place:]) for value in self._values)

    def over_records(self, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Events in wire form, which may be from before a value was added."""
        return [{**one, "data": self.over(one.get("data"))} for one in records] if self._values else records

    def _over(self, value: Any) -> Any:
        if isinstance(value, str):
            return self(value)
        if isinstance(value, list):
            masked = [self._over(one) for one in cast("list[Any]", value)]
            return masked if masked != value else cast("list[Any]", value)
        if isinstance(value, dict):
            record = {self._over(key): self._over(one) for key, one in cast("dict[Any, Any]", value).items()}
            return record if record != value else cast("dict[Any, Any]", value)
        if is_dataclass(value) and not isinstance(value, type):
            changes = {
                one.name: masked
                for one in fields(value)
                if not one.name.endswith("_id")
                and (masked := self._over(old := getattr(value, one.name))) is not old
                and masked != old
            }
            return replace(value, **changes) if changes else value
        return value


class MaskedStream:
    """A text that comes in pieces, such that no secret leaves it because it was cut in two."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._held = ""

    def feed(self, piece: str) -> str:
        """What can be told now; what may be the beginning of a secret is held back."""
        told, self._held = self._secrets.split(self._held + piece)
        return told

    def rest(self) -> str:
        """What was held back, at the end of the text."""
        rest, self._held = self._held, ""
        return self._secrets(rest)
