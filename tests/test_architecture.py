"""The house rules that a reader cannot see in one file: which way imports point, and what must be in step."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Callable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import TypeAlias

import pytest

from jumpseat import errors
from jumpseat.rpc.wire_errors import CODES
from jumpseat_protocol.methods import CLIENT_REQUESTS
from jumpseat_protocol.unsupported import UNSUPPORTED_REQUESTS
from tests.support.locks import locked
from tests.support.modules import Module, parse_modules

ROOT = Path(__file__).parent.parent
SERVER = ROOT / "server" / "jumpseat"
PROTOCOL = ROOT / "protocol" / "jumpseat_protocol"
CLIENT = ROOT / "clients" / "python" / "jumpseat_client"
MCP_SERVER = ROOT / "clients" / "python" / "jumpseat_mcp_server"
TERMINAL = ROOT / "clients" / "python" / "jumpseat_terminal"
TESTKIT = ROOT / "testkit" / "jumpseat_testkit"
TRANSCRIPT = ROOT / "clients" / "python" / "jumpseat_transcript"

# What each room of the server imports of the others, directly: imports inside functions and for types count.
ROOMS: dict[str, set[str]] = {
    "options": set(),
    "errors": set(),
    "tools.edits": set(),
    "agent.shell": set(),
    "store": set(),
    "ahp.states": set(),
    "agent": {"errors"},
    "sessions.shown": {"agent"},
    "system": {"errors"},
    "agent.conversation": {"agent", "system"},
    "agent.profiles": {"agent"},
    "parsing": {"errors", "system"},
    "sandbox": {"system"},
    "tools.syntax": {"parsing"},
    "agent.model_calls.xml_tools": {"agent", "agent.conversation"},
    "agent.model_calls.written_calls": {"agent", "agent.model_calls.xml_tools"},
    "agent.model_calls.written_calls.forms": {"agent.model_calls.written_calls", "agent.model_calls.xml_tools"},
    "declared": {"errors", "parsing", "system"},
    "config": {"declared", "errors", "parsing", "system"},
    "agent.permissions": {"agent", "agent.shell", "errors", "sandbox", "system"},
    "cluster.nats": {"config", "errors"},
    "adapters": {"agent", "declared", "errors", "parsing"},
    "agent.session": {"agent", "agent.conversation", "agent.permissions", "agent.profiles", "errors", "system"},
    "cluster.replicas": {"cluster.nats", "errors"},
    "adapters.transport": {"adapters", "agent", "declared", "errors", "parsing"},
    "adapters.wires": {"adapters", "agent", "errors"},
    "agent.model_calls": {
        *("agent", "agent.conversation", "agent.model_calls.written_calls"),
        *("agent.model_calls.written_calls.forms", "agent.model_calls.xml_tools", "agent.profiles"),
        *("agent.session", "errors"),
    },
    "agent.subagents": {"agent", "agent.conversation", "agent.permissions", "agent.session", "errors"},
    "store.session": {"agent", "agent.session", "errors", "parsing", "system"},
    "tools": {
        *("agent", "agent.conversation", "agent.permissions", "agent.session", "errors", "parsing", "sandbox"),
        *("system", "tools.edits", "tools.syntax"),
    },
    "adapters.recording": {"adapters", "adapters.transport", "agent", "errors", "parsing"},
    "adapters.providers": {"adapters", "adapters.wires", "agent", "errors"},
    "testing": set(),
    "agent.clearing": {"agent", "agent.conversation", "agent.session", "system"},
    "agent.compaction": {
        *("agent", "agent.clearing", "agent.conversation", "agent.model_calls", "agent.session", "errors"),
        *("system",),
    },
    "store.session_fs": {"errors", "store.session"},
    "store.user": {"agent", "agent.permissions", "agent.session", "errors", "parsing", "store.session", "system"},
    "mcp": {
        *("agent", "agent.conversation", "agent.permissions", "agent.session", "errors", "parsing", "sandbox"),
        *("system", "tools"),
    },
    "lsp": {"agent", "agent.session", "config", "parsing", "sandbox", "system", "tools"},
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
        *("agent", "agent.clearing", "agent.compaction", "agent.conversation", "agent.model_calls"),
        *("agent.session", "errors"),
    },
    "store.project": {"agent", "agent.permissions", "agent.session", "errors", "parsing", "store.user", "system"},
    "tools.builtin": {
        *("agent", "agent.conversation", "agent.session", "agent.subagents", "errors", "sandbox", "tools"),
        *("tools.edits", "tools.search", "tools.shell"),
    },
    "tools.declared": {
        *("agent", "agent.conversation", "agent.permissions", "agent.session", "declared", "errors", "parsing"),
        *("sandbox", "tools", "tools.shell"),
    },
    "tools.hooks": {"agent", "agent.session", "sandbox", "system", "tools", "tools.shell"},
    "tools.orchestrator": {
        *("agent", "agent.conversation", "agent.model_calls", "agent.permissions", "agent.session"),
        *("agent.shell", "agent.subagents", "errors", "sandbox", "system", "tools", "tools.shell"),
    },
    "adapters.models": {
        *("adapters", "adapters.declared", "adapters.providers", "adapters.recording", "adapters.transport"),
        *("adapters.wires", "agent", "config", "declared", "errors", "options", "parsing", "system"),
    },
    "store.plugins": {"agent", "errors", "store.project", "store.user", "system"},
    "adapters.setup": {
        *("adapters", "adapters.models", "adapters.providers", "agent", "config", "errors", "parsing"),
        *("store.user", "system"),
    },
    "adapters.completion": {
        *("adapters", "adapters.declared", "adapters.models", "adapters.transport", "agent"),
        *("agent.conversation", "agent.model_calls", "errors", "system"),
    },
    "sessions": {
        *("adapters.models", "agent", "agent.conversation", "agent.model_calls", "agent.permissions"),
        *("agent.profiles", "agent.session", "agent.subagents", "errors", "lsp", "mcp", "sandbox"),
        *("store.plugins", "store.project", "store.session", "store.session_fs", "store.user", "system", "tools"),
        *("tools.builtin", "tools.declared", "tools.orchestrator", "tools.search"),
    },
    "observability": {
        *("agent", "agent.session", "errors", "options", "sessions", "store.session", "store.user", "system"),
    },
    "library": {
        *("adapters.completion", "adapters.models", "adapters.providers", "config", "errors", "options"),
        *("parsing", "store.user"),
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
        *("adapters.completion", "adapters.declared", "adapters.models", "adapters.recording"),
        *("adapters.setup", "adapters.transport", "agent", "agent.model_calls", "agent.permissions"),
        *("agent.session", "errors", "sessions", "store.plugins", "store.session", "store.user", "system"),
        *("tools.builtin", "tools.declared"),
    },
    "rpc": {"errors", "parsing", "sessions", "system"},
    "ahp.hub": {"ahp.states", "errors", "sessions"},
    "handlers.session": {
        *("adapters.completion", "agent", "agent.compaction", "agent.model_calls", "agent.permissions"),
        *("agent.session", "agent.subagents", "commands", "errors", "handlers", "mcp", "sessions"),
        *("store.project", "store.session", "system"),
    },
    "acp.translation": {"agent", "errors", "sessions.shown", "store.session"},
    "acp.draft": {"acp.translation", "agent.conversation", "sessions.shown"},
    "ahp.translation": {"agent", "ahp.states", "errors", "parsing", "sessions", "sessions.shown"},
    "cluster.relay": {
        *("agent", "agent.session", "cluster.nats", "cluster.replicas", "cluster.sessions", "errors", "rpc"),
        *("sessions",),
    },
    "ahp.live": {
        *("agent", "agent.session", "agent.subagents", "ahp.hub", "ahp.states", "ahp.translation", "commands"),
        *("errors", "rpc", "sessions", "store.project", "store.session", "system"),
    },
    "ahp.methods": {"ahp.hub", "ahp.live", "ahp.states", "ahp.translation", "commands", "errors"},
    "ahp.replicas": {
        *("ahp.hub", "ahp.live", "ahp.methods", "ahp.states", "ahp.translation", "errors", "rpc", "sessions"),
    },
    "ahp": {
        *("ahp.hub", "ahp.live", "ahp.methods", "ahp.states", "ahp.translation", "errors", "rpc", "sessions"),
        *("system",),
    },
    "acp.bridge": {"errors", "parsing", "rpc", "system"},
    "network": {"errors", "options", "rpc", "store.user", "system"},
    "acp.editor": {
        *("acp.translation", "agent", "agent.session", "commands", "errors", "sessions", "store.session"),
        *("system",),
    },
    "cluster": {
        *("agent.session", "cluster.nats", "cluster.relay", "cluster.replicas", "cluster.sessions", "errors"),
        *("observability", "sessions", "store.session", "store.user", "system"),
    },
    "acp.methods": {
        *("acp.draft", "acp.editor", "acp.translation", "agent", "agent.session", "commands", "errors", "rpc"),
        *("sessions",),
    },
    "cli": {
        *("acp.bridge", "adapters", "adapters.models", "adapters.providers", "adapters.setup", "agent"),
        *("cluster", "cluster.nats", "config", "declared", "errors", "mcp", "network", "options", "rpc"),
        *("sandbox", "sessions", "store.plugins", "store.project", "store.session", "store.user", "system"),
        *("tools.builtin", "tools.declared"),
    },
    "cli.lab": {"adapters", "cli", "system"},
    "acp": {
        *("acp.draft", "acp.editor", "acp.methods", "acp.translation", "errors", "parsing", "rpc", "sessions"),
        *("system",),
    },
    "acp.replicas": {
        *("acp", "acp.draft", "acp.editor", "acp.methods", "acp.translation", "errors", "rpc", "sessions"),
    },
    "acp.remote": {"acp", "network", "parsing", "rpc", "sessions"},
    "cli.sessions": {"cli", "errors", "store.session"},
    "configured": {
        *("agent", "agent.permissions", "agent.session", "config", "errors", "options", "parsing", "sandbox"),
        *("sessions", "store.project", "store.user"),
    },
    "doors": {
        *("acp", "acp.remote", "acp.replicas", "agent", "ahp", "ahp.live", "ahp.replicas", "cluster"),
        *("network", "options", "rpc", "sessions", "store.user"),
    },
    "app": {
        *("adapters.models", "adapters.providers", "agent", "agent.session", "agent.turns", "cluster"),
        *("commands", "config", "configured", "doors", "errors", "lsp", "mcp", "observability", "options"),
        *("sandbox", "services", "sessions", "store.plugins", "store.project", "store.session", "store.user"),
        *("system", "tools", "tools.builtin", "tools.declared", "tools.hooks", "tools.orchestrator"),
    },
    "process": {
        *("adapters.providers", "app", "cluster", "cluster.nats", "config", "errors", "network"),
        *("observability", "options", "rpc", "sessions", "system"),
    },
    "__main__": {"cli", "options", "process", "system"},
}


Modules: TypeAlias = dict[Path, tuple[Module, ...]]


@pytest.fixture(scope="session")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Modules:
    """Return the modules of each package, parsed once per test run: its workers share a file."""
    folder = tmp_path_factory.getbasetemp()
    shared = (folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder) / "modules"
    with locked(shared.with_suffix(".lock")):
        if not shared.exists():
            packages = {
                root: parse_modules(root)
                for root in (SERVER, PROTOCOL, CLIENT, MCP_SERVER, TESTKIT, TRANSCRIPT, TERMINAL)
            }
            shared.write_bytes(pickle.dumps(packages))
    return pickle.loads(shared.read_bytes())


def imports_inside(modules: Modules, package: Path) -> dict[str, set[str]]:
    """Map each module of a package to its imports from the same package, for types and in functions too.

    Names leave out the package's own: ``agent.shell.syntax``, ``tools``.
    """
    named = {module_name(package, module.path): module for module in modules[package]}
    prefix = f"{package.name}."
    found: dict[str, set[str]] = {}
    for name, module in named.items():
        targets: set[str] = set()
        for entry in module.imports:
            # `from package import module` imports the module, if there is one of that name.
            inner = {f"{entry.module}.{taken}" for taken in entry.names}
            submodules = {target for target in inner if target.removeprefix(prefix) in named}
            targets |= submodules if inner and submodules == inner else {entry.module, *submodules}
        own = {target.removeprefix(prefix) for target in targets if target.startswith(prefix)}
        found[name] = (own & set(named)) - {name}
    return found


def matching_lines(pattern: str, *packages: Path) -> list[str]:
    """Return the places of the lines of some packages that match a regular expression."""
    found = re.compile(pattern)
    return [
        f"{path.relative_to(ROOT)}:{number} {line.strip()}"
        for package in packages
        for path in sorted(package.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if found.search(line)
    ]


def module_name(package: Path, path: Path) -> str:
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module: str) -> str:
    folder = SERVER.joinpath(*module.split("."))
    return module if folder.is_dir() or "." not in module else module.rpartition(".")[0]


def arrows(modules: Modules, room: Callable[[str], str]) -> dict[str, set[str]]:
    """Map each room of the server to the rooms that it imports. ``room`` names the room of a module."""
    found: dict[str, set[str]] = {}
    for importer, targets in imports_inside(modules, SERVER).items():
        if importer:
            found.setdefault(room(importer), set()).update({room(target) for target in targets} - {room(importer)})
    return found


def test_imports_between_the_rooms_of_the_server_are_those_of_the_table(modules: Modules) -> None:
    assert arrows(modules, room_of) == ROOMS
    # Raises where the arrows go round.
    tuple(TopologicalSorter(ROOMS).static_order())


def test_the_top_of_the_server_has_at_most_32_rooms_and_no_circle(modules: Modules) -> None:
    found = arrows(modules, lambda module: module.partition(".")[0])
    assert len(found) <= 32
    tuple(TopologicalSorter(found).static_order())


@pytest.mark.parametrize(
    "package", [SERVER, PROTOCOL, CLIENT, TESTKIT, TRANSCRIPT, TERMINAL], ids=lambda package: package.name
)
def test_no_modules_import_each_other_in_a_circle(modules: Modules, package: Path) -> None:
    imports = imports_inside(modules, package)
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


def test_only_the_process_imports_the_composition_root(modules: Modules) -> None:
    importers = {module.path.name for module in modules[SERVER] if "jumpseat.app" in module.imported()}
    assert importers == {"process.py"}


def test_the_copilot_api_is_one_adapter_among_others(modules: Modules) -> None:
    importers = {
        str(module.path.relative_to(SERVER))
        for module in modules[SERVER]
        if any("adapters" in name and ".copilot" in name for name in module.imported(at_run_time=False))
    }
    # `resolver.py` is where a session's model is looked for, `model_catalogue.py` where all are listed.
    assert {name for name in importers if "copilot" not in name} == {
        "adapters/models/model_catalogue.py",
        "adapters/models/resolver.py",
    }


def test_pygls_is_imported_in_one_place_for_each_protocol(modules: Modules) -> None:
    importers = {
        module.path.relative_to(SERVER).as_posix()
        for module in modules[SERVER]
        if any(name.split(".")[0] in ("pygls", "lsprotocol") for name in module.imported(at_run_time=False))
    }
    assert importers == {"rpc/json_rpc_peer.py", "lsp/client.py"}


def test_the_domain_does_no_input_or_output_of_its_own(modules: Modules) -> None:
    forbidden = {"socket", "subprocess", "asyncio", "httpcore2", "httpx2", "pygls", "os"}
    wrong = [
        f"{module.path.name} imports {name}"
        for module in modules[SERVER]
        if SERVER / "agent" in module.path.parents
        for name in module.imported()
        if name.split(".")[0] in forbidden
    ]
    assert wrong == []


@pytest.mark.parametrize(
    "root", [PROTOCOL, CLIENT, MCP_SERVER, TESTKIT, TRANSCRIPT, TERMINAL], ids=lambda root: root.name
)
def test_protocol_and_clients_need_nothing_of_the_server(modules: Modules, root: Path) -> None:
    wrong = [
        f"{module.path.name} imports {name}"
        for module in modules[root]
        for name in module.imported()
        if name == "jumpseat" or name.startswith("jumpseat.")
    ]
    assert wrong == []


def test_the_terminal_is_imported_by_the_entry_point_alone(modules: Modules) -> None:
    importers = {
        str(module.path.relative_to(ROOT))
        for root in (SERVER, PROTOCOL, CLIENT, TESTKIT, TRANSCRIPT)
        for module in modules[root]
        if any(name.split(".")[0] == "jumpseat_terminal" for name in module.imported(at_run_time=False))
    }
    assert importers == {"server/jumpseat/__main__.py"}


def test_every_task_has_a_parent() -> None:
    loose = r"\.(create_task|ensure_future|run_coroutine_threadsafe)\b"
    assert matching_lines(loose, SERVER, CLIENT, MCP_SERVER, TESTKIT, TERMINAL) == []


def test_every_module_says_what_it_owns(modules: Modules) -> None:
    silent = [
        str(module.path.relative_to(ROOT))
        for root in (SERVER, PROTOCOL, CLIENT, MCP_SERVER, TESTKIT, TRANSCRIPT, TERMINAL)
        for module in modules[root]
        if not module.documented
    ]
    assert silent == []


@pytest.mark.thorough
def test_no_limit_in_a_test_is_shorter_than_a_quarter_of_a_second() -> None:
    """A busy machine stops a process for longer than that."""
    names = (
        r"(timeout\w*|(greeting|ping|grace|blocked|command_wait)_s|initial_wait|first_byte|idle|connect|handler)"
    )
    short = rf"(?i)({names}['\"]?\s*[=:,]|(move_on|fail)_after\()\s*0?\.([01]|2(?![5-9]))"
    assert matching_lines(short, ROOT / "tests") == []


def test_no_guard_against_hanging_in_a_test_is_shorter_than_twenty_seconds() -> None:
    """``WAIT_S`` of ``tests/support/limits.py`` is the usual guard. A limit that a test reaches is a subject."""
    short = (
        r"fail_after\(1?\d(\.\d*)?[,)]|(?<!\))\.(wait|join)\((timeout=)?1?\d(\.\d*)?\)"
        r"|^[A-Z_]*(WAIT|ANSWER|CALL|EXIT|LIMIT)_S\b.*= 1?\d(\.\d*)?$"
    )
    assert matching_lines(short, ROOT / "tests") == []


def test_no_module_class_or_function_is_described_by_a_riddle() -> None:
    """A verb or a noun says the same in fewer words: see "Words" in CONTRIBUTING.md."""
    riddle = re.compile(r'(?:\A|:\n\s+)(r?"""(?:What|Whether|How|Who|Where)\b.*)')
    paths = [path for package in (SERVER, PROTOCOL) for path in package.rglob("*.py")]
    found = {path.name: riddle.findall(path.read_text(encoding="utf-8")) for path in paths}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_nothing_changes_at_module_level() -> None:
    assert matching_lines(r"^\s*global\s", SERVER, PROTOCOL, CLIENT, TESTKIT, TRANSCRIPT, TERMINAL) == []


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
