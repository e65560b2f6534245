"""The house rules that a reader cannot see in one file: which way imports point, and what must be in step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
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
TRANSCRIPT = ROOT / "clients" / "python" / "jumpseat_transcript"

# What each room of the server imports of the others, directly: imports inside functions and for types count.
ROOMS: dict[str, set[str]] = {
    "options": set(),
    "errors": set(),
    "agent.shell": set(),
    "store": set(),
    "agent": {"errors"},
    "system": {"errors"},
    "agent.conversation": {"agent", "system"},
    "parsing": {"errors", "system"},
    "sandbox": {"system"},
    "agent.model_calls.xml_tools": {"agent", "agent.conversation"},
    "config": {"errors", "parsing", "system"},
    "declared": {"errors", "parsing", "system"},
    "agent.permissions": {"agent", "agent.shell", "errors", "sandbox", "system"},
    "cluster.nats": {"config", "errors"},
    "adapters": {"agent", "agent.conversation", "declared", "errors", "parsing"},
    "agent.session": {"agent", "agent.conversation", "agent.permissions", "errors"},
    "cluster.replicas": {"cluster.nats", "errors"},
    "adapters.transport": {"adapters", "agent", "declared", "errors", "parsing"},
    "adapters.wires": {"adapters", "agent", "errors"},
    "script": {"adapters", "agent", "errors", "parsing", "system"},
    "agent.model_calls": {"agent", "agent.conversation", "agent.model_calls.xml_tools", "agent.session", "errors"},
    "agent.subagents": {"agent", "agent.conversation", "agent.permissions", "agent.session", "errors"},
    "store.session": {"agent", "agent.session", "errors", "system"},
    "tools": {
        *("agent", "agent.conversation", "agent.permissions", "agent.session", "errors", "parsing", "sandbox"),
        *("system",),
    },
    "adapters.recording": {"adapters", "adapters.transport", "agent", "errors", "parsing"},
    "adapters.providers": {"adapters", "adapters.wires", "agent", "errors"},
    "testing": {"adapters", "script"},
    "agent.compaction": {"agent", "agent.conversation", "agent.model_calls", "agent.session", "errors", "system"},
    "store.session_fs": {"errors", "store.session"},
    "store.user": {"agent", "agent.permissions", "errors", "parsing", "store.session", "system"},
    "mcp": {
        *("agent", "agent.conversation", "agent.permissions", "agent.session", "errors", "parsing", "sandbox"),
        *("system", "tools"),
    },
    "services": {
        *("adapters", "adapters.transport", "agent", "agent.conversation", "config", "declared", "errors"),
        *("parsing", "sandbox", "tools"),
    },
    "tools.search": {"tools"},
    "tools.shell": {"agent", "agent.shell", "errors", "sandbox", "system", "tools"},
    "adapters.declared": {
        *("adapters", "adapters.providers", "adapters.transport", "adapters.wires", "agent", "declared"),
        *("errors", "parsing"),
    },
    "agent.turns": {
        *("agent", "agent.compaction", "agent.conversation", "agent.model_calls", "agent.session", "errors"),
    },
    "observability": {"agent", "errors", "options", "store.session", "store.user", "system"},
    "store.project": {"agent", "agent.permissions", "agent.session", "errors", "parsing", "store.user", "system"},
    "tools.builtin": {
        *("agent", "agent.conversation", "agent.session", "agent.subagents", "errors", "sandbox", "tools"),
        *("tools.search", "tools.shell"),
    },
    "tools.declared": {
        *("agent", "agent.conversation", "agent.permissions", "agent.session", "declared", "errors", "parsing"),
        *("sandbox", "tools", "tools.shell"),
    },
    "tools.hooks": {"agent", "agent.session", "sandbox", "system", "tools", "tools.shell"},
    "tools.orchestrator": {
        *("agent", "agent.conversation", "agent.permissions", "agent.session", "agent.shell"),
        *("agent.subagents", "errors", "sandbox", "system", "tools", "tools.shell"),
    },
    "adapters.models": {
        *("adapters", "adapters.declared", "adapters.providers", "adapters.recording", "adapters.transport"),
        *("adapters.wires", "agent", "config", "declared", "errors", "options", "parsing", "system"),
    },
    "store.plugins": {"agent", "errors", "store.project", "store.user", "system"},
    "completion": {
        *("adapters", "adapters.declared", "adapters.models", "adapters.transport", "agent"),
        *("agent.conversation", "agent.model_calls", "errors", "system"),
    },
    "sessions": {
        *("adapters.models", "agent", "agent.conversation", "agent.model_calls", "agent.permissions"),
        *("agent.session", "agent.subagents", "agent.turns", "errors", "mcp", "store.plugins", "store.project"),
        *("store.session", "store.session_fs", "store.user", "system", "tools", "tools.builtin"),
        *("tools.declared", "tools.orchestrator", "tools.search"),
    },
    "library": {
        *("adapters.models", "adapters.providers", "completion", "config", "errors", "options", "parsing"),
        *("store.user",),
    },
    "cluster.sessions": {
        *("agent.conversation", "agent.session", "cluster.nats", "cluster.replicas", "errors", "sessions"),
        *("store.session", "system"),
    },
    "commands": {"agent", "agent.compaction", "agent.session", "errors", "sessions"},
    "handlers": {
        *("agent", "errors", "mcp", "sessions", "store.plugins", "store.project", "store.session"),
        *("store.user", "system"),
    },
    "handlers.jumpseat": {
        *("adapters.declared", "adapters.recording", "adapters.transport", "agent", "agent.model_calls"),
        *("agent.permissions", "agent.session", "completion", "errors", "sessions", "store.plugins"),
        *("store.session", "store.user", "system", "tools.builtin", "tools.declared"),
    },
    "rpc": {"errors", "parsing", "sessions", "system"},
    "handlers.session": {
        *("agent", "agent.compaction", "agent.model_calls", "agent.permissions", "agent.session"),
        *("agent.subagents", "commands", "completion", "errors", "handlers", "mcp", "sessions"),
        *("store.project", "store.session", "system"),
    },
    "acp.translation": {"agent", "errors", "rpc", "store.session"},
    "cluster.relay": {
        *("agent", "agent.session", "cluster.nats", "cluster.replicas", "cluster.sessions", "errors", "rpc"),
        *("sessions",),
    },
    "network": {"errors", "options", "rpc", "store.user", "system"},
    "acp.editor": {
        *("acp.translation", "agent", "agent.session", "commands", "errors", "sessions", "store.session"),
        *("system",),
    },
    "cluster": {
        *("agent.session", "cluster.nats", "cluster.relay", "cluster.replicas", "cluster.sessions", "errors"),
        *("observability", "store.session", "store.user", "system"),
    },
    "acp.methods": {
        *("acp.editor", "acp.translation", "agent", "agent.session", "commands", "errors", "rpc", "sessions"),
    },
    "cli": {
        *("adapters", "adapters.declared", "adapters.models", "adapters.providers", "adapters.transport"),
        *("agent", "cluster", "cluster.nats", "config", "declared", "errors", "mcp", "options", "script"),
        *("sessions", "store.plugins", "store.project", "store.user", "system", "tools.builtin"),
        *("tools.declared",),
    },
    "acp": {"acp.editor", "acp.methods", "acp.translation", "errors", "rpc", "sessions"},
    "cli.sessions": {"cli", "config", "errors", "store.session"},
    "app": {
        *("acp", "adapters.models", "adapters.providers", "agent", "agent.permissions", "agent.session"),
        *("cluster", "cluster.nats", "commands", "config", "errors", "mcp", "network", "observability"),
        *("options", "parsing", "rpc", "sandbox", "services", "sessions", "store.plugins", "store.project"),
        *("store.session", "store.user", "system", "tools", "tools.builtin", "tools.declared", "tools.hooks"),
        *("tools.orchestrator",),
    },
    "__main__": {"app", "cli", "cli.sessions", "options"},
}


@cache
def modules(root: Path) -> tuple[tuple[Path, ast.Module], ...]:
    return tuple((path, ast.parse(path.read_text())) for path in sorted(root.rglob("*.py")))


@cache
def imported(tree: ast.Module, *, at_run_time: bool = True) -> frozenset[str]:
    """Return the absolute names of the modules that ``tree`` imports."""
    return frozenset(_imported(tree, at_run_time=at_run_time))


def _imported(tree: ast.AST, *, at_run_time: bool) -> Iterator[str]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and at_run_time and _is_type_checking(node.test):
            for other in node.orelse:
                yield from _imported(ast.Module([other], []), at_run_time=True)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        elif not isinstance(node, ast.expr):
            yield from _imported(node, at_run_time=at_run_time)


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield all statements in ``node``; walking the expressions too would take four times as long."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for child in getattr(node, field, ()):
            if isinstance(child, ast.stmt):
                yield child
            yield from _statements(child)


def _is_type_checking(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "TYPE_CHECKING" for node in ast.walk(test))


@cache
def imports_inside(package: Path) -> dict[str, set[str]]:
    """Map each module of a package to its imports from the same package, for types and in functions too.

    Names leave out the package's own: ``agent.shell.syntax``, ``tools``.
    """
    trees = {module_name(package, path): tree for path, tree in modules(package)}
    prefix = f"{package.name}."
    found: dict[str, set[str]] = {}
    for name, tree in trees.items():
        targets: set[str] = set()
        for node in _statements(tree):
            if isinstance(node, ast.Import):
                targets.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                # `from package import module` imports the module, if there is one of that name.
                inner = {f"{node.module}.{alias.name}" for alias in node.names}
                submodules = {module for module in inner if module.removeprefix(prefix) in trees}
                targets |= submodules if submodules == inner else {node.module, *submodules}
        own = {target.removeprefix(prefix) for target in targets if target.startswith(prefix)}
        found[name] = (own & set(trees)) - {name}
    return found


def module_name(package: Path, path: Path) -> str:
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    folder = SERVER.joinpath(*module.split("."))
    return module if folder.is_dir() or "." not in module else module.rpartition(".")[0]


def test_imports_between_the_rooms_of_the_server_point_one_way() -> None:
    wrong = {
        f"{importer} imports {target}"
        for importer, targets in imports_inside(SERVER).items()
        for target in targets
        if importer and room_of(target) not in ROOMS[room_of(importer)] | {room_of(importer)}
    }
    assert wrong == set()
    # Raises where the arrows go round.
    tuple(TopologicalSorter(ROOMS).static_order())


@pytest.mark.parametrize(
    "package", [SERVER, PROTOCOL, CLIENT, TRANSCRIPT, TERMINAL], ids=lambda package: package.name
)
def test_no_modules_import_each_other_in_a_circle(package: Path) -> None:
    imports = imports_inside(package)
    reach: dict[str, set[str]] = {}
    for start in imports:
        visited: set[str] = set()
        todo = [start]
        while todo:
            for target in imports[todo.pop()] - visited:
                visited.add(target)
                todo.append(target)
        reach[start] = visited
    circles = {frozenset(b for b in reach[a] if a in reach[b]) for a in reach if a in reach[a]}
    assert circles == set()


def test_only_the_entry_point_imports_the_composition_root() -> None:
    importers = {path.name for path, tree in modules(SERVER) if "jumpseat.app" in imported(tree)}
    assert importers == {"__main__.py"}


def test_the_copilot_api_is_one_adapter_among_others() -> None:
    importers = {
        str(path.relative_to(SERVER))
        for path, tree in modules(SERVER)
        if any("adapters" in name and ".copilot" in name for name in imported(tree, at_run_time=False))
    }
    # `resolver.py` is where a session's model is looked for, `model_catalogue.py` where all are listed.
    assert {name for name in importers if "copilot" not in name} == {
        "adapters/models/model_catalogue.py",
        "adapters/models/resolver.py",
    }


def test_pygls_is_imported_in_one_place() -> None:
    importers = {
        path.name
        for path, tree in modules(SERVER)
        if any(name.split(".")[0] in ("pygls", "lsprotocol") for name in imported(tree, at_run_time=False))
    }
    assert importers == {"json_rpc_peer.py"}


def test_the_domain_does_no_input_or_output_of_its_own() -> None:
    forbidden = {"socket", "subprocess", "asyncio", "httpx", "pygls", "os"}
    wrong = [
        f"{path.name} imports {name}"
        for path, tree in modules(SERVER)
        if SERVER / "agent" in path.parents
        for name in imported(tree)
        if name.split(".")[0] in forbidden
    ]
    assert wrong == []


@pytest.mark.parametrize("root", [PROTOCOL, CLIENT, TRANSCRIPT, TERMINAL], ids=lambda root: root.name)
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
        for root in (SERVER, PROTOCOL, CLIENT, TRANSCRIPT)
        for path, tree in modules(root)
        if any(name.split(".")[0] == "jumpseat_terminal" for name in imported(tree, at_run_time=False))
    }
    assert importers == {"server/jumpseat/__main__.py"}


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
        for root in (SERVER, PROTOCOL, CLIENT, TRANSCRIPT, TERMINAL)
        for path, tree in modules(root)
        if tree.body and ast.get_docstring(tree) is None
    ]
    assert silent == []


def test_nothing_changes_at_module_level() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for root in (SERVER, PROTOCOL, CLIENT, TRANSCRIPT, TERMINAL)
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
