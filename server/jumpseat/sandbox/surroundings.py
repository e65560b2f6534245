"""The folders that one session's commands may change, and the view and the environment of each command."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from jumpseat.sandbox.configuration_files import Snapshot
from jumpseat.sandbox.covers import cover
from jumpseat.sandbox.git_folders import GitSettings
from jumpseat.sandbox.obeyed_files import obeyed_inside
from jumpseat.sandbox.places import (
    RESOLVER,
    cache_variables,
    folders_of_secrets,
    hidden_in_home,
    hidden_paths,
    is_secret,
    link_settings,
    may_be_writable,
    needed_paths,
    program_folders,
    shared_caches,
    socket_files,
)
from jumpseat.sandbox.settings import SandboxSettings
from jumpseat.sandbox.view import RealPaths, View, real, real_outside, real_paths
from jumpseat.system.file_trees import delete_folder
from jumpseat.system.private_files import create_private_folder

_LEADING_OUT: Final = ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "GPG_AGENT_INFO")
"""Variables that name sockets of services outside of the sandbox."""


class Surroundings:
    """The surroundings of one session's commands. Its methods block on the file system.

    ``home`` is the folder of the server, ``user_home`` that of its user, ``server_environ`` the environment of the
    server. ``folders`` returns the folders of the session, for which the server created ``own_folders``. ``git``
    reads the settings of git folders.
    """

    def __init__(
        self,
        home: Path,
        user_home: Path,
        server_environ: Mapping[str, str],
        folders: Callable[[], Sequence[Path]],
        own_folders: Sequence[Path],
        git: GitSettings,
    ) -> None:
        self._home = home
        self._user_home = user_home
        self._server_environ = server_environ
        self._folders = folders
        self._own_folders = own_folders
        self._git = git
        self._resolved: dict[Path, Path] = {}
        self._git_folders: dict[Path, Path | None] = {}
        self._temp: Path | None = None
        self._caches: dict[Path, Path] = {}
        self._programs: tuple[tuple[object, ...], tuple[Path, ...]] | None = None

    @property
    def temp(self) -> Path:
        """The folder for temporary files, created at the first use.

        Raises:
            OSError: the folder cannot be created.
        """
        if self._temp is None:
            self._temp = Path(os.path.realpath(tempfile.mkdtemp(prefix="jumpseat-")))
        return self._temp

    def delete_temp(self) -> None:
        """Delete the temporary files."""
        if self._temp is not None:
            temp, self._temp = self._temp, None
            delete_folder(temp)

    def roots(self, settings: SandboxSettings) -> Iterator[Path]:
        """Yield the folders of the project that commands may change."""
        folders = [*self._folders()] if settings.working_directory else []
        home = self._user_home
        base = folders[0] if folders else home
        named = [*folders, *(base / os.path.expanduser(path) for path in settings.write)]
        for folder in dict.fromkeys(filter(None, map(self._resolve, named))):
            if os.path.isdir(folder) and folder != self._home and may_be_writable(folder, home):
                yield folder

    def elsewhere(self, settings: SandboxSettings) -> Iterator[Path]:
        """Yield the folders that commands may write to and that are not those of the project."""
        yield from self._own_folders
        yield from shared_caches(self._user_home) if settings.shared_caches else tuple(self._caches.values())
        if self._temp is not None:
            yield self._temp

    def _resolve(self, folder: Path) -> Path | None:
        """Return the real path of a folder; ``None`` if a command has put a link in its place."""
        found, known = real(folder), self._resolved.get(folder)
        if known is None and found is not None:
            opened = set(self._resolved.values())
            plain = Path(os.path.normpath(folder))
            if any(plain.is_relative_to(root) for root in opened) and not _is_below(found, opened):
                return None
            self._resolved[folder] = known = found
        return found if found == known else None

    def git_folders(self, roots: Sequence[Path]) -> Iterator[Path]:
        """Yield the git folders outside of ``roots`` that the repositories of ``roots`` use.

        Which ones, is decided before the first command in a root: a command could name others. A root that is added
        later, inside of another one, has none.
        """
        opened = tuple(self._git_folders)
        for root in roots:
            if root not in self._git_folders:
                self._git_folders[root] = None if _is_below(root, opened) else self._git_folder(root)
        for folder in dict.fromkeys(filter(None, map(self._git_folders.get, roots))):
            if not _is_below(folder, roots) and real(folder) == folder:
                yield folder

    def _git_folder(self, root: Path) -> Path | None:
        link = next((folder / ".git" for folder in (root, *root.parents) if os.path.lexists(folder / ".git")), None)
        if link is None or link.is_symlink():
            return None
        return link if link.is_dir() else self._git.linked_folder(link)

    def view(
        self,
        settings: SandboxSettings,
        program: str,
        cwd: Path,
        environ: Mapping[str, str],
        roots: tuple[Path, ...],
        git: Sequence[Path],
        before: Snapshot,
        *,
        network: bool,
    ) -> View:
        """Return the view of a command. ``before`` has the configuration files in ``roots`` and in ``git``."""
        # A path with a link could lead anywhere, and what is elsewhere cannot be written anyway.
        within, resolved = [*map(str, roots), *map(str, git)], RealPaths()
        protected = [Path(path) for path in before.files if _is_plain(path, within, resolved)]
        targets = _link_targets(before, roots, resolved)
        # A mounted folder cannot be renamed, so that the paths of its contents stay the same.
        mounted = [Path(path) for path in before.git if _is_plain(path, within, resolved)]
        mounted += [path.parent for path in protected if _holds_obeyed(path.parent)]
        mounted += [parent for path in targets for parent in path.parents if _is_inside(parent, roots)]
        caches = [*shared_caches(self._user_home)] if settings.shared_caches else [self._cache_folder(cwd)]
        named = (real_outside(cwd / os.path.expanduser(path), roots) for path in settings.show)
        shown = set(filter(None, named))
        sockets = (path for path in real_paths(socket_files(), resolved) if not _is_inside(path, roots))
        hidden = [
            *sockets,
            *hidden_paths(environ),
            *hidden_in_home(self._user_home, git=settings.git, gh=settings.gh),
            *(cwd / os.path.expanduser(path) for path in settings.hide),
            self._home,
        ]
        readable = [
            *needed_paths(self._user_home, gh=settings.gh),
            *shown,
            *self._program_folders(program, environ, roots),
            *(self._home / name for name in ("skills", "plugins", "installed-plugins", "hooks", "tools")),
        ]
        excepted = {*shown, *roots, *caches}
        return View(
            writable=(*roots, *real_paths([*mounted, *self._own_folders, *caches], resolved)),
            read_only=(
                *protected,
                *targets,
                *real_paths((cwd / os.path.expanduser(path) for path in settings.read_only), resolved),
            ),
            hidden=tuple(path for path in real_paths(hidden, resolved) if path not in excepted),
            shown=tuple(real_paths([*readable, *(RESOLVER if network else ())], resolved)),
            temp=self.temp,
            network=network,
        )

    def covered(self, settings: SandboxSettings, view: View, roots: Sequence[Path]) -> View:
        """Return the view without what appears meanwhile in folders of the home folder that may hold secrets."""
        home = self._user_home
        unseen = partial(is_secret, home=home, git=settings.git, gh=settings.gh)
        return cover(view, home, folders_of_secrets(home), roots, unseen)

    def environ(
        self, settings: SandboxSettings, cwd: Path, environ: Mapping[str, str], *, own_temp: bool
    ) -> dict[str, str]:
        """Return the environment of a command; with ``own_temp``, ``/tmp`` is private to the session's commands."""
        variables = {name: value for name, value in environ.items() if name not in _LEADING_OUT}
        variables["TMPDIR"] = "/tmp" if own_temp else str(self.temp)  # noqa: S108 - a private one
        if not settings.shared_caches:
            variables |= cache_variables(self._cache_folder(cwd), variables, self._user_home)
        if settings.proxy is not None:
            names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY")
            variables |= dict.fromkeys(names, settings.proxy)
        return variables

    def _program_folders(
        self, program: str, environ: Mapping[str, str], roots: tuple[Path, ...]
    ) -> tuple[Path, ...]:
        """Return the folders of programs, resolved once because they hardly ever change."""
        key = program, environ.get("PATH", ""), roots
        if self._programs is None or self._programs[0] != key:
            folders = program_folders(program, environ, self._user_home, roots)
            resolved = (real_outside(path, roots) for path in folders)
            self._programs = key, tuple(dict.fromkeys(filter(None, resolved)))
        return self._programs[1]

    def _cache_folder(self, cwd: Path) -> Path:
        """Create and return the folder for the caches of package managers in this project."""
        main = next(iter(self._folders()), cwd)
        if (known := self._caches.get(main)) is not None and known.is_dir():
            return known
        name = re.sub(r"[^\w.-]", "_", main.name)[:40] or "root"
        digest = hashlib.sha256(os.fsencode(os.path.realpath(main))).hexdigest()[:12]
        folder = self._home / "caches" / f"{name}-{digest}"
        create_private_folder(folder)
        link_settings(folder, self._server_environ, self._user_home)
        self._caches[main] = folder
        return folder


def _holds_obeyed(folder: Path) -> bool:
    return bool(obeyed_inside([name.casefold() for name in folder.parts[-2:]]))


def _link_targets(before: Snapshot, roots: Sequence[Path], resolved: RealPaths) -> list[Path]:
    """Return the targets in ``roots`` of links among the configuration files."""
    targets = real_paths((path for path in before.files if os.path.islink(path)), resolved)
    return [path for path in targets if _is_inside(path, roots)]


def _is_inside(path: Path, roots: Sequence[Path]) -> bool:
    """Return whether ``path`` is below one of ``roots``, and contains none of them."""
    return any(path.is_relative_to(root) for root in roots) and not any(root.is_relative_to(path) for root in roots)


def _is_below(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _is_plain(path: str, folders: Sequence[str], resolved: RealPaths) -> bool:
    """Return whether a path leads to something in ``folders``, without links."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders) and resolved.is_plain(path)
