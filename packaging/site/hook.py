"""Pages of the site that are not in docs/: the protocol reference, and the pages of the repository's other folders.

Links to files that are no pages, such as tests, become plain text.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from jumpseat_protocol.reference import pages

ROOT: Final = Path(__file__).parents[2]
ELSEWHERE: Final = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "clients/neovim/README.md",
    "clients/python/README.md",
)
"""Pages of the repository outside of docs/, which have the same path on the site."""

_LINK: Final = re.compile(r"(?<!!)\[([^\[\]]+)\]\(([^()\s]+)(\s\"[^\"]*\")?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, text in pages().items():
        files.append(File.generated(config, f"reference/{name}", content=text))
    for name in ELSEWHERE:
        files.append(File.generated(config, name, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links from the repository into links of the site."""
    del config
    source = page.file.src_uri
    # Where the page lies in the repository: those of docs/ are at the root of the site.
    folder = posixpath.dirname(source if source in ELSEWHERE else f"docs/{source}")

    def link(match: re.Match[str]) -> str:
        text, target = match[1], match[2]
        if ":" in target or target.startswith("#"):
            return match[0]
        path, hash_, anchor = target.partition("#")
        place = posixpath.normpath(posixpath.join(folder, path))
        if (on_site := place.removeprefix("docs/")) != "README.md" and files.get_file_from_path(on_site):
            return f"[{text}]({posixpath.relpath(on_site, posixpath.dirname(source) or '.')}{hash_}{anchor})"
        return (
            f"[{text}]({posixpath.relpath('index.md', posixpath.dirname(source) or '.')})"
            if place == "README.md"
            else text
        )

    return _LINK.sub(link, markdown)
