"""What is known of programs: which only read, which run others, and which options make one into something else.

An approval remembers a command by its identifier: ``ls``, ``git status``. A command that its identifier would not
do justice to, because an option makes it write or run something, because it runs whatever it is told, or because it
cannot be read plainly, has its own whole text as identifier, which no other command matches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """``identifier`` is what an approval remembers: ``ls``, ``git status``, or a whole text where not ``clear``."""

    identifier: str
    read_only: bool
    clear: bool = field(default=True, compare=False)


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command. ``text`` has its quotes removed; ``fixed`` says that the shell will use just that.

    A word that is not fixed may be a ``glob``: a pattern for names of files, and nothing else.
    """

    text: str
    fixed: bool = True
    glob: bool = False


def unclear(text: str) -> ParsedCommand:
    """What only the same text is."""
    return ParsedCommand(text, read_only=False, clear=False)


def judge(text: str, words: Sequence[Word]) -> ParsedCommand:
    """What the command ``text`` with these words is to be remembered as."""
    if not words:
        return unclear(text)
    name, *arguments = words
    # An assignment (PATH=, LD_PRELOAD=) is not plain, so it makes another command of what follows.
    if not name.fixed or not _PLAIN.match(name.text) or _runs_others(name.text):
        return unclear(text)
    identifier = name.text
    while identifier in _WITH_SUBCOMMAND:
        # An option here (git -c ...) may change everything that follows.
        if not arguments or not arguments[0].fixed or not _SUBCOMMAND.match(arguments[0].text):
            return unclear(text)
        identifier = f"{identifier} {arguments.pop(0).text}"
        if _runs_others(identifier):
            return unclear(text)
    options = (*_ACTING.get(name.text, ()), *_ACTING.get(identifier, ()), *_READ_ONLY.get(identifier, ()))
    # An approval of the plain command must not cover this use of it.
    if options and any(not word.fixed or _may_be(word.text, options) for word in arguments):
        return unclear(text)
    return ParsedCommand(identifier, read_only=identifier in _READ_ONLY)


def runs_others(words: Sequence[str]) -> bool:
    """Whether a command runs what its own words say, so that each of them may be a command."""
    name = words[0].rpartition("/")[2] if words else ""
    return _runs_others(name) or any(_runs_others(f"{name} {word}") for word in words[1:3]) or name in _ACTING


def takes_no_paths(words: Sequence[str]) -> bool:
    """Whether the words of a command are never opened as files."""
    return bool(words) and words[0] in _TAKES_NO_PATHS


def loads_urls(words: Sequence[str]) -> bool:
    """Whether any word of a command may be an address, also without a scheme."""
    return bool(words) and words[0].rpartition("/")[2] in _LOADS_URLS


def _runs_others(name: str) -> bool:
    program = name.rpartition("/")[2]
    return program in _RUNS_OTHERS or _INTERPRETERS.match(program) is not None


def _may_be(word: str, options: tuple[str, ...]) -> bool:
    """Whether ``word`` may be one of ``options``: abbreviated, with a value, or among joined short options."""
    for option in options:
        if option == "=":
            if "=" in word and not word.startswith("-"):
                return True
        elif option.startswith("--"):
            given = word.partition("=")[0]
            if len(given) > 2 and given.startswith("--") and (option.startswith(given) or given.startswith(option)):
                return True
        elif word.startswith(option) or (len(option) == 2 and re.match(r"-[^-]", word) and option[1] in word):
            return True
    return False


_PLAIN: Final = re.compile(r"[A-Za-z0-9_./+:@-]+\Z")
_SUBCOMMAND: Final = re.compile(r"[a-z0-9][\w:.-]*\Z", re.ASCII)

_GIT_OUTPUT: Final = ("--output", "--ext-diff", "--textconv")
_READ_ONLY: Final[Mapping[str, tuple[str, ...]]] = {
    # Commands that only read, each with the options that make it write or run something.
    "basename": (), "cat": (), "cd": (), "cmp": (), "comm": (), "cut": (), "diff": (), "dirname": (), "du": (),
    "df": (), "echo": (), "false": (), "fold": (), "grep": (), "egrep": (), "fgrep": (), "head": (), "id": (),
    "jq": (), "ls": (), "md5sum": (), "nl": (), "od": (), "paste": (), "printenv": (), "printf": ("-v",), "ps": (),
    "pwd": (), "readlink": (), "realpath": (), "rev": (), "sha1sum": (), "sha256sum": (), "sleep": (),
    "stat": (), "tac": (), "tail": (), "tr": (), "true": (), "type": (), "uname": (), "wc": (), "which": (),
    "whoami": (),
    "find": ("-exec", "-ok", "-delete", "-fprint", "-fls"),
    "rg": ("--pre", "--hostname-bin", "-z", "--search-zip"),
    "sort": ("-o", "--output", "--compress-program", "-T", "--temporary-directory"),
    "tree": ("-o",),
    "git status": (), "git rev-parse": (), "git ls-files": (), "git ls-tree": (), "git describe": (),
    "git log": _GIT_OUTPUT, "git diff": _GIT_OUTPUT, "git show": _GIT_OUTPUT,
    "git blame": ("--textconv",), "git shortlog": ("--output",),
}  # fmt: skip

