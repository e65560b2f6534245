"""Marketplaces: folders and git repositories with a list of plugins.

A folder is read where it is; of a repository there is a copy in ``marketplaces``, which a refresh replaces. The
list of the user's marketplaces is in ``marketplaces.json``. The marketplace ``personal`` always exists: the folder
``plugins`` in the home folder.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import anyio
import anyio.to_thread
import orjson
from msgspec import Struct

from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.store.plugins.plugin_sources import Source, copy_folder, inside, opened, parse_source, stored_source
from jumpseat.store.user.private_file import PrivateFile
from jumpseat.system.file_trees import delete_folder
from jumpseat.system.private_files import create_private_folder
from jumpseat.system.regular_files import read_whole, scan_folder

FILE: Final = "marketplaces.json"
FOLDER: Final = "marketplaces"
PERSONAL: Final = "personal"
MANIFESTS: Final = (
    "marketplace.json",
    ".plugin/marketplace.json",
    ".github/plugin/marketplace.json",
    ".claude-plugin/marketplace.json",
)
"""Paths of a manifest; the first that exists is used."""
LARGEST_MANIFEST: Final = 4 * 1024 * 1024
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)


class Marketplace(Struct, frozen=True):
    """A marketplace. ``folder`` has its files: those of the ``source``, or a copy of them."""

    name: str
    source: Source
    folder: Path
    is_default: bool = False


class Marketplaces:
    """The marketplaces of the user whose home folder is ``home``. ``environ`` is that of git."""

    def __init__(self, home: Path, environ: Callable[[], Mapping[str, str]]) -> None:
        self._root = home / FOLDER
        self._personal = home / "plugins"
        self._file = PrivateFile(home / FILE)
        self._environ = environ
        self._lock = anyio.Lock()

    def all(self) -> list[Marketplace]:
        """Return the marketplaces: the user's in the order of their addition, then the default one."""
        return [
            *_marketplaces(self._file.read(), self._root),
            Marketplace(PERSONAL, Source(self._personal), self._personal, is_default=True),
        ]

    def find(self, name: str, problem: str = "not found") -> Marketplace:
        """Return the marketplace with a name.

        Raises:
            InvalidRequestError: there is none; the message has the ``problem``.
        """
        for marketplace in self.all():
            if marketplace.name == name:
                return marketplace
        verb = "" if problem == "not found" else "is "
        raise InvalidRequestError(f'Marketplace "{name}" {verb}{problem}')

    async def add(self, text: str, cwd: Path) -> str:
        """Add the marketplace at a source; returns the name in its manifest.

        Raises:
            InvalidRequestError: the source does not exist or has no valid manifest, or the name is taken.
            StoreError: the home folder cannot be written.
        """
        async with self._lock:
            source = await anyio.to_thread.run_sync(parse_source, text, cwd, "marketplace")
            async with opened(source, self._environ()) as folder:
                return await anyio.to_thread.run_sync(self._add, source, folder)

    async def remove(self, marketplace: Marketplace) -> None:
        """Remove a marketplace of the user.

        Raises:
            InvalidRequestError: it is the default one.
            StoreError: the list cannot be written.
        """
        if marketplace.is_default:
            raise InvalidRequestError(
                f'Marketplace "{marketplace.name}" comes with the server and cannot be removed'
            )

        def change(values: dict[str, Any]) -> None:
            values["marketplaces"] = [
                _to_json(other, self._root)
                for other in _marketplaces(values, self._root)
                if other.name != marketplace.name
            ]

        await anyio.to_thread.run_sync(self._file.change, change)
        if marketplace.source.folder is None:
            await anyio.to_thread.run_sync(delete_folder, marketplace.folder)

    async def refresh(self, marketplace: Marketplace) -> None:
        """Read a marketplace again, and clone its repository again; on failure, the last copy stays.

        Raises:
            InvalidRequestError: the source is gone or has no valid manifest any more.
            StoreError: the home folder cannot be written.
        """
        async with self._lock, opened(marketplace.source, self._environ()) as folder:
            await anyio.to_thread.run_sync(self._refresh, marketplace, folder)

    async def browse(self, name: str) -> list[dict[str, Any]]:
        """Return the entries of the plugins of a marketplace.

        Raises:
            InvalidRequestError: there is no such marketplace, or its manifest is invalid.
        """
        return await anyio.to_thread.run_sync(lambda: _entries(self.find(name)))

    async def plugin(self, marketplace: str, name: str) -> tuple[dict[str, Any], Source]:
        """Return the entry of a plugin in a marketplace, and its source.

        Raises:
            InvalidRequestError: there is no such plugin or marketplace, or the entry has no valid source.
        """
        found = self.find(marketplace)
        entries = await anyio.to_thread.run_sync(_entries, found)
        for entry in entries:
            if entry["name"] == name:
                return entry, _source_of(found, entry)
        known = ", ".join(str(entry["name"]) for entry in entries) or "none"
        raise InvalidRequestError(
            f'Plugin "{name}" not found in marketplace "{marketplace}". Available plugins: {known}'
        )

    def _add(self, source: Source, folder: Path) -> str:
        name = _manifest(folder).get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidRequestError(
                f"invalid name {str(name)[:100]!r} of a marketplace: expected up to 100 letters, digits and . _ -"
            )
        if any(known.name == name for known in self.all()):
            raise InvalidRequestError(f'Marketplace "{name}" already registered')
        new = Marketplace(name, source, source.folder or self._copy(name, folder))

        def change(values: dict[str, Any]) -> None:
            known = _marketplaces(values, self._root)
            if any(other.name == name for other in known):
                raise InvalidRequestError(f'Marketplace "{name}" already registered')
            values["marketplaces"] = [_to_json(other, self._root) for other in [*known, new]]

        self._change_copy(new, change)
        return name

    def _refresh(self, old: Marketplace, folder: Path) -> None:
        if old.is_default:
            return
        name = _manifest(folder).get("name")
        if name != old.name:
            raise InvalidRequestError(f'{old.source.label} has the name {name!r} now, expected "{old.name}"')
        if old.source.folder is not None:
            return
        new = Marketplace(old.name, old.source, self._copy(old.name, folder))

        def change(values: dict[str, Any]) -> None:
            values["marketplaces"] = [
                _to_json(new if other.name == old.name else other, self._root)
                for other in _marketplaces(values, self._root)
            ]

        self._change_copy(new, change)
        delete_folder(old.folder)

    def _copy(self, name: str, folder: Path) -> Path:
        target = self._root / f"{name}-{uuid.uuid4().hex[:12]}"
        try:
            create_private_folder(self._root)
            copy_folder(folder, target)
        except OSError as error:
            raise StoreError(f"cannot copy the marketplace {name!r}: {error.strerror or error}") from error
        return target

    def _change_copy(self, new: Marketplace, change: Callable[[dict[str, Any]], None]) -> None:
        try:
            self._file.change(change)
        except BaseException:
            if new.source.folder is None:
                delete_folder(new.folder)
            raise


