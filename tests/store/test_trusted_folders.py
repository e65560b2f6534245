"""Trusted folders: who is in, who is not, and that several processes keep one list."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from jumpseat.errors import InvalidRequestError, StoreError
from jumpseat.store.user.private_file import PrivateFile
from jumpseat.store.user.trusted_folders import FILE, TrustedFolders


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    return folder


def test_no_folder_is_trusted_unasked(tmp_path: Path, project: Path) -> None:
    trust = TrustedFolders(tmp_path / "home")
    assert not trust.is_trusted(project)
    assert not (tmp_path / "home").exists()


def test_an_added_folder_is_trusted_with_all_in_it_and_by_others(tmp_path: Path, project: Path) -> None:
    other = TrustedFolders(tmp_path / "home")
    assert not other.is_trusted(project)
    TrustedFolders(tmp_path / "home").add(project)
    assert other.is_trusted(project)
    assert other.is_trusted(project / "sub")
    assert not other.is_trusted(project.parent)
    assert not other.is_trusted(tmp_path / "project-next-to-it")


def test_configured_folders_are_trusted(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert TrustedFolders(tmp_path / "home", ["~/project"]).is_trusted(project / "sub")


def test_a_link_in_a_trusted_folder_does_not_make_its_target_trusted(tmp_path: Path, project: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project / "link").symlink_to(elsewhere)
    trust = TrustedFolders(tmp_path / "home", [str(project)])
    assert not trust.is_trusted(project / "link")
    assert not trust.is_trusted(project / ".." / "elsewhere")


def test_a_link_to_a_trusted_folder_is_that_folder(tmp_path: Path, project: Path) -> None:
    (tmp_path / "link").symlink_to(project)
    trust = TrustedFolders(tmp_path / "home")
    trust.add(tmp_path / "link")
    assert trust.is_trusted(project)


def test_a_trusted_folder_that_becomes_a_link_is_no_longer_trusted(tmp_path: Path, project: Path) -> None:
    trust = TrustedFolders(tmp_path / "home")
    trust.add(project)
    project.rename(tmp_path / "moved")
    project.symlink_to(tmp_path / "moved")
    assert not trust.is_trusted(project)


@pytest.mark.parametrize("folder", ["project", "", "/nowhere/at/all", "/etc/passwd", "/a\0b", "/" + "a" * 300])
def test_only_folders_can_be_trusted(tmp_path: Path, folder: str) -> None:
    trust = TrustedFolders(tmp_path / "home")
    with pytest.raises(InvalidRequestError, match="expected the absolute path of a folder"):
        trust.add(Path(folder))
    assert not trust.is_trusted(Path(folder))


@pytest.mark.parametrize(
    "content", [b"", b'{"folders": ["/', b"[]", b"\xff", b'{"folders": "/"}', b'{"folders": [1]}']
)
def test_an_invalid_file_trusts_nothing_and_is_renamed(tmp_path: Path, project: Path, content: bytes) -> None:
    (tmp_path / FILE).write_bytes(content)
    trust = TrustedFolders(tmp_path)
    assert not trust.is_trusted(project)
    trust.add(project)
    assert trust.is_trusted(project)


def test_only_the_owner_can_read_the_file(tmp_path: Path, project: Path) -> None:
    TrustedFolders(tmp_path).add(project)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_concurrent_changes_are_all_kept(tmp_path: Path) -> None:
    def add(number: int) -> None:
        for turn in range(3):
            PrivateFile(tmp_path / "x.json").change(partial(note, f"{number}.{turn}"))

    def note(key: str, values: dict[str, object]) -> None:
        values[key] = True

    with ThreadPoolExecutor(4) as threads:
        # Raises what a change raises.
        list(threads.map(add, range(4)))
    assert len(PrivateFile(tmp_path / "x.json").read()) == 12


def test_a_file_that_cannot_be_written_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot write 'x\.json'"):
        PrivateFile(tmp_path / "file" / "x.json").change(lambda values: None)
