"""Determine the needs of a command line from its text, and ask for the permission to run it.

The needs matter for lines that somebody approves. A line that is not recognized has none: it runs in the sandbox,
and the model is told what was refused.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from jumpseat_protocol.permissions import CommandSegment, PossibleUrl, ShellCommand, ShellPermission

if TYPE_CHECKING:
    from jumpseat.agent.shell.syntax import ShellLine

_NPM: Final = ("registry.npmjs.org", "registry.yarnpkg.com")
_PYPI: Final = ("pypi.org", "files.pythonhosted.org")
_CRATES: Final = ("index.crates.io", "static.crates.io", "crates.io")
_GO: Final = ("proxy.golang.org", "sum.golang.org")
_MAVEN: Final = ("repo.maven.apache.org", "repo1.maven.org", "plugins.gradle.org", "services.gradle.org")
_RUBY: Final = ("rubygems.org", "index.rubygems.org")
_PHP: Final = ("repo.packagist.org", "packagist.org")
_NUGET: Final = ("api.nuget.org",)
_DENO: Final = ("deno.land", "jsr.io", "npm.jsr.io", *_NPM)
_HEX: Final = ("hex.pm", "repo.hex.pm", "builds.hex.pm")
_PUB: Final = ("pub.dev",)

_INSTALL: Final = frozenset({
    "install", "i", "ci", "add", "update", "up", "upgrade", "outdated", "view", "info", "show", "audit", "dlx", "x",
    "exec", "create", "init", "search", "fetch", "download", "wheel", "index", "list", "lock", "sync",
})  # fmt: skip
_PYTHON_PROJECT: Final = _INSTALL | {"run", "tool", "pip", "build", "python", "self", "remove", "export"}
_CARGO: Final = _INSTALL | {"build", "b", "check", "c", "test", "t", "run", "r", "bench", "clippy", "doc"}
_GO_COMMANDS: Final = frozenset({"build", "test", "run", "get", "mod", "install", "vet", "list", "generate"})
_DOTNET: Final = frozenset({"restore", "build", "test", "run", "add", "publish", "pack", "tool", "new", "list"})
_RUBY_COMMANDS: Final = _INSTALL | {"", "bundle", "pristine"}
_COMPOSER: Final = _INSTALL | {"require", "create-project", "remove", "dump-autoload"}

Installer: TypeAlias = tuple[frozenset[str] | None, tuple[str, ...]]

INSTALLERS: Final[dict[str, Installer]] = {
    **dict.fromkeys(("npm", "pnpm", "bun"), (_INSTALL, _NPM)),
    # Without a subcommand, yarn installs.
    "yarn": (_INSTALL | {""}, _NPM),
    **dict.fromkeys(("npx", "bunx", "pnpx", "yarnpkg"), (None, _NPM)),
    **dict.fromkeys(("pip", "pip3"), (_INSTALL, _PYPI)),
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "pipenv", "pipx"), (_PYTHON_PROJECT, _PYPI)),
    **dict.fromkeys(("uvx", "tox", "nox", "pip-compile", "pip-audit", "pre-commit"), (None, _PYPI)),
    "cargo": (_CARGO, _CRATES),
    "go": (_GO_COMMANDS, _GO),
    **dict.fromkeys(("mvn", "mvnw", "gradle", "gradlew", "sbt"), (None, _MAVEN)),
    **dict.fromkeys(("gem", "bundle", "bundler"), (_RUBY_COMMANDS, _RUBY)),
    "composer": (_COMPOSER, _PHP),
    "dotnet": (_DOTNET, _NUGET),
    "nuget": (None, _NUGET),
    "deno": (_INSTALL | {"run", "cache", "test", "check", "compile"}, _DENO),
    "mix": (frozenset({"deps.get", "deps.update", "local.hex", "archive.install", "hex.outdated"}), _HEX),
    **dict.fromkeys(("dart", "flutter"), (frozenset({"pub", "create", "run", "test", "build"}), _PUB)),
}
"""The public registries of package managers, by program: the subcommands that load from them (``None``: all).

