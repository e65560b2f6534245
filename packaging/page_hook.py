"""Build the page for browsers into the archives (a build hook of hatchling).

``clients/web`` is built with Node.js into ``server/jumpseat/network/static``, which archives contain. An archive of
sources contains the page too, so that nothing is built from it unless the sources of the page were changed. Without
Node.js the archives lack the page, which says so when it is opened. Editable installations build nothing.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STATIC: Final = "server/jumpseat/network/static"
CLIENT: Final = "clients/web"
SCHEMA: Final = "protocol/schema/jumpseat.schema.json"


class PageHook(BuildHookInterface[Any]):
    """Builds the page before an archive is written."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page if the archive contains it and the built one is of other sources."""
        root = Path(self.root)
        if version == "editable" or not (root / CLIENT / "package.json").is_file():
            return
        built = root / STATIC / "SOURCES"
        if not built.is_file() or built.read_text().strip() != sources_hash(root):
            self._build(root / CLIENT)
        build_data["artifacts"].append(f"{STATIC}/*")

    def _build(self, client: Path) -> None:
        npm = shutil.which("npm")
        if npm is None:
            self.app.display_warning("the archive lacks the page for browsers, because npm is not installed")
            return
        subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=client, check=True)
        subprocess.run([npm, "run", "--silent", "build"], cwd=client, check=True)


def sources_hash(root: Path) -> str:
    """Return the hash of all that the page is built from, as ``clients/web/tools/build.mjs`` computes it."""
    client = root / CLIENT
    found = hashlib.sha256()
    for path in sorted(_sources(client)):
        found.update(path.encode() + b"\0" + (client / path).read_bytes() + b"\0")
    found.update((root / SCHEMA).read_bytes())
    return found.hexdigest()


def _sources(client: Path) -> Iterator[str]:
    yield from ("index.html", "icon.svg", "package.json", "package-lock.json")
    for folder in ("src", "tools"):
        for path in (client / folder).rglob("*"):
            relative = path.relative_to(client)
            if path.is_file() and "generated" not in relative.parts:
                yield relative.as_posix()
