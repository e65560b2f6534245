"""Well-known paths: credentials, sockets of services, start files of the user, and caches of package managers."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

NEEDED: Final = frozenset({
    # Package managers, compilers and their versions.
    ".arduino15", ".asdf", ".asdfrc", ".bun", ".bundle", ".cabal", ".cache", ".cargo", ".ccache", ".cocoapods",
    ".conan", ".conan2", ".conda", ".condarc", ".coursier", ".cpan", ".cpanm", ".deno", ".dotnet", ".elan",
    ".flutter", ".fnm", ".fvm", ".gem", ".ghcup", ".goenv", ".gradle", ".gvm", ".ivy2", ".jabba", ".jbang", ".jenv",
    ".julia", ".juliaup", ".konan", ".lein", ".linuxbrew", ".local", ".luarocks", ".m2", ".mamba", ".micromamba",
    ".mise", ".mix", ".n", ".nix-channels", ".nix-defexpr", ".nix-profile", ".nodenv", ".node-gyp", ".npm",
    ".npm-global", ".npm-packages", ".nuget", ".nvm", ".nvs", ".opam", ".phpenv", ".pixi", ".platformio", ".plenv",
    ".pnpm-store", ".poetry", ".pub-cache", ".pyenv", ".rakubrew", ".rbenv", ".roswell", ".rustup", ".rvm", ".rye",
    ".sbt", ".sccache", ".sdkman", ".spack", ".stack", ".swiftly", ".swiftpm", ".texlive", ".tfenv", ".tgenv",
    ".virtualenvs", ".volta", ".wasmer", ".wasmtime", ".yarn", ".zig", ".zvm",
    # Settings of git, and of tools that choose a version or a style.
    ".bash_aliases", ".bash_profile", ".bashrc", ".clang-format", ".clang-tidy", ".config", ".default-gems",
    ".default-npm-packages", ".default-python-packages", ".editorconfig", ".gitattributes", ".gitconfig",
    ".gitignore", ".gitignore_global", ".gitmessage", ".inputrc", ".java-version", ".node-version", ".nvmrc",
    ".profile", ".python-version", ".ruby-version", ".rustfmt.toml", ".terminfo", ".tool-versions", ".zprofile",
    ".zshenv", ".zshrc",
})  # fmt: skip
"""The names with a dot in the home folder that tools need. Any other may hold secrets, and is hidden."""

NEEDED_IN: Final[Mapping[str, frozenset[str]]] = {
    ".cache": frozenset({
        "Cypress", "bazel", "coursier", "fontconfig", "huggingface", "ms-playwright", "nix", "pip", "pre-commit",
        "puppeteer", "pypoetry", "selenium", "torch", "uv",
    }),
    ".config": frozenset({
        "ccache", "dotnet", "fontconfig", "git", "go", "matplotlib", "mise", "nix", "nixpkgs", "pip", "pnpm",
        "pycodestyle", "ripgrep", "ruff", "rustfmt", "uv", "yapf",
    }),
    ".local/share": frozenset({
        "bash-completion", "coursier", "fnm", "fonts", "gem", "hatch", "man", "mise", "nvm", "pdm", "pipx", "pnpm",
        "pypoetry", "rtx", "rye", "swiftly", "uv", "virtualenv", "virtualenvs",
    }),
    ".local/state": frozenset({"mise", "nix"}),
}  # fmt: skip
"""Folders whose contents are hidden, too, except for these."""

CREDENTIALS: Final = (
    ".android/adbkey", ".bundle/config", ".cabal/config", ".cache/gh", ".cache/github-copilot",
    ".cache/google-vscode-extension", ".cache/huggingface/stored_tokens", ".cache/huggingface/token",
    ".cargo/credentials", ".cargo/credentials.toml", ".conan/.conan.db", ".conan2/.conan.db",
    ".conan2/credentials.json", ".config/mise/age.txt", ".config/nix/netrc", ".config/pnpm/auth.ini",
    ".config/pnpm/rc", ".dotnet/corefx", ".gem/credentials", ".gradle/gradle.properties", ".ivy2/.credentials",
    ".ivy2/credentials", ".julia/servers", ".lein/credentials.clj.gpg", ".local/share/gem/credentials",
    ".local/share/uv/credentials", ".luarocks/upload_config.lua", ".m2/settings-security.xml", ".m2/settings.xml",
    ".mix/hex.config", ".nuget/NuGet", ".platformio/appstate.json", ".pub-cache/credentials.json",
    ".sbt/.credentials", ".sbt/1.0/credentials.sbt", ".sbt/sonatype_credentials",
    ".stack/upload/credentials.json", ".swiftpm/configuration", ".wasmer/wasmer.toml", "Library/Keychains",
    *(f".cache/{name}" for name in (
        "BraveSoftware", "chromium", "google-chrome", "librewolf", "microsoft-edge", "mozilla", "opera",
        "thunderbird", "vivaldi",
    )),
)  # fmt: skip
"""Files and folders with secrets among those that tools need; those in ``.cache`` count where that is shared."""

SETTINGS: Final = (
    ".cargo/config", ".cargo/config.toml", ".condarc", ".config/go/env", ".config/mise/config.toml",
    ".config/nix/nix.conf", ".config/pip/pip.conf", ".config/uv/uv.toml", ".gradle/init.gradle",
    ".gradle/init.gradle.kts", ".lein/profiles.clj", ".sbt/1.0/global.sbt", ".sbt/repositories",
)  # fmt: skip
"""Settings that may name a package index, and are hidden if they have a login for it."""

OF_GIT: Final = (".gitconfig", ".config/git/config")
"""Settings of git, which are hidden if they have a login for a host."""

OF_SHELLS: Final = (
    ".bash_aliases", ".bash_profile", ".bashrc", ".profile", ".zprofile", ".zshenv", ".zshrc",
)  # fmt: skip
"""Start files of shells, which are hidden if they set a key or a token."""

NAMED_BY: Final = (
    "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AZURE_CONFIG_DIR", "CLOUDSDK_CONFIG", "CONTAINER_HOST",
    "DOCKER_CONFIG", "DOCKER_HOST", "GNUPGHOME", "GOOGLE_APPLICATION_CREDENTIALS", "KUBECONFIG", "NETRC",
    "NPM_CONFIG_USERCONFIG", "PGPASSFILE", "PODMAN_HOST", "SSH_AUTH_SOCK",
)  # fmt: skip
"""Variables that name sockets and credentials outside of their usual places."""

GIT_CREDENTIALS: Final = (".git-credentials", ".config/git/credentials")
GH_CREDENTIALS: Final = (".config/gh",)

OF_ROOT: Final = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-")
"""Files with passwords of all users, which commands of root could read."""

OTHERS: Final = (
    "snap/firefox", "snap/chromium", "Library/Application Support/Google/Chrome",
    "Library/Application Support/Firefox", "Library/Safari", "Library/Cookies",
)  # fmt: skip
"""Profiles of browsers, with cookies and passwords, in folders without a dot."""

_LOGIN: Final = r"//[^/\s@]+@|password|passwd|secret|token|credential"
_LOGIN_OF_GIT: Final = r"https?://[^/\s@\"]+@|authorization|(?:token|password)\s{0,9}="
_EXPORTED: Final = r"(?:key|token|secret|password|passwd|credential)\w{0,30}=|https?://[^/\s@]+@"
_SETTINGS_BYTES: Final = 64 * 1024

_OF_SECRETS: Final = tuple(
    dict.fromkeys(name.rpartition("/")[0] for name in (*CREDENTIALS, *SETTINGS) if "/" in name)
)
"""The folders of these."""

START_FILES: Final = (
    ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zprofile",
    ".zshenv", ".zlogin", ".inputrc", ".xprofile", ".xinitrc", ".gitconfig", ".vimrc", ".emacs", ".emacs.d",
    ".config", ".local/bin", "bin", ".local/share/applications", ".pam_environment", ".tmux.conf", ".screenrc",
    ".editorconfig", "Library/LaunchAgents",
)  # fmt: skip
"""Files of the home folder that programs of the user run or obey. In a session there, they are read-only, too."""

RUNTIME: Final = ("/run", "/var/run")
"""Folders with the sockets of the system's services."""

