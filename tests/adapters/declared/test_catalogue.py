"""Where adapters are found, what may extend what, and what clients may register."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jumpseat.adapters.adapter import ForeignAdapter
from jumpseat.adapters.declared.catalogue import AdapterCatalogue
from jumpseat.adapters.providers import PROVIDERS, load_adapter
from jumpseat.errors import ConfigError, InvalidRequestError
from tests.support.cases import all_cases

pytestmark = pytest.mark.anyio


def catalogue(
    configured: Mapping[str, Mapping[str, Any]] | None = None, home: Path | None = None
) -> AdapterCatalogue:
    return AdapterCatalogue(configured or {}, home)


def write(home: Path, name: str, text: str) -> None:
    (home / "adapters").mkdir(exist_ok=True)
    (home / "adapters" / name).write_text(text)


def test_every_built_in_adapter_is_found_with_its_wire() -> None:
    for name in PROVIDERS:
        known = catalogue().get(name)

        assert known.declaration.name == name
        assert known.wire is not None
        assert known.wire.name == name
        assert known.origin == "built-in"


def test_azure_is_found_under_both_of_its_names() -> None:
    assert catalogue().get("azure_openai") is not None
    assert catalogue().get("azure_openai").declaration.name == "azure"


def test_the_error_for_an_unknown_name_has_the_nearest_known_one() -> None:
    with pytest.raises(ConfigError, match=r"unknown adapter 'opnai', did you mean 'openai'\?"):
        catalogue().get("opnai")


def test_an_adapter_in_the_home_folder_needs_at_most_twenty_lines(tmp_path: Path) -> None:
    write(tmp_path, "work.toml", 'extends = "openai"\n[env]\nbase_url = "https://llm.example.com/v1"\n')

    known = catalogue(home=tmp_path).get("work")

    assert known.declaration.name == "work"
    assert known.declaration.env["base_url"] == "https://llm.example.com/v1"
    assert known.wire is not None
    assert (known.wire.signature, known.wire.name, known.kind) == ("work", "openai", "openai")
    assert known.origin == "home"


def test_a_python_file_can_define_handlers(tmp_path: Path) -> None:
    write(
        tmp_path,
        "mine.py",
        "def chat_output(self, data, tools):\n    return None\n\n"
        'ADAPTER = {"url": "http://x", "handlers": {"chat_output": chat_output}}\n',
    )

    known = catalogue(home=tmp_path).get("mine")

    assert known.wire is None
    assert list(known.declaration.handlers) == ["parse_chat"]


def test_the_configuration_can_change_a_built_in_adapter() -> None:
    found = catalogue({"openai": {"extends": "openai", "headers": {"X-Team": "blue"}}})

    known = found.get("openai")

    assert known.declaration.headers == {"X-Team": "blue"}
    assert known.declaration.env["base_url"] == "https://api.openai.com/v1"
    assert known.origin == "configuration"


def test_the_configuration_overrides_the_home_folder_which_overrides_built_in_adapters(tmp_path: Path) -> None:
    write(tmp_path, "openai.toml", 'extends = "openai"\nvendor = "home"\n')
    write(tmp_path, "one.toml", 'extends = "openai"\nvendor = "home"\n')

    found = catalogue({"one": {"extends": "openai", "vendor": "configuration"}}, tmp_path)

    assert found.get("openai").declaration.vendor == "home"
    assert found.get("one").declaration.vendor == "configuration"


def test_adapters_can_be_extended_in_several_steps() -> None:
    found = catalogue(
        {
            "a": {"extends": "openai", "headers": {"A": "a", "B": "a"}},
            "b": {"extends": "a", "headers": {"B": "b"}, "formatted_name": "B"},
        }
    )

    declaration = found.get("b").declaration
    assert (declaration.name, declaration.title, declaration.headers) == ("b", "B", {"A": "a", "B": "b"})


def test_adapters_that_extend_each_other_are_an_error() -> None:
    found = catalogue({"a": {"extends": "b"}, "b": {"extends": "a"}})

    with pytest.raises(ConfigError, match="it extends itself"):
        found.get("a")


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("x.toml", "extends = ", r"x\.toml: not valid TOML: invalid value"),
        ("x.toml", 'extends = "openai"\nheadres = 1\n', r"x\.toml:2: headres: unknown, did you mean 'headers'\?"),
        ("x.py", "1/0\n", r"x\.py: cannot be run: ZeroDivisionError"),
        ("x.py", "ADAPTER = 3\n", r"x\.py: expected a mapping called ADAPTER"),
    ],
)
def test_an_invalid_file_is_named(tmp_path: Path, name: str, text: str, expected: str) -> None:
    write(tmp_path, name, text)

    with pytest.raises(ConfigError, match=expected):
        catalogue(home=tmp_path).get("x")


def test_an_installed_package_provides_adapters_by_an_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "their_adapter.py").write_text('ADAPTER = {"extends": "openai", "vendor": "them"}\n')
    info = tmp_path / "their_adapter-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-adapter\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[jumpseat.adapters]\ntheirs = their_adapter:ADAPTER\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    found = catalogue()

    assert found.get("theirs").declaration.vendor == "them"
    assert "theirs" in found.names()
    sys.modules.pop("their_adapter", None)


def test_a_registered_adapter_is_available_at_once_and_can_be_registered_again() -> None:
    found = catalogue()

    for vendor in ("one", "two"):
        found.register({"name": "theirs", "extends": "openai", "vendor": vendor})
        assert found.get("theirs").declaration.vendor == vendor
    assert "theirs" in found.names()


@pytest.mark.parametrize("name", ["openai", "configured"])
def test_a_client_cannot_register_the_name_of_an_existing_adapter(name: str) -> None:
    found = catalogue({"configured": {"extends": "openai"}})

    with pytest.raises(InvalidRequestError, match=f"adapter '{name}' already exists"):
        found.register({"name": name, "extends": "openai"})


def test_an_invalid_declaration_is_not_registered() -> None:
    found = catalogue()
    found.register({"name": "theirs", "extends": "openai", "vendor": "good"})

    with pytest.raises(ConfigError):
        found.register({"name": "theirs", "extends": "openai", "nonsense": 1})
    with pytest.raises(ConfigError):
        found.register({"name": "new", "extends": "nothing"})

    assert found.get("theirs").declaration.vendor == "good"
    assert not found.has("new")


def test_adapters_on_the_same_wire_sign_with_their_own_names() -> None:
    with all_cases() as case:
        for kind in PROVIDERS:
            with case(kind):
                found = catalogue({"one": {"extends": kind}, "two": {"extends": kind}, "three": {"extends": "one"}})
                for name in ("one", "two", "three"):
                    known = found.get(name)
                    assert known.wire is not None
                    assert (known.wire.signature, known.wire.name, known.kind) == (name, kind, kind)
                assert load_adapter(kind).name == kind
                assert load_adapter(kind).signs_as in (None, "anthropic")


def test_a_foreign_wire_without_a_signature_signs_with_the_name_of_its_adapter() -> None:
    class Theirs:
        name = "theirs"

    signed = ForeignAdapter(Theirs()).signing_as("work")

    assert (signed.name, signed.signature, Theirs.name) == ("work", "work", "theirs")


@pytest.mark.parametrize(
    ("table", "keeps_key"),
    [
        ({}, True),
        ({"headers": {"A": "b"}}, True),
        ({"url": "https://api.openai.com/v2/chat"}, True),
        ({"url": "${base_url}/chat"}, True),
        ({"url": "https://elsewhere.example/v1/chat/completions"}, False),
        ({"env": {"base_url": "https://elsewhere.example/v1"}}, False),
        ({"env": {"base_url": "http://api.openai.com/v1"}}, False),
        ({"base_url": "https://elsewhere.example/v1"}, False),
        ({"env": {"base_url": "ELSEWHERE_URL"}}, False),
    ],
)
def test_the_key_of_a_known_server_is_kept_for_that_server_only(table: dict[str, Any], keeps_key: bool) -> None:
    entry = catalogue({"one": {"extends": "openai", **table}}).get("one").declaration.env["api_key"]

    assert (entry["value"] == "OPENAI_API_KEY") is keeps_key


def test_a_type_does_not_inherit_from_an_adapter_with_the_same_name() -> None:
    found = catalogue(
        {
            "openai": {"base_url": "https://proxy.example/v1", "headers": {"X": "1"}},
            "by_type": {"type": "openai", "headers": {"Y": "2"}},
            "by_name": {"extends": "openai", "headers": {"Y": "2"}},
        }
    )

    assert found.get("by_type").declaration.headers == {"Y": "2"}
    assert found.get("by_name").declaration.headers == {"X": "1", "Y": "2"}


async def test_a_function_that_lists_models_is_called_once() -> None:
    adapters: list[str] = []

    def choices(adapter: Any) -> list[str]:
        adapters.append(adapter.name)
        return ["a", "b"]

    found = catalogue({"one": {"extends": "openai", "schema": {"model": {"choices": choices, "default": "b"}}}})

    for _ in range(2):
        assert [offer.id for offer in (await found.get_ready("one")).offers()] == ["b", "a"]
    assert adapters == ["one"]


async def test_the_error_of_a_failing_list_of_models_has_no_message_of_the_function() -> None:
    def choices(_adapter: Any) -> list[str]:
        raise OSError("the key is secret")

    found = catalogue({"one": {"extends": "openai", "schema": {"model": {"choices": choices}}}})

    with pytest.raises(
        ConfigError,
        match=r"schema.model.choices: its function failed \(OSError at \w+.py:\d+\)$",
    ):
        await found.get_ready("one")


def test_a_redeclared_variable_replaces_the_inherited_one_field_by_field() -> None:
    found = catalogue(
        {
            "one": {"extends": "openai", "env": {"api_key": {"value": "it is this", "literal": True}}},
            "two": {"extends": "one", "env": {"api_key": {"optional": True}}},
        }
    )

    assert found.get("one").declaration.env["api_key"] == {"value": "it is this", "literal": True}
    assert found.get("two").declaration.env["api_key"] == {
        "value": "it is this",
        "literal": True,
        "optional": True,
    }
