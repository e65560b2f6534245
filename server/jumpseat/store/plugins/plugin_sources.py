"""Copies of plugins and marketplaces, from folders and git repositories.

A copy is made of files that nobody has checked: it has limited size, no links, and nothing from outside the source.
Nothing of a source is executed.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio.to_thread
from msgspec import Struct

from jumpseat.errors import InvalidRequestError
from jumpseat.system.file_trees import delete_folder, walk
from jumpseat.system.git import GitError, run_git
from jumpseat.system.private_files import owner_only
from jumpseat.system.regular_files import read_whole

MOST_FILES: Final = 5000
LARGEST_BYTES: Final = 50 * 1024 * 1024
"""Limit on the size of all files of one copy together."""
CLONE_S: Final = 120.0

_GITHUB: Final = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+)(?::(?P<path>[^:]+))?")
_URL: Final = re.compile(r"(?:https|ssh|file)://\S+|[\w.-]+@[\w.-]+:\S+")
_REF: Final = re.compile(r"[\w./-]{1,200}")


class Source(Struct, frozen=True):
    """The origin of a plugin or marketplace: a folder, or a git repository at ``url``.

    ``ref`` is a branch or tag of the repository, and ``path`` a folder in it.
    """

    folder: Path | None = None
    url: str = ""
    ref: str = ""
    path: str = ""

    @property
    def label(self) -> str:
        """The source as people read it, without a password in the address."""
        if self.folder is not None:
            return f"Local: {self.folder}"
        address = re.sub(r"(?<=://)[^/@]*@", "", self.url)
        return f"Git: {address}{f'#{self.ref}' if self.ref else ''}{f':{self.path}' if self.path else ''}"

    def to_json(self) -> dict[str, str]:
        """Return the source in the form in which it is stored."""
        if self.folder is not None:
            return {"folder": str(self.folder)}
        return {name: value for name in ("url", "ref", "path") if (value := getattr(self, name))}


def stored_source(value: object) -> Source | None:
    """Return the source that :meth:`Source.to_json` has written; ``None`` if the value is not one."""
    if not isinstance(value, dict):
        return None
    parts = {str(name): part for name, part in value.items() if isinstance(part, str)}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if "folder" in parts:
        return Source(Path(parts["folder"]))
    return Source(None, parts["url"], parts.get("ref", ""), parts.get("path", "")) if "url" in parts else None


def parse_source(text: str, cwd: Path, kind: str) -> Source:
    """Return the source that a user named; ``kind`` is the kind of thing for errors.

    A folder is absolute, relative to ``cwd`` or begins with ``~``. A repository is ``owner/repo`` on GitHub,
    possibly with ``:folder``, or a URL, possibly with ``#branch``.

    Raises:
        InvalidRequestError: there is no such folder, or the text is no source.
    """
    text = text.strip()
    if not text or not text.isprintable() or len(text) > 4096:
        raise InvalidRequestError(
            f"invalid source {text[:100]!r}: expected a folder or the address of a repository"
        )
    if _URL.fullmatch(text):
        url, _, ref = text.partition("#")
        if ref and (not _REF.fullmatch(ref) or ref.startswith("-")):
            raise InvalidRequestError(f"invalid branch or tag {ref[:100]!r} in the source of a {kind}")
        return Source(None, url, ref)
    if "://" in text:
        raise InvalidRequestError(f"invalid source {text[:200]!r}: expected an address with https, ssh or file")
    folder = Path(os.path.abspath(cwd / os.path.expanduser(text)))
    if os.path.isdir(folder):
        return Source(folder)
    github = _GITHUB.fullmatch(text)
    if github is not None and not text.startswith((".", "-")):
        return Source(None, f"https://github.com/{github['repo']}.git", "", github["path"] or "")
    raise InvalidRequestError(f"Local {kind} path does not exist: {folder}")


@asynccontextmanager
async def opened(source: Source, environ: Mapping[str, str]) -> AsyncGenerator[Path]:
    """Yield the folder of a source; a repository is cloned into a temporary folder.

    Raises:
        InvalidRequestError: the source does not exist (any more), or cannot be cloned.
    """
    if source.folder is not None:
        if not await anyio.to_thread.run_sync(os.path.isdir, source.folder):
            raise InvalidRequestError(f"{source.folder} is not a folder any more")
        yield source.folder
        return
    # Imported with the first clone.
    from jumpseat.system.programs import OwnPrograms

    draft = Path(await anyio.to_thread.run_sync(tempfile.mkdtemp, None, "jumpseat-plugin-"))
    try:
        words = [
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "protocol.ext.allow=never",
            "clone",
            "--quiet",
            "--depth=1",
        ]
        words += ["--no-recurse-submodules", "--template=", *(["--branch", source.ref] if source.ref else [])]
        try:
            await run_git(
                draft,
                *(*words, "--", source.url, "clone"),
                environ=environ,
                timeout_s=CLONE_S,
                programs=OwnPrograms(),
                may_fetch=True,
            )
        except GitError as error:
            raise InvalidRequestError(f"cannot clone {source.label.removeprefix('Git: ')}: {error}") from None
        yield inside(draft / "clone", source.path)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(delete_folder, draft)


def inside(root: Path, path: str) -> Path:
    """Return the folder ``path`` below ``root``.

    Raises:
        InvalidRequestError: there is no such folder, or links lead out of ``root``.
    """
    whole = os.path.realpath(root)
    try:
        found = Path(os.path.realpath(os.path.join(whole, path)))
        if not os.path.isabs(path) and found.is_relative_to(whole) and found.is_dir():
            return found
    except (OSError, ValueError):
        pass
    raise InvalidRequestError(f"{path!r} is not a folder in {root.name!r}")


def copy_folder(source: Path, target: Path) -> None:
    """Copy the files of ``source`` into the new folder ``target``, only for the user; ``.git`` is left out.

    A link to a file in ``source`` becomes a copy of the file.

    Raises:
        InvalidRequestError: a link leads elsewhere, an entry is neither a file nor a folder, or there is too much.
        OSError: a file cannot be read or written.
    """
    rest, count = LARGEST_BYTES, 0
    try:
        target.mkdir(mode=0o700, parents=True)
        for folder, folders, others in walk(source):
            relative = Path(folder).relative_to(source)
            if ".git" in relative.parts:
                continue
            for name in folders:
                if name != ".git":
                    (target / relative / name).mkdir(mode=0o700)
            for name in others:
                if name == ".git":
                    continue
                count += 1
                path = Path(folder, name)
                try:
                    content = read_whole(path, rest, source)
                except ValueError as error:
                    shown = os.fspath(relative / name)
                    problem = (
                        f"a copy has at most {LARGEST_BYTES >> 20} MB" if "bytes" in str(error) else str(error)
                    )
                    raise InvalidRequestError(f"cannot copy {shown!r}: {problem}") from None
                except IsADirectoryError:
                    raise InvalidRequestError(
                        f"cannot copy {os.fspath(relative / name)!r}: links to a folder"
                    ) from None
                rest -= len(content)
                if count > MOST_FILES:
                    raise InvalidRequestError(f"cannot copy {source.name!r}: more than {MOST_FILES} files")
                with open(target / relative / name, "xb", opener=owner_only) as file:
                    file.write(content)
                if path.stat().st_mode & 0o100:
                    (target / relative / name).chmod(0o700)
    except BaseException:
        delete_folder(target)
        raise