RESOLVER: Final = ("/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", "/run/connman")
"""Folders of the runtime folder that hold the addresses of name servers."""

_SHARED: Final = frozenset({"/", "/home", "/root", "/usr", "/etc", "/var", "/opt", "/tmp", "/var/tmp", "/Users"})  # noqa: S108


def hidden_paths(environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths outside of the home folder that commands must not read, and those that ``environ`` names."""
    yield from RUNTIME
    if is_root():
        yield from OF_ROOT
        keys = _names_in(Path("/etc/ssh"))
        yield from (f"/etc/ssh/{name}" for name in keys if name.startswith("ssh_host_") and name.endswith("_key"))
    for name in NAMED_BY:
        for path in environ.get(name, "").removeprefix("unix://").split(os.pathsep):
            if path.startswith("/"):
                yield path


def hidden_in_home(home: Path, *, git: bool, gh: bool) -> Iterator[str]:
    """Yield the paths of the home folder that commands must not read.

    With ``git`` or ``gh``, the credentials of that program are left out.
    """
    opened = {*(GIT_CREDENTIALS if git else ()), *(GH_CREDENTIALS if gh else ())}
    existing = _names_in(home)
    for name in sorted(existing):
        if name[0] == "." and name not in NEEDED and name not in opened:
            path = f"{home}/{name}"
            # A link may lead to a folder around the home folder.
            if not (os.path.islink(path) and home.is_relative_to(os.path.realpath(path))):
                yield path
    # Most well-known paths do not exist, and looking for each would take longer than the rest of the preparation.
    names = [*NEEDED_IN, *CREDENTIALS, *OTHERS, *GIT_CREDENTIALS]
    yield from (path for path in _below(home, names, existing) if path.removeprefix(f"{home}/") not in opened)
    yield from filter(has_login, _below(home, SETTINGS, existing))
    yield from filter(_has_login_of_git, () if git else _below(home, OF_GIT, existing))
    yield from filter(_exports_secret, _below(home, OF_SHELLS, existing))


def _below(home: Path, names: Iterable[str], existing: Container[str]) -> list[str]:
    """Return the paths below ``home`` whose first name is among those that exist there."""
    return [f"{home}/{name}" for name in names if name.partition("/")[0] in existing]


def needed_paths(home: Path, *, gh: bool) -> Iterator[str]:
    """Yield the contents of hidden folders that tools need; with ``gh``, its credentials, too."""
    for folder, names in NEEDED_IN.items():
        yield from (f"{home}/{folder}/{name}" for name in sorted(_names_in(home / folder) & names))
    if gh:
        yield from (f"{home}/{name}" for name in GH_CREDENTIALS)


def is_secret(path: str, home: Path, *, git: bool, gh: bool) -> bool:
    """Return whether :func:`hidden_in_home` would yield a path for its name, if it existed."""
    name = path.removeprefix(f"{home}/")
    if name == path or (git and name in GIT_CREDENTIALS) or (gh and name in GH_CREDENTIALS):
        return False
    folder, _, last = name.rpartition("/")
    if not folder:
        return last[0] == "." and last not in NEEDED
    if folder in NEEDED_IN:
        return last not in NEEDED_IN[folder]
    return name in CREDENTIALS or name in OTHERS or name in GIT_CREDENTIALS


def folders_of_secrets(home: Path) -> Iterator[str]:
    """Yield the folders of the home folder in which tools that commands need may put a login at any time."""
    existing = _names_in(home)
    paths = _below(home, _OF_SECRETS, existing)
    yield from (path for path in paths if os.path.isdir(path) and os.path.realpath(path) == path)


def has_login(path: str) -> bool:
    """Return whether a file of settings exists and has a login, or is too large to tell."""
    text = _settings_in(path)
    return text is None or re.search(_LOGIN, text, re.IGNORECASE) is not None


def _has_login_of_git(path: str) -> bool:
    text = _settings_in(path)
    return text is None or re.search(_LOGIN_OF_GIT, text, re.IGNORECASE) is not None


def _exports_secret(path: str) -> bool:
    text = _settings_in(path)
    return text is None or re.search(_EXPORTED, text, re.IGNORECASE) is not None


def _settings_in(path: str) -> str | None:
    """Return the text of a file, empty if there is none; ``None`` if it cannot be read, or is too large."""
    try:
        with open(path, "rb") as file:
            data = file.read(_SETTINGS_BYTES + 1)
    except FileNotFoundError:
        return ""
    except OSError:
        return None
    return data.decode("utf-8", "replace") if len(data) <= _SETTINGS_BYTES else None


def socket_files() -> list[str]:
    """Return the paths of the sockets that programs of this machine have bound to files.

    The system does not know the folder of a relative path: it is looked for in the working directories of all
    programs and in the folders around these. A program that binds one and then goes elsewhere is not found.
    """
    try:
        with open("/proc/net/unix", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
            names = _SOCKET_NAME.findall(file.read())
    except OSError:
        return []
    # An abstract name begins with @.
    relative = {name for name in names if name[0] not in "/@"}
    found = [name for name in names if name[0] == "/"]
    for folder in _working_folders() if relative else ():
        found += filter(_is_socket, (os.path.join(folder, name) for name in relative))
    return found


def _working_folders() -> set[str]:
    """Return the working directories of all programs that this process may ask, and the folders around these."""
    found: set[str] = set()
    for process in filter(str.isdecimal, _names_in(Path("/proc"))):
        with suppress(OSError):
            folder = os.readlink(f"/proc/{process}/cwd")
            while folder not in found:
                found.add(folder)
                folder = os.path.dirname(folder)
    return found


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False


_SOCKET_NAME: Final = re.compile(
    r"^[0-9A-F]+: (?:[0-9A-F]+ +){5}[0-9]+ +(.+(?:\n(?![0-9A-F]+: ).*)*)", re.MULTILINE | re.I
)
"""The last column of the list of sockets; a name may have line ends."""


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


def program_folders(program: str, environ: Mapping[str, str], home: Path, roots: Collection[Path]) -> Iterator[str]:
    """Yield the folders that ``program`` and those of ``PATH`` need; of a Python environment, all of it.

    Of a hidden folder of the home folder, only the programs are shown: it may have credentials, too. Folders that
    commands may change, ``roots``, are not among them, only those in them.
    """
    for folder in (os.path.dirname(program), *environ.get("PATH", "").split(os.pathsep)):
        if folder.startswith("/"):
            above, name = os.path.split(folder.rstrip("/"))
            parent, own_name = os.path.split(above)
            is_hidden = parent == str(home) and own_name[:1] == "." and own_name not in NEEDED
            whole = name in ("bin", "sbin", ".bin") and above.count("/") > 1
            yield above if whole and not is_hidden and not _holds(above, roots) else folder


def _holds(folder: str, roots: Collection[Path]) -> bool:
    return any(root.is_relative_to(os.path.realpath(folder)) for root in roots)


def cache_variables(folder: Path, environ: Mapping[str, str], home: Path) -> dict[str, str]:
    """Return the variables that make package managers keep their caches in ``folder``.

    Go, Gradle and Maven read what the user's own caches already have. Cargo's settings in ``folder`` are those of
    the user (:func:`link_settings`).
    """
    modules = environ.get("GOMODCACHE") or f"{environ.get('GOPATH', '').partition(':')[0] or home / 'go'}/pkg/mod"
    downloads = f"{modules}/cache/download"
    proxy = environ.get("GOPROXY") or "https://proxy.golang.org,direct"
    # Maven 3.9 and later read the second folder, and never write to it.
    maven = f"-Dmaven.repo.local={folder}/m2 -Dmaven.repo.local.tail={home}/.m2/repository"
    # Not a cache: with another folder, a project would lose its installed packages.
    environments = f"{environ.get('XDG_CACHE_HOME') or f'{home}/.cache'}/pypoetry/virtualenvs"
    kept = {"POETRY_VIRTUALENVS_PATH": environments} if os.path.isdir(environments) else dict[str, str]()
    return {
        **kept,
        "XDG_CACHE_HOME": f"{folder}/xdg",
        "PIP_CACHE_DIR": f"{folder}/pip",
        "UV_CACHE_DIR": f"{folder}/uv",
        "POETRY_CACHE_DIR": f"{folder}/poetry",
        "PRE_COMMIT_HOME": f"{folder}/pre-commit",
        "npm_config_cache": f"{folder}/npm",
        "YARN_CACHE_FOLDER": f"{folder}/yarn",
        "YARN_GLOBAL_FOLDER": f"{folder}/yarn-berry",
        "PNPM_HOME": f"{folder}/pnpm",
        "CARGO_HOME": f"{folder}/cargo",
        "MAVEN_OPTS": " ".join(filter(None, (environ.get("MAVEN_OPTS"), maven))),
        "BUN_INSTALL_CACHE_DIR": f"{folder}/bun",
        "DENO_DIR": f"{folder}/deno",
        # The checksums of modules are kept there.
        "GOPATH": f"{folder}/go",
        "GOCACHE": f"{folder}/go-build",
        "GOMODCACHE": f"{folder}/go-modules",
        "GOFLAGS": " ".join(filter(None, (environ.get("GOFLAGS"), "-modcacherw"))),
        "GOPROXY": f"file://{downloads},{proxy}" if os.path.isdir(downloads) else proxy,
        "GRADLE_USER_HOME": f"{folder}/gradle",
        "GRADLE_RO_DEP_CACHE": f"{home}/.gradle/caches",
        "COMPOSER_CACHE_DIR": f"{folder}/composer",
        "NUGET_PACKAGES": f"{folder}/nuget",
        "CCACHE_DIR": f"{folder}/ccache",
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
