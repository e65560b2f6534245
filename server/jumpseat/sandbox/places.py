"""Well-known paths: credentials, sockets of services, files that programs obey, and caches of package managers."""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

CREDENTIALS: Final = (
    ".ssh", ".aws", ".azure", ".gnupg", ".kube", ".docker/config.json", ".netrc", ".pypirc", ".npmrc",
    ".yarnrc.yml", ".config/gcloud", ".config/op", ".config/sops", ".config/rclone", ".config/github-copilot",
    ".config/hub", ".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml",
    ".m2/settings-security.xml", ".gradle/gradle.properties", ".terraform.d", ".vault-token", ".databrickscfg",
    ".boto", ".s3cfg", ".pgpass", ".my.cnf", ".password-store", ".local/share/keyrings", ".local/share/kwalletd",
    ".local/share/kwallet", ".config/keepassxc", ".config/1Password", ".config/Bitwarden", "Library/Keychains",
    ".codex/auth.json", ".claude.json", ".claude/.credentials.json", ".gemini", ".copilot",
)  # fmt: skip
"""Files and folders of the home folder."""

GIT_CREDENTIALS: Final = (".git-credentials", ".config/git/credentials")
GH_CREDENTIALS: Final = (".config/gh",)

OF_ROOT: Final = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-")
"""Files with passwords of all users, which commands of root could read."""

BROWSERS: Final = (
    ".mozilla", ".librewolf", ".thunderbird", ".config/google-chrome", ".config/google-chrome-beta",
    ".config/chromium", ".config/BraveSoftware", ".config/microsoft-edge", ".config/opera", ".config/vivaldi",
    "snap/firefox", "snap/chromium", "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox", "Library/Safari", "Library/Cookies",
)  # fmt: skip
"""Profiles of browsers, with cookies and passwords."""

SOCKETS: Final = (".docker/run", ".docker/desktop", ".colima", ".rd", ".lima", ".orbstack/run")
"""Folders of the home folder with sockets of programs that run with more rights or in a virtual machine."""

START_FILES: Final = (
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zprofile",
    ".zshenv", ".zlogin", ".inputrc", ".xprofile", ".xinitrc", ".gitconfig", ".vimrc", ".emacs", ".emacs.d",
    ".config", ".local/bin", "bin", ".local/share/applications", ".pam_environment", ".tmux.conf", ".screenrc",
    ".editorconfig", "Library/LaunchAgents",
)  # fmt: skip
"""Files of the home folder that programs of the user run or obey. In a session there, they are read-only, too."""

_AGENTS: Final = (
    ".agents", ".aider.conf.yml", ".claude", ".claude-plugin", ".codex", ".cursor", ".gemini", ".jumpseat", ".kiro",
    ".mcp.json", ".opencode", "opencode.json", ".qwen", ".roo", ".windsurf",
)  # fmt: skip
_EDITORS: Final = (
    ".devcontainer", ".devcontainer.json", ".dir-locals.el", ".exrc", ".fleet", ".idea", ".lvimrc", ".nvim.lua",
    ".nvimrc", ".vscode", ".zed",
)  # fmt: skip
CONFIGURATION: Final = frozenset({*_AGENTS, *_EDITORS})
"""Files and folders of a project that configure this server, other agents (servers, hooks, skills) or editors
(tasks, settings), at any depth, in lower case."""

CONFIGURATION_SUFFIXES: Final = (".code-workspace",)

CONFIGURATION_IN_GITHUB: Final = frozenset({"agents", "hooks", "mcp.json", "plugin", "plugin.json", "skills"})
"""The same, in a folder ``.github``, the rest of which is like any other."""

RUNTIME: Final = ("/run", "/var/run")
"""Folders with the sockets of the system's services."""

RESOLVER: Final = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/run/connman")
"""Folders of the runtime folder that hold the addresses of name servers."""

_SHARED: Final = frozenset({"/", "/home", "/root", "/usr", "/etc", "/var", "/opt", "/tmp", "/var/tmp", "/Users"})  # noqa: S108


def hidden_paths(home: Path, environ: Mapping[str, str], *, git: bool, gh: bool) -> Iterator[str | Path]:
    """Yield the paths that commands must not read; with ``git`` or ``gh``, not the credentials of that program."""
    yield from RUNTIME
    if is_root():
        yield from OF_ROOT
        keys = _names_in(Path("/etc/ssh"))
        yield from (f"/etc/ssh/{name}" for name in keys if name.startswith("ssh_host_") and name.endswith("_key"))
    names = [*CREDENTIALS, *BROWSERS, *SOCKETS]
    names += [] if git else GIT_CREDENTIALS
    names += [] if gh else GH_CREDENTIALS
    # Most of these paths do not exist, and looking for each would take longer than the rest of the preparation.
    existing = _names_in(home)
    # Strings, because paths take several times as long to build.
    yield from (f"{home}/{name}" for name in names if name.partition("/")[0] in existing)
    for name in ("SSH_AUTH_SOCK", "DOCKER_HOST", "CONTAINER_HOST", "PODMAN_HOST"):
        path = environ.get(name, "").removeprefix("unix://")
        if path.startswith("/"):
            yield path


