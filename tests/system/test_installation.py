"""How a copy was installed, and what its hints tell a person to do."""

from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any, Final

import pytest

from jumpseat.system.installation import read_installation, this_installation

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = (ROOT / "server" / "jumpseat", ROOT / "clients" / "python")
OWNER: Final = ROOT / "server" / "jumpseat" / "system" / "installation.py"

FOLDER: Final[Mapping[str, Any]] = {"url": "file:///src/my%20copy", "dir_info": {}}
EDITABLE: Final[Mapping[str, Any]] = {"url": "file:///src/my%20copy", "dir_info": {"editable": True}}
VERSION: Final[Mapping[str, Any]] = {"url": "https://host/j.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}}


@dataclass(frozen=True)
class Case:
    """What an installer leaves behind, and the end of the hint for the extra ``web``."""

    hint: str
    installer: str = "pip"
    record: Mapping[str, Any] | None = None
    files: Mapping[str, str] = field(default_factory=dict[str, str])


CASES: Final[Mapping[str, Case]] = {
    "checkout": Case("/env/python -m pip install -e '/src/my copy[web]'", record=EDITABLE),
    "pip": Case("/env/python -m pip install '/src/my copy[web]'", record=FOLDER),
    "wheel": Case("/env/python -m pip install '/d/j.whl[web]'", record={"url": "file:///d/j.whl"}),
    "version": Case("/env/python -m pip install 'jumpseat[web] @ git+https://host/j.git@c0ffee'", record=VERSION),
    "uv": Case("uv pip install --python /env/python '/src/my copy[web]'", "uv", FOLDER),
    "uv tool": Case(
        "uv tool install --force '/src/my copy[otel,web]'",
        "uv",
        FOLDER,
        {"uv-receipt.toml": '[tool]\nrequirements = [{name = "jumpseat", extras = ["otel"], directory = "/src"}]'},
    ),
    "pipx": Case(
        "pipx install --force '/src/my copy[otel,web]'",
        "pip",
        FOLDER,
        {"pipx_metadata.json": json.dumps({"main_package": {"package_or_url": "/src/my copy[otel]"}})},
    ),
    "name": Case("repeat the installation of this copy with the extra 'web', as docs/install.md describes it"),
    "broken": Case(
        "uv tool install --force '/src/my copy[web]'",
        "uv",
        FOLDER,
        {"uv-receipt.toml": "tool = [1]\n", "pipx_metadata.json": "{"},
    ),
    "standalone": Case("this copy is incomplete: unpack the archive of jumpseat again", "standalone"),
    "npm": Case("this copy is incomplete: install the packages of jumpseat for npm again", "npm"),
    "vsix": Case("this copy is incomplete: install the extension for VS Code again", "vsix"),
    "deb": Case("this copy is incomplete: install the Debian package of jumpseat again", "deb"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_hint_names_the_command_of_the_actual_installation(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    about = tmp_path / "jumpseat-1.0.0.dist-info"
    about.mkdir()
    (about / "INSTALLER").write_text(f"{case.installer}\n")
    if case.record is not None:
        (about / "direct_url.json").write_text(json.dumps(case.record))
    for file, text in case.files.items():
        (tmp_path / file).write_text(text)
    found = read_installation(PathDistribution(about), tmp_path, "/env/python")

    assert found.adding("web").removeprefix("install this copy with the extra 'web': ") == case.hint


def test_the_page_of_this_checkout_is_built_by_make() -> None:
    found = this_installation()

    assert (found.form, found.source) == ("checkout", str(ROOT))
    assert found.adding_page().endswith(f"make -C {ROOT} web")


def _texts(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.thorough
def test_no_other_module_tells_how_to_install_something_of_ours() -> None:
    # Sandboxes, permissions and the lab know the commands of others, which they do not recommend.
    told = re.compile(
        r"pip3? install|uv tool install|pipx install|npm (?:install|i) |\bmake (?:web|demo)\b"
        r"|\[(?:web|otel|cluster|keyring)\]"
    )
    found = [
        f"{path.relative_to(ROOT)}: {text}"
        for folder in SOURCES
        for path in folder.rglob("*.py")
        if path != OWNER
        for text in _texts(path)
        if told.search(text)
    ]
    assert found == []


def test_every_extra_that_a_user_can_miss_has_a_hint() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for_users = extras.keys() - {
        "check",
        "coverage",
        "docs",
        "fuzz",
        "profile",
        "release",
        "standalone",
        "test",
    }
    texts = [path.read_text(encoding="utf-8") for folder in SOURCES for path in folder.rglob("*.py")]
    hinted = {name for text in texts for name in re.findall(r"""how_to_add\(['"](\w+)['"]\)""", text)}

    # Without a keyring, logins are kept in a file.
    assert hinted == for_users - {"keyring"}