_ACTING: Final[Mapping[str, tuple[str, ...]]] = {
    # Commands that do something, each with the options that make it run or write something quite different.
    "cargo": ("--config", "-Z"),
    "curl": ("-K", "--config", "-o", "--output", "-O", "--remote-name", "-T", "--upload-file", "-c", "--cookie-jar",
             "-x", "--proxy", "--preproxy", "--socks4", "--socks5", "--resolve", "--connect-to", "--url",
             "--doh-url",
             "-D", "--dump-header", "--libcurl", "--trace", "--stderr", "--etag-save", "--hsts", "--alt-svc"),
    "git archive": ("--exec", "-o", "--output", "--remote"),
    "git clone": ("-c", "--config", "-u", "--upload-pack", "--template"),
    "git fetch": ("--upload-pack",),
    "git format-patch": _GIT_OUTPUT,
    "git grep": ("-O", "--open-files-in-pager", "--ext-grep", "--textconv"),
    "git init": ("--template",),
    "git ls-remote": ("--upload-pack", "--exec"),
    "git pull": ("--upload-pack",),
    "git push": ("--receive-pack", "--exec"),
    "git rebase": ("-x", "--exec", "-i", "--interactive"),
    "git commit": ("--template", "-t"),
    "go": ("-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool", "-overlay", "--overlay"),
    "make": ("-f", "--file", "--makefile", "-C", "--directory", "-I", "--include-dir", "--eval", "-E", "="),
    "npm": ("--script-shell", "--prefix", "--userconfig", "--globalconfig", "--node-options", "-C"),
    "pip": ("--python", "--global-option", "--config-settings"),
    "pytest": ("-p", "-c", "--rootdir", "--confcutdir", "-o", "--override-ini", "--pdbcls", "--debug"),
    "tar": ("-I", "--use-compress-program", "--to-command", "--checkpoint-action", "-F", "--info-script",
            "--new-volume-script", "--rsh-command", "--rmt-command", "--absolute-names", "-P"),
    "wget": ("-e", "--execute", "--use-askpass", "--config", "-O", "--output-document", "-o", "--output-file",
             "-a", "--append-output", "-P", "--directory-prefix", "-i", "--input-file"),
    "zip": ("-T", "--test", "-TT", "--unzip-command"),
}  # fmt: skip

_WITH_SUBCOMMAND: Final = frozenset({
    # What is done depends on the next word, which belongs to the identifier.
    "apt", "apt-get", "brew", "bun", "bundle", "cargo", "composer", "deno", "docker", "docker compose", "dotnet",
    "gem", "gh", "gh issue", "gh pr", "gh release", "gh repo", "gh run", "gh workflow", "git", "go", "gradle",
    "helm", "just", "kubectl", "make", "mvn", "npm", "npm run", "pip", "pip3", "pnpm", "pnpm run", "poetry",
    "rustup", "systemctl", "terraform", "uv", "yarn", "yarn run", "bun run", "deno task",
})  # fmt: skip

_RUNS_OTHERS: Final = frozenset({
    # An approval of one of these would cover whatever it is told to run, or change what other commands mean.
    ".", "[", "ack", "alias", "ansible", "at", "bash", "batch", "bind", "builtin", "bun x", "bundle exec",
    "busybox",
    "chroot", "chrt", "command", "complete", "coproc", "crontab", "csh", "dash", "declare", "deno eval", "deno run",
    "doas", "docker compose exec", "docker compose run", "docker exec", "docker run", "ed", "emacs", "enable",
    "entr", "env", "eval", "ex", "exec", "expect", "export", "fakeroot", "find2perl", "firejail", "fish", "flock",
    "gdb", "gh alias", "gh extension", "git bisect", "git config", "git daemon", "git difftool",
    "git filter-branch", "git mergetool", "git send-email", "git submodule", "go generate", "go run", "hash",
    "ionice", "kubectl exec", "ksh", "less", "let", "linux32", "linux64", "local", "ltrace", "make -C", "man",
    "mapfile", "mksh", "more", "nano", "nc", "ncat", "netcat", "nice", "nohup", "npm exec", "npm explore", "npx",
    "nsenter", "numactl", "nvim", "parallel", "perf", "pkexec", "pnpm dlx", "pnpm exec", "poetry run", "popd",
    "proot", "pushd", "rbash", "read", "readarray", "readonly", "rlwrap", "rsync", "run-parts", "runuser", "scp",
    "screen", "script", "set", "setarch", "setpriv", "setsid", "sftp", "sg", "sh", "shopt", "socat", "source",
    "ssh", "start-stop-daemon", "stdbuf", "strace", "su", "sudo", "systemd-run", "taskset", "tcsh", "test", "time",
    "timeout", "tmux", "toybox", "trap", "typeset", "unbuffer", "unset", "unshare", "uv run", "uv tool", "uvx",
    "vi", "view", "vim", "watch", "xargs", "xdg-open", "yarn dlx", "yarn exec", "zsh",
})  # fmt: skip

_INTERPRETERS: Final = re.compile(
    r"(?:awk|gawk|mawk|nawk|original-awk|node|nodejs|perl[\d.]*|php[\d.]*|pwsh|powershell|python[\d.]*|pypy[\d.]*"
    r"|ruby[\d.]*|sed|gsed|lua[\d.]*|luajit|osascript|tclsh[\d.]*|wish|Rscript|ghci|irb|ld\.so|ld-[\w.-]*)\Z"
)

_TAKES_NO_PATHS: Final = frozenset({
    "basename", "dirname", "echo", "false", "id", "printf", "ps", "pwd", "sleep", "tr", "true", "type", "uname",
    "which", "whoami", "printenv",
})  # fmt: skip

_LOADS_URLS: Final = frozenset({"aria2c", "curl", "http", "https", "lynx", "w3m", "wget", "xh"})