def is_root() -> bool:
    """Return whether this process, and with it each command, runs as root."""
    if sys.platform == "win32":
        return False
    return os.geteuid() == 0


def _names_in(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()


def may_be_writable(folder: Path, home: Path) -> bool:
    """Return whether a session may make ``folder`` writable: not a folder of the system, nor one of all users."""
    return folder == home or not (str(folder) in _SHARED or home.is_relative_to(folder))


def program_folders(program: str, environ: Mapping[str, str], roots: Collection[Path]) -> Iterator[str]:
    """Yield the folders that ``program`` and those of ``PATH`` need; of a Python environment, all of it.

    Folders that commands may change, ``roots``, are not among them, only those in them.
    """
    for folder in (os.path.dirname(program), *environ.get("PATH", "").split(os.pathsep)):
        if folder.startswith("/"):
            above, name = os.path.split(folder.rstrip("/"))
            whole = name in ("bin", "sbin", ".bin") and above.count("/") > 1 and not _holds(above, roots)
            yield above if whole else folder


def _holds(folder: str, roots: Collection[Path]) -> bool:
    return any(root.is_relative_to(os.path.realpath(folder)) for root in roots)


def cache_variables(folder: Path, environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the variables that make package managers keep their caches in ``folder``.

    Go, Gradle and Maven read what the user's own caches already have. Cargo's settings in ``folder`` are those of
    the user (:func:`link_settings`).
    """
    modules = environ.get("GOMODCACHE") or f"{environ.get('GOPATH', '').partition(':')[0] or home / 'go'}/pkg/mod"
    downloads = Path(modules, "cache", "download")
    proxy = environ.get("GOPROXY") or "https://proxy.golang.org,direct"
    # Maven 3.9 and later read the second folder, and never write to it.
    maven = f"-Dmaven.repo.local={folder}/m2 -Dmaven.repo.local.tail={home}/.m2/repository"
    # Not a cache: with another folder, a project would lose its installed packages.
    environments = Path(environ.get("XDG_CACHE_HOME") or home / ".cache", "pypoetry", "virtualenvs")
    kept = {"POETRY_VIRTUALENVS_PATH": str(environments)} if environments.is_dir() else dict[str, str]()
    return {
        **kept,
        "XDG_CACHE_HOME": str(folder / "xdg"),
        "PIP_CACHE_DIR": str(folder / "pip"),
        "UV_CACHE_DIR": str(folder / "uv"),
        "POETRY_CACHE_DIR": str(folder / "poetry"),
        "PRE_COMMIT_HOME": str(folder / "pre-commit"),
        "npm_config_cache": str(folder / "npm"),
        "YARN_CACHE_FOLDER": str(folder / "yarn"),
        "YARN_GLOBAL_FOLDER": str(folder / "yarn-berry"),
        "PNPM_HOME": str(folder / "pnpm"),
        "CARGO_HOME": str(folder / "cargo"),
        "MAVEN_OPTS": " ".join(filter(None, (environ.get("MAVEN_OPTS"), maven))),
        "BUN_INSTALL_CACHE_DIR": str(folder / "bun"),
        "DENO_DIR": str(folder / "deno"),
        # The checksums of modules are kept there.
        "GOPATH": str(folder / "go"),
        "GOCACHE": str(folder / "go-build"),
        "GOMODCACHE": str(folder / "go-modules"),
        "GOFLAGS": " ".join(filter(None, (environ.get("GOFLAGS"), "-modcacherw"))),
        "GOPROXY": f"file://{downloads},{proxy}" if downloads.is_dir() else proxy,
        "GRADLE_USER_HOME": str(folder / "gradle"),
        "GRADLE_RO_DEP_CACHE": str(home / ".gradle" / "caches"),
        "COMPOSER_CACHE_DIR": str(folder / "composer"),
        "NUGET_PACKAGES": str(folder / "nuget"),
        "CCACHE_DIR": str(folder / "ccache"),
    }


def link_settings(folder: Path, environ: Mapping[str, str], home: Path) -> None:
    """Link the settings of package managers into ``folder``: they look for settings beside their caches.

    Raises:
        OSError: a link cannot be made.
    """
    # Imported with the first command.
    from jumpseat.system.nofollow import LinkInPathError, open_folder

    cargo = Path(environ.get("CARGO_HOME") or home / ".cargo")
    # Commands may write to the folder; a link that they put there is not followed.
    with suppress(LinkInPathError), open_folder(folder / "cargo", make=0o700) as descriptor:
        for name in ("config.toml", "config"):
            if (cargo / name).exists():
                with suppress(FileExistsError):
                    os.symlink(cargo / name, name, dir_fd=descriptor)


def shared_caches(home: Path) -> Iterator[Path]:
    """Yield the folders in which package managers keep their caches for all projects of the user."""
    names = (".cache", ".npm", ".cargo/registry", ".cargo/git", "go/pkg", ".gradle/caches", ".m2/repository")
    yield from (home / name for name in (*names, ".local/share/pnpm", ".yarn", ".nuget/packages", "Library/Caches"))
