"""The house rules that a reader cannot see in one file: which way imports point, and what must be in step."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jumpseat import errors
from jumpseat.rpc.routes import ROUTES
from jumpseat.rpc.wire_errors import CODES
from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.unsupported import UNSUPPORTED_REQUESTS

ROOT = Path(__file__).parent.parent
SERVER = ROOT / "server" / "jumpseat"
PROTOCOL = ROOT / "protocol" / "jumpseat_protocol"
CLIENT = ROOT / "clients" / "python" / "jumpseat_client"
TERMINAL = ROOT / "clients" / "python" / "jumpseat_terminal"

# What each room of the server may import of the others. `handlers` and `app` see the parts they connect.
MAY_IMPORT = {
    "acp": {"agent", "errors", "handlers", "rpc", "store"},
    "agent": {"errors"},
    "services": {"adapters", "agent", "config", "declared", "errors", "tools"},
    "adapters": {"agent", "declared", "errors", "config"},
    "declared": {"errors"},
    "tools": {"agent", "declared", "errors"},
    "mcp": {"agent", "errors", "tools"},
    "store": {"agent", "errors"},
    "handlers": {"adapters", "agent", "errors", "mcp", "registry", "store", "tools"},
    "rpc": {"handlers", "errors"},
    "registry": {"agent", "errors", "store", "tools"},
    "config": {"errors"},
    "script": {"adapters", "agent", "errors"},
    "testing": {"adapters", "script"},
    "console": {"adapters", "agent", "cli", "config", "errors"},
    "mcp_console": {"config", "errors", "mcp", "store"},
    "cli": set[str](),
    "errors": set[str](),
}
# Type-checking imports are not followed at run time; these are the ones that would point the other way.
HEAVY = {
    *("httpx", "pygls", "mcp", "lsprotocol", "yaml", "jsonschema", "tree_sitter", "tree_sitter_bash"),
    *("rich", "prompt_toolkit", "jumpseat_terminal"),
}


def modules(root: Path) -> Iterator[tuple[Path, ast.Module]]:
    for path in sorted(root.rglob("*.py")):
        yield path, ast.parse(path.read_text())


def imported(tree: ast.AST, *, at_run_time: bool = True) -> Iterator[str]:
    """Absolute names of the modules that ``tree`` imports."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and at_run_time and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from imported(ast.Module([other], []))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        else:
            yield from imported(node, at_run_time=at_run_time)


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_imports_between_the_rooms_of_the_server_point_one_way(room: str) -> None:
    path = SERVER / room
    found = (
        modules(path)
        if path.is_dir()
        else [(path.with_suffix(".py"), ast.parse(path.with_suffix(".py").read_text()))]
    )
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file, tree in found
        for name in imported(tree)
        if name.startswith("jumpseat.") and name.split(".")[1] not in MAY_IMPORT[room] | {room}
    ]
    assert wrong == []


def test_only_the_entry_point_imports_the_composition_root() -> None:
    importers = {path.name for path, tree in modules(SERVER) if "jumpseat.app" in set(imported(tree))}
    assert importers == {"__main__.py"}


def test_the_copilot_api_is_one_adapter_among_others() -> None:
    importers = {
        str(path.relative_to(SERVER))
        for path, tree in modules(SERVER)
        if any(name.startswith("jumpseat.adapters.copilot") for name in imported(tree, at_run_time=False))
    }
    # `sources.py` is where a session's model is looked for, `model_catalogue.py` where all are listed.
    assert {name for name in importers if "copilot" not in name} == {
        "adapters/model_catalogue.py",
        "adapters/sources.py",
    }


def test_pygls_is_imported_by_the_seam_alone() -> None:
    importers = {
        path.name
        for path, tree in modules(SERVER)
        if any(name.split(".")[0] in ("pygls", "lsprotocol") for name in imported(tree, at_run_time=False))
    }
    assert importers == {"pygls_seam.py", "slim_import.py"}


def test_the_domain_does_no_input_or_output_of_its_own() -> None:
    forbidden = {"socket", "subprocess", "asyncio", "httpx", "pygls", "os"}
    wrong = [
        f"{path.name} imports {name}"
        for path, tree in modules(SERVER / "agent")
        for name in imported(tree)
        if name.split(".")[0] in forbidden
    ]
    assert wrong == []


