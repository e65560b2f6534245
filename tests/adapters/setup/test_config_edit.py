"""Changes of ``config.toml`` by the program: everything else stays, comments too."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from jumpseat.adapters.setup.config_edit import add_adapter, set_default_model
from jumpseat.config import load_config
from jumpseat.errors import ConfigError
from tests.support.cases import all_cases

FILES = {
    "none": ("", 'default_model = "a/m"\n'),
    "a table": ('[adapters.a]\ntype = "openai"\n', 'default_model = "a/m"\n\n[adapters.a]\ntype = "openai"\n'),
    "a comment on the file": (
        "# mine\n\n[adapters.openai] # work\n",
        '# mine\ndefault_model = "a/m"\n\n[adapters.openai] # work\n',
    ),
    "a comment on a table": (
        "# my server\n[adapters.openai]\n",
        'default_model = "a/m"\n\n# my server\n[adapters.openai]\n',
    ),
    "the setting": (
        "default_tools = []\ndefault_model  = 'old' # why\n[retry]\nattempts = 2\n",
        'default_tools = []\ndefault_model = "a/m" # why\n[retry]\nattempts = 2\n',
    ),
    "the line ends of Windows": (
        'default_model = "old"\r\n[retry]\r\nattempts = 2\r\n',
        'default_model = "a/m"\r\n[retry]\r\nattempts = 2\r\n',
    ),
    "the same word in a table": (
        "[tools.x]\ndefault_model = 'x'\n",
        "default_model = \"a/m\"\n\n[tools.x]\ndefault_model = 'x'\n",
    ),
}


def test_the_default_model_is_set_and_everything_else_stays(tmp_path: Path) -> None:
    with all_cases() as case:
        for name, (before, after) in FILES.items():
            with case(name):
                home = tmp_path / name
                home.mkdir()
                if before:
                    (home / "config.toml").write_bytes(before.encode())
                set_default_model(home, "a/m")
                assert (home / "config.toml").read_bytes().decode() == after


def test_a_file_that_is_not_understood_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    for text, problem in (
        ('default_model = """\nlong\n"""\n', 'write there by hand: default_model = "a/m"'),
        ("default_model = \n", "not valid TOML"),
        ("[retry]\nattempt = 2\n", "did you mean 'attempts'"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match=problem):
            set_default_model(tmp_path, "a/m")
        assert file.read_text() == text
    assert list(tmp_path.iterdir()) == [file]


def test_an_adapter_is_added_once_and_gets_another_address_unless_its_user_has_changed_it(tmp_path: Path) -> None:
    table = {"type": "openai_compatible", "base_url": "http://127.0.0.1:9/v1"}
    add_adapter(tmp_path, "work", table)
    file = tmp_path / "config.toml"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    text = file.read_text()
    add_adapter(tmp_path, "work", table)
    assert file.read_text() == text
    assert load_config(tmp_path).adapters["work"].base_url == "http://127.0.0.1:9/v1"

    file.write_text(f"{text}# mine\n\n[retry]\nattempts = 2\n")
    corrected = {**table, "base_url": "http://127.0.0.1:8/v1", "api_key_env": "WORK_API_KEY"}
    add_adapter(tmp_path, "work", corrected)
    config = load_config(tmp_path)
    assert (config.adapters["work"].base_url, config.retry.attempts) == ("http://127.0.0.1:8/v1", 2)
    assert "# mine\n\n[retry]" in file.read_text()

    file.write_text(f'{text}models = ["m"]\n')
    with pytest.raises(ConfigError, match="has an adapter 'work' already"):
        add_adapter(tmp_path, "work", corrected)
    inline = 'adapters = {work = {base_url = "http://127.0.0.1:9/v1"}}\n'
    file.write_text(inline)
    with pytest.raises(ConfigError, match="write there by hand"):
        add_adapter(tmp_path, "work", corrected)
    assert file.read_text() == inline


def test_a_link_to_the_file_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real = tmp_path / "dotfiles" / "jumpseat.toml"
    real.write_text("# mine\n")
    real.chmod(0o644)
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").symlink_to(real)
    set_default_model(home, "a/m")
    assert (home / "config.toml").is_symlink()
    assert real.read_text() == '# mine\ndefault_model = "a/m"\n'
    assert stat.S_IMODE(real.stat().st_mode) == 0o644
