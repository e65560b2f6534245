"""What cargo gets in the sandbox of a language server."""

from __future__ import annotations

from pathlib import Path

from jumpseat.lsp.process import cargo_variables


def test_crates_of_the_user_are_read_until_a_command_has_downloaded_some(tmp_path: Path) -> None:
    own, folder = tmp_path / ".cargo", tmp_path / "caches" / "cargo"
    user, confined = {"HOME": str(tmp_path)}, {"HOME": str(tmp_path), "CARGO_HOME": str(folder)}
    offline = {"CARGO_NET_OFFLINE": "true", "CARGO_TARGET_DIR": str(folder / "target")}

    assert cargo_variables(confined, user) == {"CARGO_HOME": str(folder), **offline}

    (own / "registry").mkdir(parents=True)
    # An attempt to download leaves the folder of an index behind.
    (folder / "registry" / "index").mkdir(parents=True)
    assert cargo_variables(confined, user) == {"CARGO_HOME": str(own), **offline}
    assert cargo_variables(confined, {**user, "CARGO_HOME": str(own)}) == {"CARGO_HOME": str(own), **offline}

    crate = folder / "registry" / "cache" / "index" / "units-1.0.0.crate"
    crate.parent.mkdir(parents=True)
    crate.touch()
    assert cargo_variables(confined, user) == {"CARGO_HOME": str(folder), **offline}


def test_builds_are_temporary_with_shared_caches(tmp_path: Path) -> None:
    user = {"HOME": str(tmp_path), "CARGO_TARGET_DIR": ""}
    confined = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path / "temp")}

    assert cargo_variables(confined, user)["CARGO_TARGET_DIR"] == str(tmp_path / "temp" / "cargo" / "target")
    assert cargo_variables(confined, {**user, "CARGO_TARGET_DIR": "/builds"})["CARGO_TARGET_DIR"] == "/builds"
