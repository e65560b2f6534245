"""The installation of this copy of jumpseat: the only module that knows the commands to change it.

No name is recommended that a package index would look up: whoever owns the name there would run code here.
"""

from __future__ import annotations

import json
import shlex
import sys
import tomllib
from collections.abc import Mapping, Sequence
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast, get_args
from urllib.parse import unquote, urlsplit

from msgspec import Struct

Bundle: TypeAlias = Literal["standalone", "npm", "vsix", "deb"]
"""The forms that bring Python and all extras with them; their name is in the file ``INSTALLER``."""

Form: TypeAlias = Literal["checkout", "pip", "uv", "uv tool", "pipx", Bundle, "unknown"]

_BUNDLES: Final = get_args(Bundle)
_AGAIN: Final[Mapping[str, str]] = {
    "standalone": "unpack the archive of jumpseat again",
    "npm": "install the packages of jumpseat for npm again",
    "vsix": "install the extension for VS Code again",
    "deb": "install the Debian package of jumpseat again",
}
_NODE: Final = "Node.js 20 or newer"


class Installation(Struct, frozen=True):
    """The way in which a copy was installed.

    ``source`` is a folder, the path of an archive, or a URL as pip takes it; empty if it is unknown. ``extras`` are
    those that a new installation would otherwise lose.
    """

    form: Form
    source: str = ""
    extras: Sequence[str] = ()
    python: str = "python3"

    def adding(self, extra: str) -> str:
        """Return the instruction to install this copy with an extra, such as ``otel``."""
        if self.form in _AGAIN:
            return f"this copy is incomplete: {_AGAIN[self.form]}"
        command = self._install(extra)
        if command is None:
            return f"repeat the installation of this copy with the extra {extra!r}, as docs/install.md describes it"
        return f"install this copy with the extra {extra!r}: {shlex.join(command)}"

    def adding_page(self) -> str:
        """Return the instruction to get the page for browsers, which a copy lacks that was built without npm."""
        if self.form in _AGAIN:
            return f"this copy is incomplete: {_AGAIN[self.form]}"
        if self.form == "checkout":
            return f"with {_NODE}, run: {shlex.join(['make', '-C', self.source, 'web'])}"
        command = self._install("web", again=True)
        if command is None or not Path(self.source).is_dir():
            return f"build the wheel where {_NODE} is installed ('make dist' in a checkout), and install it"
        return f"install {_NODE}, then this copy again: {shlex.join(command)}"

    def _install(self, extra: str, *, again: bool = False) -> list[str] | None:
        """Return the command that installs this copy with an extra; ``None`` if it is unknown."""
        if not self.source or self.form == "unknown":
            return None
        extras = ",".join(sorted({*self.extras, extra}))
        given = f"jumpseat[{extras}] @ {self.source}" if "://" in self.source else f"{self.source}[{extras}]"
        match self.form:
            case "uv tool" | "pipx":
                return [*self.form.split(), "install", "--force", given]
            case "uv":
                command = ["uv", "pip", "install", "--python", self.python]
                return [*command, *(["--reinstall-package", "jumpseat"] if again else ()), given]
            case _:
                editable = ["-e"] if self.form == "checkout" else []
                repeated = ["--force-reinstall", "--no-deps"] if again else []
                return [self.python, "-m", "pip", "install", *repeated, *editable, given]


def how_to_add(extra: str) -> str:
    """Return the instruction to install the running copy with an extra, such as ``otel``."""
    return this_installation().adding(extra)


def how_to_add_page() -> str:
    """Return the instruction to get the page for browsers."""
    return this_installation().adding_page()


def own_command(module: str = "jumpseat") -> list[str]:
    """Return the command line that runs this copy, or one of its modules, wherever it runs.

    Files in the working directory cannot shadow our modules, and the environment of a standalone copy, which may be
    meant for another Python, is ignored by it and by its children.
    """
    return [sys.executable, "-I" if sys.flags.isolated else "-P", "-m", module]


def this_installation() -> Installation:
    """Return how the running copy was installed."""
    try:
        package = distribution("jumpseat")
    except PackageNotFoundError:
        return Installation("unknown")
    return read_installation(package, Path(sys.prefix), sys.executable)


def read_installation(package: Distribution, prefix: Path, python: str) -> Installation:
    """Return how a package was installed into the environment ``prefix``, whose interpreter is ``python``."""
    installer = (package.read_text("INSTALLER") or "").strip()
    if installer in _BUNDLES:
        return Installation(cast("Bundle", installer))
    source, is_editable = _source(package)
    receipt = _read(prefix / "uv-receipt.toml", tomllib.loads)
    if receipt:
        requirements = _as_list(_as_dict(receipt.get("tool")).get("requirements"))
        ours = [one for one in map(_as_dict, requirements) if one.get("name") == "jumpseat"]
        extras = [str(extra) for one in ours for extra in _as_list(one.get("extras"))]
        return Installation("uv tool", source, extras)
    about = _read(prefix / "pipx_metadata.json", json.loads)
    if about:
        given = str(_as_dict(about.get("main_package")).get("package_or_url", ""))
        names = given.partition("[")[2].partition("]")[0].split(",")
        return Installation("pipx", source, [name.strip() for name in names if name.strip()])
    if is_editable:
        return Installation("checkout" if installer != "uv" else "uv", source, python=python)
    return Installation("uv" if installer == "uv" else "pip" if source else "unknown", source, python=python)


def _source(package: Distribution) -> tuple[str, bool]:
    """Return what the installer was given (PEP 610), unless it was a name, and whether it is used in place."""
    record = _as_dict(_parse(package.read_text("direct_url.json") or "{}", json.loads))
    url, parts = str(record.get("url", "")), urlsplit(str(record.get("url", "")))
    if parts.scheme == "file":
        return unquote(parts.path), bool(_as_dict(record.get("dir_info")).get("editable"))
    version = _as_dict(record.get("vcs_info"))
    if version:
        return f"{version.get('vcs')}+{url}@{version.get('commit_id')}", False
    return url, False


def _read(path: Path, parse: Any) -> dict[str, Any]:
    try:
        return _as_dict(_parse(path.read_text(encoding="utf-8"), parse))
    except (OSError, UnicodeDecodeError):
        return {}


def _parse(text: str, parse: Any) -> Any:
    try:
        return parse(text)
    except ValueError:
        return None


def _as_dict(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _as_list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
