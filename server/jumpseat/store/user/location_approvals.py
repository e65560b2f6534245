"""Stored approvals, for a location ("approve for this location") and for everywhere.

They are read at each use, so that changes by other sessions and processes take effect at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from jumpseat.agent.permissions.approvals import ApprovalRecord, StoredApprovals, parse_approval
from jumpseat.agent.permissions.rules import Rule
from jumpseat.store.user.private_file import PrivateFile

if TYPE_CHECKING:
    from jumpseat.store.user.documents import Document

FILE: Final = "approvals.json"


class LocationApprovals:
    """The approvals in a document: ``{everywhere: [...], locations: {folder: {approvals: [...], rules: [...]}}}``.

    ``key_of`` returns the key of a location in the document.
    """

    def __init__(self, document: Document, key_of: Callable[[str], str] = str) -> None:
        self._document = document
        self._key_of = key_of

    def read(self, location: str | None) -> StoredApprovals:
        """Return the approvals and rules for a location, or with ``None`` the approvals for everywhere."""
        values = self._document.read()
        if location is None:
            return StoredApprovals(
                [one for record in _list(values, "everywhere") if (one := parse_approval(record))]
            )
        place = _place(values, self._key_of(location))
        return StoredApprovals(
            [one for record in _list(place, "approvals") if (one := parse_approval(record))],
            [one for record in _list(place, "rules") if (one := _rule(record))],
        )

    def add(self, location: str | None, record: ApprovalRecord) -> None:
        """Add an approval for a location, or with ``None`` for everywhere.

        Raises:
            StoreError: the approvals cannot be stored.
        """

        def change(values: dict[str, Any]) -> None:
            holder, name = (
                (values, "everywhere") if location is None else (_make(values, self._key_of(location)), "approvals")
            )
            known = _list(holder, name)
            holder[name] = known if record.to_json() in known else [*known, record.to_json()]

        self._document.change(change)

    def remove(self, location: str | None, record: ApprovalRecord | Rule) -> None:
        """Remove one approval or rule of a location, or with ``None`` of everywhere.

        Raises:
            StoreError: the approvals cannot be stored.
        """

        def change(values: dict[str, Any]) -> None:
            if location is None:
                holder, name = values, "everywhere"
            else:
                holder, name = (
                    _make(values, self._key_of(location)),
                    "rules" if isinstance(record, Rule) else "approvals",
                )
            holder[name] = [known for known in _list(holder, name) if _parse(known, record) != record]

        self._document.change(change)

    def change_rules(self, location: str, add: list[Rule], remove: list[Rule], *, remove_all: bool) -> None:
        """Add and remove rules of a location, with the approvals that mean the same; or remove all of both.

        Raises:
            StoreError: the approvals cannot be stored.
        """

        def change(values: dict[str, Any]) -> None:
            place = _make(values, self._key_of(location))
            known = [*_list(place, "rules"), *map(_record, add)]
            gone = [_record(rule) for rule in remove]
            place["rules"] = [] if remove_all else [rule for rule in _unique(known) if rule not in gone]
            if remove_all:
                place["approvals"] = []
            else:
                place["approvals"] = [
                    record for record in _list(place, "approvals") if not _means_one_of(record, remove)
                ]

        self._document.change(change)


def approvals_in(home: Path) -> LocationApprovals:
    """Return the approvals in a home folder."""
    return LocationApprovals(PrivateFile(home / FILE))


def with_location_keys(values: Mapping[str, Any], key_of: Callable[[str], str | None]) -> dict[str, Any]:
    """Return the approvals with other keys of their locations; those of locations without a key are left out."""
    if not values:
        return {}
    locations: Any = values.get("locations")
    places = cast("dict[str, Any]", locations) if isinstance(locations, dict) else {}
    renamed = {key: place for name, place in places.items() if (key := key_of(name)) is not None}
    return {**values, "locations": renamed}


def _parse(record: Any, like: ApprovalRecord | Rule) -> ApprovalRecord | Rule | None:
    return _rule(record) if isinstance(like, Rule) else parse_approval(record)


def _means_one_of(record: Any, rules: list[Rule]) -> bool:
    one = parse_approval(record)
    return one is not None and any(rule in rules for rule in one.rules())


def _list(values: dict[str, Any], name: str) -> list[Any]:
    found = values.get(name)
    return cast("list[Any]", found) if isinstance(found, list) else []


def _place(values: dict[str, Any], location: str) -> dict[str, Any]:
    locations = values.get("locations")
    place: Any = cast("dict[str, Any]", locations).get(location) if isinstance(locations, dict) else None
    return cast("dict[str, Any]", place) if isinstance(place, dict) else {}


def _make(values: dict[str, Any], location: str) -> dict[str, Any]:
    place = _place(values, location)
    locations = values.get("locations")
    values["locations"] = {
        **(cast("dict[str, Any]", locations) if isinstance(locations, dict) else {}),
        location: place,
    }
    return place


def _unique(records: list[Any]) -> list[Any]:
    return [record for place, record in enumerate(records) if record not in records[:place]]


def _record(rule: Rule) -> dict[str, Any]:
    return {"kind": rule.kind, "argument": rule.argument}


def _rule(record: Any) -> Rule | None:
    if not isinstance(record, dict):
        return None
    values = cast("dict[str, Any]", record)
    kind, argument = values.get("kind"), values.get("argument")
    if not isinstance(kind, str) or not (argument is None or isinstance(argument, str)):
        return None
    return Rule(kind, argument)
