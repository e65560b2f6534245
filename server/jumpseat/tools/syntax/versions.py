"""The last checked versions of files: of the next ones, only what has changed is parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from jumpseat.tools.syntax.parsing import SyntaxProblem, point

if TYPE_CHECKING:
    from tree_sitter import Tree

MOST_BYTES: Final = 512 * 1024
"""Limit of the text of versions; their trees take 10 to 20 times as much, shared within a file."""


class Version(Struct, frozen=True):
    """A text and its errors; ``None`` if it takes too long to parse, or is in another language.

    It is ``partial`` if the tree comes from that of another version: errors in it may be none.
    """

    data: bytes
    found: list[SyntaxProblem] | None
    tree: Tree | None = None
    partial: bool = False


class Versions:
    """The last two versions of each file, for as many files as ``most_bytes`` of text. Threads may share it."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._versions: dict[tuple[str, str], tuple[Version, ...]] = {}

    def find(self, name: str, package: str, data: bytes) -> Version | None:
        """Return the version of the file ``name`` for a grammar, if one has this text."""
        versions = self._versions.get((name, package), ())
        return next((version for version in versions if version.data == data), None)

    def note(self, name: str, package: str, version: Version) -> None:
        versions = {**self._versions}
        others = [other for other in versions.pop((name, package), ()) if other.data != version.data]
        newest = (version, *others[:1])
        room = self._most_bytes - _bytes(newest)
        for key in reversed(list(versions)):
            room -= _bytes(versions[key])
            if room < 0:
                del versions[key]
        self._versions = {**versions, (name, package): newest}

    def hand_over(self, name: str, data: bytes, others: Versions) -> None:
        """Move the versions of the file ``name`` to ``others``: those with this text, unless they have it."""
        for key in [key for key in self._versions if key[0] == name]:
            version = self.find(*key, data)
            if version is not None and others.find(*key, data) is None:
                others.note(*key, version)
        self._versions = {key: versions for key, versions in self._versions.items() if key[0] != name}


def _bytes(versions: tuple[Version, ...]) -> int:
    return sum(len(version.data) for version in versions)


def edited(version: Version, data: bytes, start: int, common_end: int) -> Tree | None:
    """Return the tree of a version, edited so that it can be the base of a parse of ``data``.

    ``start`` and ``common_end`` are the bytes that both texts have in common at their beginning and at their end.
    """
    if version.tree is None:
        return None
    tree = version.tree.copy()
    old_end, new_end = len(version.data) - common_end, len(data) - common_end
    tree.edit(
        start_byte=start,
        old_end_byte=old_end,
        new_end_byte=new_end,
        start_point=point(data, start),
        old_end_point=point(version.data, old_end),
        new_end_point=point(data, new_end),
    )
    return tree
