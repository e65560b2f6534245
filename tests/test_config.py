"""The configuration file: its fields, and errors that name file and field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from jumpseat.config import (
    AdapterConfig,
    AliasConfig,
    CompactionConfig,
    Config,
    HooksConfig,
    ModelConfig,
    PermissionsConfig,
    RetryConfig,
    home_folder,
    load_config,
)
from jumpseat.errors import ConfigError

GOOD = """
default_model = "fast"

[adapters.work]
type = "openai"
base_url = "https://llm.example.com/v1"
api_key_env = "WORK_LLM_KEY"
headers = {X-Team = "blue"}
options = {api_version = "1"}
models = ["gpt-5", {id = "gpt-5-mini", name = "Mini", wire_model = "m", vision = true, context_window = 400000}]

[adapters.anthropic]

[models.fast]
adapter = "work"
model = "gpt-5-mini"

[permissions]
allow_unasked = true

[retry]
attempts = 2
first_wait_s = 0

[compaction]
background_threshold = 0.5

[hooks]
timeout_s = 5
"""


def write(home: Path, text: str | bytes) -> Path:
    path = home / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_every_field_of_a_valid_file_is_read(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    config = load_config(tmp_path)

    mini = ModelConfig(id="gpt-5-mini", name="Mini", wire_model="m", vision=True, context_window=400000)
    assert config == Config(
        default_model="fast",
        adapters={
            "work": AdapterConfig(
                type="openai",
                base_url="https://llm.example.com/v1",
                api_key_env="WORK_LLM_KEY",
                headers={"X-Team": "blue"},
                options={"api_version": "1"},
                models=["gpt-5", mini],
            ),
            "anthropic": AdapterConfig(),
        },
        models={"fast": AliasConfig(adapter="work", model="gpt-5-mini")},
        permissions=PermissionsConfig(allow_unasked=True),
        retry=RetryConfig(attempts=2, first_wait_s=0),
        compaction=CompactionConfig(background_threshold=0.5),
        hooks=HooksConfig(timeout_s=5),
    )
    assert config.adapters["work"].model_list() == [ModelConfig(id="gpt-5"), mini]


@pytest.mark.parametrize("key", ["timeout_s", "patience_s"])
def test_a_timeout_may_be_given_by_its_former_name(tmp_path: Path, key: str) -> None:
    write(tmp_path, f"[hooks]\n{key} = 5\n[permissions.judge]\n{key} = 6\n")
    config = load_config(tmp_path)

    assert config.hooks.timeout_s == 5
    assert config.permissions.judge is not None
    assert config.permissions.judge.timeout_s == 6


@pytest.mark.parametrize("text", ["", "# nothing\n", "[permissions]\n"])
def test_every_field_is_optional(tmp_path: Path, text: str) -> None:
    write(tmp_path, text)

    assert load_config(tmp_path) == Config()


def test_the_file_and_the_home_folder_are_optional(tmp_path: Path) -> None:
    assert load_config(tmp_path) == load_config(tmp_path / "missing") == Config()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("default_modle = 'x'", "default_modle: unknown, did you mean 'default_model'?"),
        ("default_model = 7", "default_model: expected a string, got an integer"),
        ("[adapters]\nwork = 'x'", "adapters.work: expected a table, got a string"),
        ("[adapters.work]\nbase_ulr = 'x'", "adapters.work.base_ulr: unknown, did you mean 'base_url'?"),
        ("[adapters.work]\napi_key = 'sk-x'", "adapters.work.api_key: unknown, keys do not belong in this file"),
        ("[adapters.work]\nheaders = {a = 1}", "adapters.work.headers.a: expected a string, got an integer"),
        ("[adapters.work]\nmodels = 'gpt'", "adapters.work.models: expected an array, got a string"),
        ("[adapters.work]\nmodels = [{name = 'x'}]", "adapters.work.models[0].id: required, but missing"),
        (
            "[adapters.work]\nmodels = [{id = 'x', visoin = true}]",
            "adapters.work.models[0].visoin: unknown, did you mean 'vision'?",
        ),
        ("[models.fast]\nmodel = 'x'", "models.fast.adapter: required, but missing"),
        ("[models.fast]\nadapter = 'work'\nmodel = 'x'", "models.fast.adapter: unknown adapter 'work'"),
        ("[permissions]\nallow_unasked = 'perhaps'", "permissions.allow_unasked: expected a boolean, got a string"),
        ("[permissions]\nallow = true", "permissions.allow: expected an array, got a boolean"),
        ("[retry]\nattempts = 0", "retry.attempts: expected at least 1"),
        ("[hooks]\ntimeout_s = 0", "hooks.timeout_s: expected more than 0"),
        ("[compaction]\nexhaustion_threshold = 2", "compaction.exhaustion_threshold: expected at most 1"),
        ("[retry]\nfirst_wait_s = inf", "retry.first_wait_s: expected a finite number"),
        ("[adapters", "not valid TOML: expected ']'"),
        ("a = 1\na = 2", "not valid TOML: cannot overwrite a value"),
        (b"default_model = '\xff'", "cannot be read: 'utf-8' codec can't decode byte 0xff"),
    ],
)
def test_an_error_names_file_and_field(tmp_path: Path, text: str | bytes, complaint: str) -> None:
    path = write(tmp_path, text)

    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path, ())
    line, _, problem = str(caught.value).removeprefix(str(path)).partition(": ")
    assert re.fullmatch(r"(:\d+){0,2}", line)
    assert problem.startswith(complaint)
    assert "sk-x" not in str(caught.value)


def test_all_errors_are_reported_together(tmp_path: Path) -> None:
    path = write(tmp_path, "a = 1\nb = 2")

    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path)
    a, b = str(caught.value).split("; ")
    assert a.startswith(f"{path}:1: a: unknown, expected one of adapters, agents, budget, clients, compaction, ")
    assert b.startswith("line 2: b: unknown, expected one of adapters, agents, budget, clients, compaction, ")


def test_a_folder_in_place_of_the_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "config.toml").mkdir()

    with pytest.raises(ConfigError, match=r"config\.toml: cannot be read: .*Is a directory"):
        load_config(tmp_path)


@pytest.mark.parametrize(
    ("script", "path"),
    [
        ("demo.yaml", "{home}/demo.yaml"),
        ("scripts/../demo.yaml", "{home}/scripts/../demo.yaml"),
        ("/etc/demo.yaml", "/etc/demo.yaml"),
        ("~/demo.yaml", "{user}/demo.yaml"),
        ("~nobody-of-this-name/demo.yaml", "{home}/~nobody-of-this-name/demo.yaml"),
    ],
)
def test_the_path_of_a_script_is_relative_to_the_home_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, path: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    write(tmp_path, f"[adapters.demo]\ntype = 'scripted'\nscript = '{script}'")

    config = load_config(tmp_path)
    assert config.adapters["demo"] == AdapterConfig(
        type="scripted", script=path.format(home=tmp_path, user=tmp_path / "user")
    )


def test_the_home_folder_is_that_of_the_environment_or_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    assert home_folder({"COPILOT_HOME": "/srv/state"}) == Path("/srv/state")
    assert home_folder({"COPILOT_HOME": "relative"}) == tmp_path / "relative"
    assert home_folder({"COPILOT_HOME": ""}) == home_folder({}) == tmp_path / ".jumpseat"
