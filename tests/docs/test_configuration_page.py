"""The page about config.toml: it has every setting, and its example is valid."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from jumpseat.cli.config_reference import page
from jumpseat.config import load_config

PAGE: Final = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run python -m jumpseat.cli.config_reference > docs/configuration.md"
    )


def test_the_example_is_a_valid_configuration(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", page(), re.DOTALL)
    assert example is not None
    (tmp_path / "config.toml").write_text(example[1], encoding="utf-8")
    config = load_config(tmp_path)
    assert config.default_model in config.models
    assert [model.id for model in config.adapters["work"].model_list()] == ["gpt-5", "gpt-5-mini"]
