"""The files and folders of a project that make other programs run something, in lower case.

Approvals never cover writing to them, and confined commands cannot change them, at any depth. No other table has
them, apart from git folders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Final

_AGENTS: Final = (
    ".agents", ".aider.conf.yml", ".amazonq", ".amp", ".antigravity", ".augment", ".claude", ".claude-plugin",
    ".cline", ".clinerules", ".codebuddy", ".codeium", ".codex", ".cody", ".continue", ".continuerc.json", ".crush",
    ".crush.json", ".cursor", ".factory", ".firebender", ".forge", ".gemini", ".goose", ".iflow", ".jumpseat",
    ".junie", ".kilocode", ".kilocodemodes", ".kiro", ".lingma", ".mcp.json", ".opencode", ".openhands", ".qoder",
    ".qwen", ".roo", ".roomodes", ".rovodev", ".tabnine", ".trae", ".vibe", ".void", ".warp", ".windsurf",
    ".zencoder", "crush.json", "opencode.json", "opencode.jsonc",
)  # fmt: skip
_EDITORS: Final = (
    ".devcontainer", ".devcontainer.json", ".dir-locals-2.el", ".dir-locals.el", ".exrc", ".externaltoolbuilders",
    ".fleet", ".gdbinit", ".gvimrc", ".helix", ".idea", ".kateproject", ".kateproject.build", ".lapce", ".lldbinit",
    ".lvimrc", ".neoconf.json", ".nova", ".nvim.lua", ".nvimrc", ".theia", ".vimrc", ".vscode",
    ".ycm_extra_conf.py", ".zed",
)  # fmt: skip
_HOOKS: Final = (
    ".envrc", ".githooks", ".husky", ".lefthook", ".lefthook.toml", ".lefthook.yaml", ".lefthook.yml",
    ".overcommit.yml", ".pre-commit-config.yaml", ".pre-commit-config.yml", "lefthook.toml", "lefthook.yaml",
    "lefthook.yml",
)  # fmt: skip
_TOOLS: Final = (
    ".autoenv", ".autoenv.leave", ".bazelrc", ".ghci", ".irbrc", ".mise", ".mise.local.toml", ".mise.toml", ".mvn",
    ".npmrc", ".ocamlinit", ".pdbrc", ".pnpmfile.cjs", ".pryrc", ".rprofile", ".yarnrc", ".yarnrc.yml",
    "mise.local.toml", "mise.toml",
)  # fmt: skip

NAMES: Final = frozenset({*_AGENTS, *_EDITORS, *_HOOKS, *_TOOLS})
"""Settings of this server and of other agents (servers, hooks, skills) and editors (tasks), hooks that are kept in
the project, and what package managers, shells, consoles and debuggers run wherever they are started."""

SUFFIXES: Final = (".code-workspace", ".sublime-project")

INSIDE: Final[Mapping[tuple[str, ...], frozenset[str]]] = {
    (".cargo",): frozenset({"config", "config.toml"}),
    (".github",): frozenset({"agents", "hooks", "mcp.json", "plugin", "plugin.json", "prompts", "skills"}),
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