def _marketplaces(values: Mapping[str, Any], root: Path) -> list[Marketplace]:
    """Return the marketplaces in the file, without invalid entries."""
    listed = values.get("marketplaces")
    found: list[Marketplace] = []
    for value in cast("list[Any]", listed) if isinstance(listed, list) else []:
        entry = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        name, source, folder = entry.get("name"), stored_source(entry.get("source")), entry.get("folder")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or source is None:
            continue
        if source.folder is not None:
            found.append(Marketplace(name, source, source.folder))
        elif isinstance(folder, str) and _NAME.fullmatch(folder):
            found.append(Marketplace(name, source, root / folder))
    return found


def _to_json(marketplace: Marketplace, root: Path) -> dict[str, Any]:
    copy = {"folder": marketplace.folder.name} if marketplace.folder.parent == root else {}
    return {"name": marketplace.name, "source": marketplace.source.to_json(), **copy}


def _manifest(folder: Path) -> dict[str, Any]:
    for name in MANIFESTS:
        try:
            whole: Any = orjson.loads(read_whole(folder / name, LARGEST_MANIFEST, folder))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except (OSError, ValueError) as error:
            raise InvalidRequestError(f"cannot read {name} in {str(folder)!r}: {error}") from None
        if not isinstance(whole, dict):
            raise InvalidRequestError(f"{name} in {str(folder)!r} is not a JSON object")
        return cast("dict[str, Any]", whole)
    raise InvalidRequestError(f"File not found: {', '.join(MANIFESTS)} (tried in {folder})")


def _entries(marketplace: Marketplace) -> list[dict[str, Any]]:
    """Return the valid entries of a manifest; without one, the default marketplace has a plugin in each folder."""
    folder = marketplace.folder
    if marketplace.is_default and not any(os.path.lexists(folder / name) for name in MANIFESTS):
        names = sorted(
            entry.name for entry in scan_folder(folder) if entry.is_folder and _NAME.fullmatch(entry.name)
        )
        return [{"name": name, "source": f"./{name}"} for name in names]
    listed = _manifest(folder).get("plugins")
    entries = [
        cast("dict[str, Any]", entry)
        for entry in (cast("list[Any]", listed) if isinstance(listed, list) else [])
        if isinstance(entry, dict)
    ]
    return [entry for entry in entries if isinstance(name := entry.get("name"), str) and _NAME.fullmatch(name)]


def _source_of(marketplace: Marketplace, entry: Mapping[str, Any]) -> Source:
    """Return the source of a plugin: a folder of its marketplace, or a repository.

    Raises:
        InvalidRequestError: the source is invalid, or a folder outside of the marketplace.
    """
    source = entry.get("source")
    if isinstance(source, str):
        return Source(inside(marketplace.folder, source))
    record = cast("dict[str, Any]", source) if isinstance(source, dict) else {}
    texts = {name: value for name, value in record.items() if isinstance(value, str)}
    kind, ref = texts.get("source"), texts.get("ref", "")
    address = f"https://github.com/{texts.get('repo', '')}.git" if kind == "github" else texts.get("url", "")
    if kind not in ("github", "url", "git"):
        raise InvalidRequestError(
            f"the plugin {entry['name']!r} has an unknown source: expected a folder or repository"
        )
    found = parse_source(f"{address}#{ref}" if ref else address, marketplace.folder, "plugin")
    if found.folder is not None:
        raise InvalidRequestError(f"the plugin {entry['name']!r} has an invalid address of a repository")
    return Source(None, found.url, found.ref, texts.get("path", ""))
