"""The modules of the providers: their descriptions, which are cheap to import."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

from jumpseat.adapters.adapter import Adapter
from jumpseat.adapters.models.known_models import fact_files
from jumpseat.adapters.provider import SCRIPTED
from jumpseat.adapters.providers import PROVIDERS, canonical_type, environment_providers, load_adapter
from jumpseat.errors import ConfigError
from tests.support.cases import all_cases


def test_a_module_is_named_after_the_type_of_its_provider() -> None:
    with all_cases() as case:
        for name, info in PROVIDERS.items():
            with case(name):
                assert info.type == name == canonical_type(name)
                adapter = info.load()
                assert isinstance(adapter, Adapter)
                assert adapter.name == name


def test_types_and_aliases_are_unique() -> None:
    names = [name for info in PROVIDERS.values() for name in (info.type, *info.aliases)]
    assert len(set(names)) == len(names)
    assert SCRIPTED not in names
    assert canonical_type("azure_openai") == "azure"


def test_providers_of_the_environment_have_a_key_variable_and_a_unique_rank() -> None:
    found = environment_providers()
    assert list(found)[:2] == ["openai", "anthropic"] == list(environment_providers(fallback=False))
    assert all(info.key_variable for info in found.values())
    assert len({info.environment.rank for info in found.values() if info.environment}) == len(found)


def test_facts_about_models_are_beside_the_module_of_a_provider() -> None:
    assert {path.stem for path in fact_files()} < set(PROVIDERS)


def test_an_unknown_type_is_refused_with_all_known_ones() -> None:
    with pytest.raises(ConfigError, match="unknown adapter 'nobody', expected one of anthropic, azure, "):
        load_adapter("nobody")


def test_describing_all_providers_imports_no_wire_format() -> None:
    code = (
        "import sys; from jumpseat.adapters.providers import PROVIDERS; list(PROVIDERS.values());"
        " print(sorted(name for name in sys.modules if name.startswith('jumpseat.adapters.wires.')))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert process.returncode == 0, process.stderr
    assert ast.literal_eval(process.stdout) == ["jumpseat.adapters.wires.settings"]


def test_importing_the_package_imports_no_library() -> None:
    libraries = {"httpcore2", "httpx2", "orjson", "yaml", "pydantic"}
    code = f"import sys, jumpseat.adapters; print({libraries} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert shown.stdout.strip() == "set()"