Hosts that store anything for anybody, such as those of code and of objects, are left out: a person is asked."""

_SERVICE: Final = "it talks to a service of this system"
_CREDENTIALS: Final = "it needs credentials"
_RIGHTS: Final = "it needs other rights"
_SOCKETS: Final = "it does not use HTTP"
_SETTINGS: Final = "it changes settings that make git run programs"
_PROCESSES: Final = "it looks at processes outside"

_NAMES: Final[dict[str, tuple[str, ...]]] = {
    _SERVICE: (
        "docker", "docker-compose", "podman", "podman-compose", "nerdctl", "minikube", "kind", "vagrant",
        "systemctl", "journalctl", "loginctl", "flatpak", "snap", "crontab", "at", "open", "xdg-open",
        "wl-copy", "wl-paste", "xclip", "pbcopy", "pbpaste", "notify-send",
    ),
    _CREDENTIALS: (
        "gh", "glab", "hub", "kubectl", "helm", "aws", "gcloud", "gsutil", "az", "terraform", "tofu", "pulumi",
        "fly", "flyctl", "vercel", "netlify", "heroku", "wrangler", "twine", "gpg", "gpg2", "pass", "op",
        "ssh", "ssh-add", "ssh-keygen", "ssh-copy-id", "scp", "sftp", "mosh",
    ),
    _RIGHTS: ("sudo", "doas", "su", "pkexec", "apt", "apt-get", "dnf", "yum", "pacman", "brew"),
    _SOCKETS: (
        "ping", "dig", "nslookup", "host", "whois", "traceroute", "nc", "telnet", "psql", "pg_dump", "mysql",
        "mysqldump", "redis-cli", "mongosh",
    ),
    _PROCESSES: ("ps", "pgrep", "pkill", "killall", "pstree", "top", "lsof", "fuser", "ss", "netstat"),
}  # fmt: skip

OUTSIDE: Final = {name: reason for reason, names in _NAMES.items() for name in names}
"""The programs that cannot work in a sandbox, with the reason."""

_OUTSIDE_SUBCOMMANDS: Final[dict[str, frozenset[str]]] = {
    "git": frozenset({"push", "fetch", "pull", "ls-remote", "send-email"}),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), frozenset({"publish", "login", "logout", "whoami"})),
    "cargo": frozenset({"publish", "login", "owner", "yank"}),
    **dict.fromkeys(("poetry", "uv", "pdm", "hatch"), frozenset({"publish"})),
    "gem": frozenset({"push", "signin"}),
}
"""Subcommands that need credentials."""

_INSIDE_SUBCOMMANDS: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(("terraform", "tofu"), frozenset({"fmt", "validate", "version"})),
    "helm": frozenset({"lint"}),
}
"""Subcommands that need no credentials, unlike the others of the same program."""

_CONFIG_READS: Final = frozenset(
    {"get", "list", "--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l"}
)
_REMOTE_CHANGES: Final = frozenset({"add", "rename", "remove", "rm", "set-url", "set-head", "set-branches"})
_WRAPPERS: Final = frozenset({"env", "time", "timeout", "nohup", "command", "nice", "stdbuf", "exec", "builtin"})
_REMOTE: Final = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!//)\S*")
_WITH_VALUE: Final = frozenset({"-C", "-c", "--prefix", "--cwd", "--manifest-path", "--project", "--directory"})


class CommandNeeds(Struct, frozen=True):
    """The needs of a command line: ``hosts`` to reach, and the reason why it can only work ``outside``, if any."""

    hosts: tuple[str, ...] = ()
    outside: str | None = None


def command_needs(text: str) -> CommandNeeds:
    """Return the needs of a command line. Pure, and the same for the same text."""
    # Imported with the first command.
    from jumpseat.agent.shell.syntax import parse_shell

    line = parse_shell(text)
    commands = list(_commands(line))
    reasons = [reason for words in commands if (reason := _reason(words)) is not None]
    if line.certain and not _only_looks(line):
        # A line that starts a program and then ends it is about processes in the sandbox.
        reasons = [reason for reason in reasons if reason != _PROCESSES]
    hosts = [host for words in commands for host in _registries(words)]
    hosts += [host for address in line.addresses if (host := _host(address)) is not None]
    return CommandNeeds(tuple(dict.fromkeys(hosts)), reasons[0] if reasons else None)


def _only_looks(line: ShellLine) -> bool:
    """Return whether no command of the line starts anything that could be looked at or ended."""
    return all(
        segment.command.read_only or OUTSIDE.get(_name(segment.text.split(None, 1)[:1])) == _PROCESSES
        for segment in line.segments
    )


def _commands(line: ShellLine) -> Iterator[list[str]]:
    if line.certain:
        for segment in line.segments:
            try:
                words = shlex.split(segment.text)
            except ValueError:
                continue
            yield _unwrapped(words)
    else:
        # Assignments, loops and here-documents: the commands are known, but not which words belong to them.
        for command in line.possible_commands:
            words = [word or "" for word in command]
            if words and words[0] in INSTALLERS:
                yield words


def _unwrapped(words: list[str]) -> list[str]:
    """Return the command behind variables, and behind programs such as ``env`` and ``timeout``."""
    while words and (_name(words) in _WRAPPERS or re.match(r"\w+=", words[0])):
        words = words[1:]
        while words and re.match(r"-|\w+=|[\d.]+[smhd]?$", words[0]):
            words = words[1:]
    if len(words) > 2 and re.fullmatch(r"python[\d.]*", _name(words)) and words[1] == "-m":
        words = words[2:]
    return words


def _registries(words: Sequence[str]) -> tuple[str, ...]:
    subcommands, hosts = INSTALLERS.get(_name(words), (None, ()))
    return hosts if subcommands is None or _subcommand(words) in subcommands else ()


def _reason(words: Sequence[str]) -> str | None:
    name = _name(words)
    subcommand = _subcommand(words)
    if name == "git" and subcommand in ("config", "remote") and _changes_settings(words, subcommand):
        return _SETTINGS
    if name == "git" and subcommand in ("clone", "submodule", "remote", "lfs"):
        remote = subcommand == "lfs" or any(re.match(r"ssh://", word) or _REMOTE.fullmatch(word) for word in words)
        update = (subcommand, "update") in pairwise(words)
        return _CREDENTIALS if remote or update else None
    if name == "rsync":
        return _CREDENTIALS if any(_REMOTE.fullmatch(word) for word in words) else None
    if subcommand in _INSIDE_SUBCOMMANDS.get(name, ()):
        return None
    if subcommand in _OUTSIDE_SUBCOMMANDS.get(name, ()):
        return _CREDENTIALS
    return OUTSIDE.get(name)


def _changes_settings(words: Sequence[str], subcommand: str) -> bool:
    rest = words[words.index(subcommand) + 1 :]
    if subcommand == "remote":
        return any(word in _REMOTE_CHANGES for word in rest)
    # A name alone is looked up.
    looks_up = len(rest) == 1 and not rest[0].startswith("-")
    return not looks_up and not any(word in _CONFIG_READS for word in rest)


def _name(words: Sequence[str]) -> str:
    return words[0].rpartition("/")[2] if words else ""


def _subcommand(words: Sequence[str]) -> str:
    """Return the first word that is not an option, ``""`` if there is none."""
    skips = False
    for word in words[1:]:
        if skips:
            skips = False
        elif word in _WITH_VALUE:
            skips = True
        elif not word.startswith(("-", "+")):
            return word
    return ""


def _host(address: str) -> str | None:
    try:
        host = urlsplit(address).hostname
    except ValueError:
        return None
    # Any character that programs read differently makes the host uncertain; loopback is that of the sandbox.
    if not host or not re.fullmatch(r"[\w.-]+", host, re.ASCII) or host in ("localhost", "127.0.0.1"):
        return None
    return host.lower()


MAX_NAMED: Final = 6
"""Limit of the hooks that a question names."""

MAX_COMMAND_BYTES: Final = 128 * 1024 - 1
"""Largest argument of a program on Linux; longer commands cannot be run."""


class Placement(Struct, frozen=True):
    """The place where a command runs.

    ``confined``: whether it is in a sandbox; ``None`` if the sandbox is off. ``hosts`` are those that it reaches
    from there. ``leaves`` is the reason for running it outside of a sandbox that works; ``requested`` says that the
    model or the declaration of a tool gave that reason. A command that is not ``approved`` runs unasked.
    """

    confined: bool | None = None
    hosts: Sequence[str] = ()
    leaves: str | None = None
    requested: bool = False
    approved: bool = True


def place(
    command: str, *, confines: bool | None, may_leave: bool, unsandboxed: str | None = None, counts: bool = True
) -> Placement:
    """Return where a command runs, once it is approved.

    ``confines`` is whether the session confines commands, ``may_leave`` whether those that cannot work in a sandbox
    run outside. ``unsandboxed`` is a reason to run this command outside. A command is asked about as confined only
    if the sandbox ``counts``.
    """
    if not confines:
        # Without a sandbox, there is nothing to leave.
        return Placement(confines)
    if unsandboxed is not None:
        return Placement(False, leaves=unsandboxed, requested=True)
    needs = command_needs(command)
    if needs.outside is not None and may_leave:
        return Placement(False, leaves=needs.outside)
    return Placement(counts, needs.hosts)


def shell_permission(
    command: str, intention: str, placement: Placement | None = None, hooks: Sequence[str] = ()
) -> ShellPermission:
    """Return the request for ``command``, with the programs, paths and URLs that its text mentions.

    ``hooks`` are files that git runs as hooks of a command which leaves the sandbox.
    """
    placement = placement or Placement()
    # Imported with the first command.
    from jumpseat.agent.shell.syntax import parse_shell

    line = parse_shell(command)
    asks_to_leave = placement.requested and placement.leaves is not None
    return ShellPermission(
        full_command_text=command,
        intention=intention,
        commands=[
            ShellCommand(identifier=command.identifier, read_only=command.read_only) for command in line.commands
        ],
        possible_paths=list(line.possible_paths),
        possible_urls=[PossibleUrl(url=url) for url in line.possible_urls],
        has_write_file_redirection=line.has_write_file_redirection,
        can_offer_session_approval=line.can_offer_session_approval,
        command_segments=[
            CommandSegment(identifier=segment.command.identifier, full_command_text=segment.text)
            for segment in line.segments
        ]
        if len(line.segments) > 1
        else None,
        sandboxed=placement.confined,
        sandbox_hosts=list(placement.hosts) if placement.confined and placement.hosts else None,
        request_sandbox_bypass=asks_to_leave or None,
        request_sandbox_bypass_reason=placement.leaves if asks_to_leave else None,
        warning=_warning(placement, hooks),
    )


def _warning(placement: Placement, hooks: Sequence[str]) -> str | None:
    if placement.leaves is None:
        return None
    warning = f"The command is to run outside of the sandbox: {placement.leaves}"
    if not hooks:
        return warning
    # Imported with the first command that has some.
    from jumpseat.agent.shell.commands import HOOKS

    more = f" and {len(hooks) - MAX_NAMED} more" if len(hooks) > MAX_NAMED else ""
    return f"{warning}. {HOOKS}: {', '.join(hooks[:MAX_NAMED])}{more}"
