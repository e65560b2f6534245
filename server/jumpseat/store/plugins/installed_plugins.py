"""The user's installed plugins: copies in ``installed-plugins``, and their list in ``plugins.json``.

A copy is complete before the list names it, and an update puts a new copy beside the old one: readers see the old
plugin or the new one, and a failed update changes nothing. Several processes share both.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import anyio
import anyio.to_thread
from msgspec import Struct
from msgspec.structs import asdict, replace

from jumpseat.errors import InvalidRequestError, JumpseatError, StoreError
from jumpseat.store.plugins.manifests import LIST, read_manifest, read_plugin
from jumpseat.store.plugins.marketplaces import Marketplaces
from jumpseat.store.plugins.plugin_sources import Source, copy_folder, opened, parse_source, stored_source
from jumpseat.store.project.skills import Place, find_skills
from jumpseat.store.user.private_file import PrivateFile
from jumpseat.system.file_trees import delete_folder, walk
from jumpseat.system.private_files import create_private_folder
from jumpseat.system.regular_files import is_there

FOLDER: Final = "installed-plugins"
DIRECT: Final = "_direct"
"""The folder of plugins that come from no marketplace."""
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]{0,99}", re.ASCII)


class InstalledPlugin(Struct, frozen=True):
    """An installed plugin. ``folder`` is the name of its copy, relative to ``installed-plugins``.

    ``marketplace`` is empty, and ``source`` set, if the plugin was installed from a folder or repository directly.
    ``digest`` is that of the files in the copy, ``agreed`` that of the files that the user trusted.
    """

    name: str
    marketplace: str
    folder: str
    version: str | None = None
    enabled: bool = True
    source: Source | None = None
    digest: str = ""
    agreed: str = ""

    @property
    def trusted(self) -> bool:
        """Return whether the user agreed to run what the plugin brings, in its present form."""
        return bool(self.digest) and self.agreed == self.digest

    @property
    def spec(self) -> str:
        """The name with which users refer to the plugin."""
        return f"{self.name}@{self.marketplace}" if self.marketplace else self.name

    @property
    def source_id(self) -> str | None:
        """A stable id of the source of a direct install."""
        return None if self.source is None else hashlib.sha256(repr(self.source).encode()).hexdigest()

    @property
    def key(self) -> tuple[str, str, str | None]:
        """The identity of the plugin: plugins of the same name may have different sources."""
        return self.name, self.marketplace, self.source_id


class Installation(Struct, frozen=True):
    """The result of installing or updating a plugin. ``skills`` is the number of its skills."""

    plugin: InstalledPlugin
    skills: int
    previous_version: str | None = None


class InstalledPlugins:
    """The installed plugins of the user whose home folder is ``home``. ``environ`` is that of git."""

    def __init__(self, home: Path, marketplaces: Marketplaces, environ: Callable[[], Mapping[str, str]]) -> None:
        self.root = home / FOLDER
        self._path = home / LIST
        self._file = PrivateFile(self._path)
        # Looked at by each new session.
        self._path_text = str(self._path)
        self.marketplaces = marketplaces
        self._environ = environ
        self._known: tuple[object, list[InstalledPlugin]] | None = None
        self._lock = anyio.Lock()

    def all(self) -> list[InstalledPlugin]:
        """Return the installed plugins; the file is read again only if it has changed."""
        if not is_there(self._path_text):
            return []
        try:
            found = os.stat(self._path_text)
        except OSError:
            return []
        state = (found.st_mtime_ns, found.st_size, found.st_ino)
        if self._known is None or self._known[0] != state:
            self._known = (state, _plugins(self._file.read()))
        return self._known[1]

    def folder_of(self, plugin: InstalledPlugin) -> Path:
        """Return the folder with the copy of a plugin."""
        return self.root / plugin.folder

    def find(self, name: str, source_id: str | None = None) -> InstalledPlugin:
        """Return the plugin that ``name``, possibly with ``@marketplace``, refers to.

        Raises:
            InvalidRequestError: there is no such plugin, or more than one.
        """
        found = [plugin for plugin in self.all() if name in (plugin.spec, plugin.name)]
        if source_id is not None:
            found = [plugin for plugin in found if plugin.source_id == source_id]
        if len(found) > 1:
            found = [plugin for plugin in found if plugin.spec == name] or found
        if not found:
            raise InvalidRequestError(f'Plugin "{name}" is not installed')
        if len(found) > 1:
            known = ", ".join(plugin.source_id or plugin.spec for plugin in found)
            raise InvalidRequestError(f'Plugin "{name}" is installed more than once: expected one of {known}')
        return found[0]

    async def install(self, text: str, cwd: Path) -> Installation:
        """Install a plugin, given as ``plugin@marketplace`` or as the source of a direct install.

        A plugin that is installed already is replaced and enabled.

        Raises:
            InvalidRequestError: there is no such plugin, or it cannot be copied.
            StoreError: the home folder cannot be written.
        """
        name, at, marketplace = text.rpartition("@")
        async with self._lock:
            if at and _NAME.fullmatch(name) and _NAME.fullmatch(marketplace):
                return await self._copy(InstalledPlugin(name, marketplace, ""))
            source = await anyio.to_thread.run_sync(parse_source, text, cwd, "plugin")
            return await self._copy(InstalledPlugin("", "", "", source=source))

    async def update(self, plugin: InstalledPlugin) -> Installation:
        """Copy a plugin from its source again; on failure, the installed copy stays.

        Raises:
            InvalidRequestError: the source is gone or invalid.
            StoreError: the home folder cannot be written.
        """
        async with self._lock:
            return await self._copy(plugin)

    async def uninstall(self, plugin: InstalledPlugin) -> None:
        """Remove a plugin and its copy.

        Raises:
            StoreError: the list cannot be written.
        """

        def remove(values: dict[str, Any]) -> None:
            values["plugins"] = [_to_json(known) for known in _plugins(values) if known.key != plugin.key]

        await anyio.to_thread.run_sync(self._file.change, remove)
        await anyio.to_thread.run_sync(delete_folder, self.folder_of(plugin))

    async def switch(self, names: list[str], *, on: bool) -> None:
        """Enable or disable plugins; unknown names are ignored.

        Raises:
            StoreError: the list cannot be written.
        """

        def change(values: dict[str, Any]) -> None:
            values["plugins"] = [
                _to_json(replace(plugin, enabled=on) if {plugin.spec, plugin.name} & set(names) else plugin)
                for plugin in _plugins(values)
            ]

        if self.all():
            await anyio.to_thread.run_sync(self._file.change, change)

    async def trust(self, plugin: InstalledPlugin, digest: str) -> None:
        """Note that the user agreed to run what a plugin brings, after seeing its programs.

        Raises:
            InvalidRequestError: the plugin has changed since ``digest`` was shown, or was removed.
            StoreError: the list cannot be written.
        """

        def change(values: dict[str, Any]) -> bool:
            known = _plugins(values)
            values["plugins"] = [
                _to_json(replace(other, agreed=digest) if other.key == plugin.key else other) for other in known
            ]
            return any(other.key == plugin.key and other.digest == digest for other in known)

        if digest != plugin.digest or not await anyio.to_thread.run_sync(self._file.change, change):
            raise InvalidRequestError(f'Plugin "{plugin.spec}" has changed: look at its programs again')

    async def distrust(self, plugin: InstalledPlugin) -> None:
        """Take back the user's agreement. Programs that run already are not affected.

        Raises:
            StoreError: the list cannot be written.
        """

        def change(values: dict[str, Any]) -> None:
            values["plugins"] = [
                _to_json(replace(other, agreed="") if other.key == plugin.key else other)
                for other in _plugins(values)
            ]

        await anyio.to_thread.run_sync(self._file.change, change)

    async def _copy(self, plugin: InstalledPlugin) -> Installation:
        if plugin.source is not None:
            async with opened(plugin.source, self._environ()) as folder:
                return await anyio.to_thread.run_sync(self._add, plugin, folder, dict[str, Any]())
        entry, source = await self.marketplaces.plugin(plugin.marketplace, plugin.name)
        async with opened(source, self._environ()) as folder:
            return await anyio.to_thread.run_sync(self._add, plugin, folder, entry)

    def _add(self, plugin: InstalledPlugin, source: Path, entry: Mapping[str, Any]) -> Installation:
        """Copy the plugin in ``source`` and add it to the list; ``entry`` describes it in its marketplace."""
        manifest = read_manifest(source)
        if not plugin.marketplace:
            if not manifest and not os.path.isfile(source / "SKILL.md"):
                raise InvalidRequestError(f"{str(source)!r} is not a plugin: expected a plugin.json or SKILL.md")
            assert plugin.source is not None
            own = manifest.get("name") or Path(plugin.source.path or plugin.source.url or source).stem
            if not isinstance(own, str) or not _NAME.fullmatch(own):
                raise InvalidRequestError(
                    f"invalid name {str(own)[:100]!r} of a plugin: expected up to 100 letters, digits and . _ -"
                )
            plugin = replace(plugin, name=own)
        version = manifest.get("version") or entry.get("version")
        parent = plugin.marketplace or DIRECT
        new = replace(
            plugin,
            folder=f"{parent}/{plugin.name}-{uuid.uuid4().hex[:12]}",
            version=version if isinstance(version, str) else None,
        )
        target = self.folder_of(new)
        try:
            create_private_folder(target.parent)
            copy_folder(source, target)
        except OSError as error:
            raise StoreError(f"cannot copy the plugin {plugin.name!r}: {error.strerror or error}") from error
        new = replace(new, digest=digest_of(target))
        read = read_plugin(target)
        skills = len(find_skills(Place(path, "plugin", plugin=read) for path in read.skill_folders).items)
        old: list[InstalledPlugin] = []

        def change(values: dict[str, Any]) -> InstalledPlugin:
            known = _plugins(values)
            old.extend(other for other in known if other.key == new.key)
            enabled = not plugin.folder or all(other.enabled for other in old)
            added = replace(new, enabled=enabled, agreed=old[0].agreed if old else "")
            kept = [other for other in known if other.key != new.key]
            values["plugins"] = [_to_json(other) for other in [*kept, added]]
            return added

        try:
            added = self._file.change(change)
        except BaseException:
            delete_folder(target)
            raise
        for other in old:
            delete_folder(self.folder_of(other))
        return Installation(added, skills, old[0].version if old else None)


def digest_of(folder: Path) -> str:
    """Return a digest of the names, contents and rights of all files in the copy of a plugin."""
    whole = hashlib.sha256()
    paths = sorted(Path(parent, name) for parent, _, names in walk(folder) for name in names)
    for path in paths:
        name = os.fsencode(path.relative_to(folder))
        content = hashlib.sha256(path.read_bytes()).digest()
        whole.update(len(name).to_bytes(8, "big") + name + bytes([path.stat().st_mode & 0o100 != 0]) + content)
    return whole.hexdigest()


def _plugins(values: Mapping[str, Any]) -> list[InstalledPlugin]:
    """Return the plugins in the file, without invalid entries: other programs may write to it."""
    listed = values.get("plugins")
    found: list[InstalledPlugin] = []
    for value in cast("list[Any]", listed) if isinstance(listed, list) else []:
        if not isinstance(value, dict):
            continue
        entry = cast("dict[str, Any]", value)
        texts = [entry.get(name) for name in ("name", "marketplace", "folder")]
        if not all(isinstance(text, str) for text in texts):
            continue
        name, marketplace, folder = cast("list[str]", texts)
        parent, slash, last = folder.partition("/")
        # The folder is deleted with the plugin: it has to be one of ours.
        if not (_NAME.fullmatch(name) and slash and parent == (marketplace or DIRECT) and _NAME.fullmatch(last)):
            continue
        version, source = entry.get("version"), stored_source(entry.get("source"))
        if not marketplace and source is None:
            continue
        version = version if isinstance(version, str) else None
        digest, agreed = (text if isinstance(text := entry.get(key), str) else "" for key in ("digest", "agreed"))
        enabled = entry.get("enabled") is not False
        found.append(InstalledPlugin(name, marketplace, folder, version, enabled, source, digest, agreed))
    return found


def _to_json(plugin: InstalledPlugin) -> dict[str, Any]:
    source = plugin.source.to_json() if plugin.source is not None else None
    whole = {**asdict(plugin), "source": source}
    return {name: value for name, value in whole.items() if value is not None}


async def update_each(
    installed: InstalledPlugins,
) -> list[tuple[InstalledPlugin, Installation | JumpseatError]]:
    """Update all plugins, one after the other; the result of each is its installation or its error."""
    results: list[tuple[InstalledPlugin, Installation | JumpseatError]] = []
    for plugin in list(installed.all()):
        try:
            results.append((plugin, await installed.update(plugin)))
        except JumpseatError as error:
            results.append((plugin, error))
    return results