@pytest.mark.parametrize("root", [PROTOCOL, CLIENT, TERMINAL], ids=["protocol", "client", "terminal"])
def test_protocol_and_clients_need_nothing_of_the_server(root: Path) -> None:
    wrong = [
        f"{path.name} imports {name}"
        for path, tree in modules(root)
        for name in imported(tree)
        if name == "jumpseat" or name.startswith("jumpseat.")
    ]
    assert wrong == []


def test_the_terminal_is_imported_by_the_entry_point_alone() -> None:
    importers = {
        str(path.relative_to(ROOT))
        for root in (SERVER, PROTOCOL, CLIENT)
        for path, tree in modules(root)
        if any(name.split(".")[0] == "jumpseat_terminal" for name in imported(tree, at_run_time=False))
    }
    assert importers == {"server/jumpseat/__main__.py"}


def test_the_protocol_package_imports_alone_in_a_fresh_interpreter() -> None:
    names = ", ".join(f"jumpseat_protocol.{path.stem}" for path in PROTOCOL.glob("*.py") if path.stem != "__init__")
    code = f"import sys; sys.path.insert(0, {str(PROTOCOL.parent)!r}); import {names}; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    loaded = {name.split(".")[0] for name in ast.literal_eval(done.stdout)}
    assert not loaded & {"jumpseat", "jumpseat_client", "anyio", *HEAVY}


def test_starting_a_server_loads_no_provider_and_nothing_of_the_language_server_protocol() -> None:
    code = "import jumpseat.app, sys; print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    loaded = {name.split(".")[0] for name in ast.literal_eval(done.stdout)}
    assert not loaded & HEAVY


def test_a_model_behind_a_plain_adapter_needs_nothing_of_the_declared_ones(tmp_path: Path) -> None:
    code = (
        "import anyio, sys; from pathlib import Path; from jumpseat.adapters.sources import Models;"
        " from jumpseat.agent.settings import SessionSettings; from jumpseat.cli import Options;"
        " from jumpseat.config import Config, AdapterConfig;"
        " models = Models(Config(adapters={'w': AdapterConfig(type='openai', base_url='http://h', models=['m'])}),"
        f" Options(environ={{}}, port=None), Path({str(tmp_path)!r}));"
        " anyio.run(models.resolve, SessionSettings(cwd=Path('/'), model='w/m'));"
        " anyio.run(models.catalogue.list);"
        # Where declarations may lie is asked for all the same.
        " print(sorted(name for name in sys.modules if '.declared' in name))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=False)
    light = "['jumpseat.declared', 'jumpseat.declared.places']"
    assert (done.returncode, done.stdout.strip()) == (0, light), done.stderr


def test_every_task_has_a_parent() -> None:
    loose = {"create_task", "ensure_future", "run_coroutine_threadsafe"}
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.attr}"
        for root in (SERVER, CLIENT, TERMINAL)
        for path, tree in modules(root)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in loose
    ]
    assert wrong == []


def test_every_module_says_what_it_owns() -> None:
    silent = [
        str(path.relative_to(ROOT))
        for root in (SERVER, PROTOCOL, CLIENT, TERMINAL)
        for path, tree in modules(root)
        if tree.body and ast.get_docstring(tree) is None
    ]
    assert silent == []


def test_nothing_changes_at_module_level() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for root in (SERVER, PROTOCOL, CLIENT, TERMINAL)
        for path, tree in modules(root)
        for node in ast.walk(tree)
        if isinstance(node, ast.Global)
    ]
    assert wrong == []


def test_every_method_of_the_table_has_a_route_and_the_other_way_round() -> None:
    assert set(ROUTES) == set(CLIENT_REQUESTS)


def test_no_method_is_both_served_and_unsupported() -> None:
    assert set(CLIENT_REQUESTS) & UNSUPPORTED_REQUESTS == set()


def test_every_error_has_a_code_on_the_wire() -> None:
    def leaves(cls: type[errors.JumpseatError]) -> Iterator[type[errors.JumpseatError]]:
        for child in cls.__subclasses__():
            yield from leaves(child)
        if not cls.__subclasses__():
            yield cls

    without = [
        leaf.__name__ for leaf in leaves(errors.JumpseatError) if not any(cls in CODES for cls in leaf.__mro__)
    ]
    assert without == []


def test_the_error_tree_in_the_documentation_is_the_one_in_the_code() -> None:
    drawn = {word for word in (errors.__doc__ or "").split() if word.endswith("Error")}
    defined = {name for name, value in vars(errors).items() if isinstance(value, type) and name.endswith("Error")}
    assert drawn == defined
