"""The files and folders of a project that make other programs run something, in lower case.

Approvals never cover writing to them, and confined commands cannot change them, at any depth. No other table has
them, apart from git folders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final

_AGENTS: Final = (
    ".adal", ".agent", ".agents", ".aider.conf.yml", ".amazonq", ".amp", ".antigravity", ".augment", ".bob",
    ".claude", ".claude-plugin", ".cline", ".clinerules", ".codebuddy", ".codeium", ".codex", ".cody",
    ".commandcode", ".continue", ".continuerc.json", ".copilot", ".cortex", ".crush", ".crush.json", ".cursor",
    ".factory", ".firebender", ".forge", ".gemini", ".goose", ".iflow", ".jumpseat", ".junie", ".kilocode",
    ".kilocodemodes", ".kimi", ".kiro", ".kode", ".letta", ".lingma", ".mcp.json", ".mcpjam", ".mux", ".neovate",
    ".omp", ".opencode", ".openhands", ".pi", ".pochi", ".qoder", ".qwen", ".roo", ".roomodes", ".rovodev",
    ".tabnine", ".trae", ".vibe", ".void", ".warp", ".windsurf", ".zencoder", "crush.json", "gptme.toml",
    "opencode.json", "opencode.jsonc",
)  # fmt: skip
_EDITORS: Final = (
    ".bsp", ".devcontainer", ".devcontainer.json", ".dir-locals-2.el", ".dir-locals.el", ".exrc",
    ".externaltoolbuilders", ".factorypath", ".fleet", ".gdbinit", ".gvimrc", ".helix", ".idea", ".kateproject",
    ".kateproject.build", ".lapce", ".lldbinit", ".lvimrc", ".merlin", ".neoconf.json", ".nova", ".nvim.lua",
    ".nvimrc", ".solargraph.yml", ".sourcekit-lsp", ".theia", ".vimrc", ".vscode", ".ycm_extra_conf.py",
    ".zed", "buildserver.json", "hie.yaml",
)  # fmt: skip
_HOOKS: Final = (
    ".envrc", ".githooks", ".husky", ".lazygit.yml", ".lefthook", ".lefthook.toml", ".lefthook.yaml",
    ".lefthook.yml", ".overcommit.yml", ".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook.toml",
    "lefthook.yaml", "lefthook.yml",
)  # fmt: skip
_TOOLS: Final = (
    ".autoenv", ".autoenv.leave", ".autoenv.zsh", ".autoenv_leave.zsh", ".bazeliskrc", ".bazelrc", ".byebugrc",
    ".erlang", ".ghci", ".iex.exs", ".irbrc", ".jdbrc", ".mise", ".mise.local.toml", ".mise.toml", ".mvn",
    ".npmrc", ".ocamlinit", ".pdbrc", ".pdbrc.py", ".perldb", ".pnpmfile.cjs", ".pryrc", ".psysh.php", ".rdbgrc",
    ".renviron", ".rprofile", ".rtx.toml", ".sdkmanrc", ".shadowenv.d", ".tool-versions", ".yarnrc", ".yarnrc.yml",
    "global.json", "jdb.ini", "mise.local.toml", "mise.toml", "rust-toolchain", "rust-toolchain.toml",
)  # fmt: skip

_OF_GITHUB: Final = frozenset({
    "agents", "copilot", "extensions", "hooks", "lsp.json", "mcp.json", "plugin", "plugin.json", "prompts",
    "skills",
})  # fmt: skip

NAMES: Final = frozenset({*_AGENTS, *_EDITORS, *_HOOKS, *_TOOLS})
"""Settings of this server and of other agents (servers, hooks, skills) and editors (tasks), hooks that are kept in
the project, and what package managers, shells, consoles and debuggers run wherever they are started."""

SUFFIXES: Final = (".code-workspace", ".sublime-project")

INSIDE: Final[Mapping[tuple[str, ...], frozenset[str]]] = {
    (".cargo",): frozenset({"config", "config.toml"}),
    (".config", "mise"): frozenset({"conf.d", "config.local.toml", "config.toml", "mise.toml", "tasks"}),
    (".github",): _OF_GITHUB,
    ("mise",): frozenset({"config.local.toml", "config.toml"}),
    (".vim",): frozenset({"coc-settings.json"}),
    (".vs",): frozenset({"launch.vs.json", "mcp.json", "tasks.vs.json"}),
    (".yarn",): frozenset({"plugins", "releases", "sdks"}),
    # Repositories of other version control systems than git.
    (".bzr", "branch"): frozenset({"branch.conf"}),
    (".hg",): frozenset({"hgrc", "hgrc-not-shared", "sharedpath"}),
    (".jj",): frozenset({"config.toml", "workspace-config.toml"}),
    (".jj", "repo"): frozenset({"config.toml"}),
    (".pijul",): frozenset({"config"}),
    (".sl",): frozenset({"config", "sharedpath"}),
    ("_darcs", "prefs"): frozenset({"defaults", "prefs"}),
}
"""The same in folders whose other contents are like any other."""

_OF_VERSIONS: Final[Mapping[str, tuple[bytes, ...]]] = {
    ".tool-versions": (b"path:", b"/", b"\0"),
    "global.json": (b"paths", b"\\", b"\0"),
    "rust-toolchain": (b"path", b"/", b"\\", b"\0"),
    "rust-toolchain.toml": (b"path", b"/", b"\\", b"\0"),
}
"""The files that choose the version of a tool, and what they contain if they may name a program to run instead."""

_DEPTHS: Final = tuple(sorted({len(folder) for folder in INSIDE}))


def obeyed_inside(folder: Sequence[str]) -> frozenset[str]:
    """Return the names in a folder that are in the table because of it. ``folder`` ends with its last two names."""
    return frozenset[str]().union(*(INSIDE.get(tuple(folder[-depth:]), ()) for depth in _DEPTHS))


def depth_of_holder(folder: Sequence[str]) -> int:
    """Return how many of the last names of a folder are one of :data:`INSIDE`; 0 for any other folder."""
    return max((depth for depth in _DEPTHS if tuple(folder[-depth:]) in INSIDE), default=0)


def is_obeyed(name: str, inside: Set[str] = frozenset()) -> bool:
    """Return whether ``name`` is in the table; ``inside`` are the names because of the folder."""
    return name in NAMES or name in inside or name.endswith(SUFFIXES)


def is_plain(path: str, data: bytes | None) -> bool:
    """Return whether a file in the table, with these contents, only chooses the version of a tool."""
    parts = _OF_VERSIONS.get(path.rpartition("/")[2])
    return parts is not None and data is not None and not any(part in data.lower() for part in parts)
