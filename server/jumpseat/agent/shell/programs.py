"""Tables of programs that run other commands, open more files, or load from other machines. Data only.

Rules that forbid are matched with them. Approvals depend on the tables in :mod:`jumpseat.agent.shell.harmless`
instead, and on the tables here of programs whose words are judged as paths or addresses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

GIT_SUBCOMMANDS: Final = frozenset({
    # All other subcommands may be aliases, which run anything.
    "add", "am", "annotate", "apply", "archive", "bisect", "blame", "branch", "bundle", "cat-file",
    "check-attr", "check-ignore", "checkout", "checkout-index", "cherry", "cherry-pick", "clean", "clone",
    "commit", "commit-graph", "commit-tree", "config", "count-objects", "describe", "diff", "diff-files",
    "diff-index", "diff-tree", "difftool", "fast-export", "fast-import", "fetch", "fetch-pack", "filter-branch",
    "for-each-ref", "format-patch", "fsck", "gc", "grep", "hash-object", "help", "init", "interpret-trailers",
    "lfs", "log", "ls-files", "ls-remote", "ls-tree", "maintenance", "merge", "merge-base", "merge-file",
    "merge-tree", "mergetool", "mktree", "mv", "name-rev", "notes", "pack-objects", "prune", "pull", "push",
    "range-diff", "read-tree", "rebase", "reflog", "remote", "repack", "replace", "request-pull", "rerere",
    "reset", "restore", "rev-list", "rev-parse", "revert", "rm", "send-email", "shortlog", "show",
    "show-branch", "show-ref", "sparse-checkout", "stage", "stash", "status", "stripspace", "submodule",
    "switch", "symbolic-ref", "tag", "unpack-objects", "update-index", "update-ref", "var", "verify-commit",
    "verify-tag", "version", "whatchanged", "worktree", "write-tree",
})  # fmt: skip

READS_DATA: Final = frozenset({"awk", "gawk", "gsed", "mawk", "nawk", "original-awk", "sed"})
"""Interpreters whose input is data, because their words hold the program."""

CHANGES_SHELL: Final = frozenset({
    # Builtin commands that change what later commands of the line mean, or where these run.
    ".", "alias", "bind", "builtin", "chdir", "cd", "declare", "enable", "eval", "exec", "export", "hash",
    "let", "local", "mapfile", "popd", "pushd", "read", "readarray", "readonly", "set", "shopt", "source",
    "trap", "typeset", "umask", "unalias", "unset",
})  # fmt: skip

PLACES_INTO: Final = frozenset({"cp", "diff", "install", "ln", "mv"})
"""Programs that take ``folder`` for ``folder/name``, where ``name`` is the last part of another word."""

WALKS: Final = frozenset({"chmod", "chown", "cp", "mv", "rm"})
"""Programs that change folders with all their contents."""

REACHING_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    # Options that make a command open files its words do not name: through links, or from a list of files.
    "cp": ("-L", "--dereference", "-H"),
    "diff": ("-r", "--recursive"),
    "du": ("-L", "--dereference", "-D", "-H", "--files0-from"),
    "egrep": ("-R", "--dereference-recursive"),
    "fgrep": ("-R", "--dereference-recursive"),
    "file": ("-f", "--files-from"),
    "find": ("-L", "-H", "-follow", "-files0-from"),
    "grep": ("-R", "--dereference-recursive"),
    "ls": ("-L", "--dereference", "-H"),
    "md5sum": ("-c", "--check"),
    "rg": ("-L", "--follow"),
    "sha1sum": ("-c", "--check"),
    "sha256sum": ("-c", "--check"),
    "gzip": ("-r", "--recursive"),
    "jq": ("-L", "--library-path", "-f", "--from-file"),
    "sort": ("--files0-from",),
    "xz": ("--files", "--files0"),
    "tar": ("-h", "--dereference", "-T", "--files-from", "--one-top-level"),
    "tree": ("-l", "--fromfile", "--fromtabfile"),
    "wc": ("--files0-from",),
    "zip": ("-r", "--recurse-paths", "-R", "--recurse-patterns", "-@"),
}  # fmt: skip

TAKES_TARGETS: Final = frozenset({"gradle", "just", "make", "mvn"})
"""Every argument of these programs is one more target to build."""

RUNS_OTHERS: Final = frozenset({
    # These run commands given as arguments, or change what other commands mean: an approval would cover anything.
    ".", "[", "ack", "alias", "ansible", "ansible-playbook", "apptainer", "at", "autossh", "bash", "batch",
    "bind", "builtin", "bun x", "bundle exec", "busybox", "cargo run", "catchsegv", "chpst", "chronic",
    "chroot", "chrt", "cmake", "command", "compgen", "complete", "conda run", "coproc", "cpulimit", "crontab",
    "cross-env", "csh", "dash", "dbus-run-session", "dc", "declare", "deno eval", "deno run", "direnv", "doas",
    "docker compose exec", "docker compose run", "docker container exec", "docker container run", "docker exec",
    "docker run", "docker-compose", "dotenv", "dotnet exec", "dotnet run", "eatmydata", "ed", "emacs", "enable",
    "entr", "env", "envdir", "eval", "ex", "exec", "expect", "export", "faketime", "fakeroot", "fc",
    "find2perl", "firejail", "fish", "flock", "ftp", "gdb", "gh alias", "gh codespace", "gh extension",
    "git bisect", "git config", "git daemon", "git difftool", "git filter-branch", "git mergetool",
    "git send-email", "git submodule", "gnuplot", "go generate", "go run", "gosu", "hash", "hg config",
    "hyperfine", "i386", "ionice", "jobs", "kubectl debug", "kubectl exec", "kubectl run", "ksh", "less", "let",
    "linux32", "linux64", "local", "ltrace", "m4", "mail", "make -C", "man", "mapfile", "mksh", "more", "mosh",
    "mutt", "mysql", "nano", "nc", "ncat", "netcat", "nice", "nix develop", "nix run", "nix shell", "nix-shell",
    "nodemon", "nohup", "npm exec", "npm explore", "npx", "nsenter", "numactl", "nvim", "parallel", "perf",
    "pipenv", "pipx", "pkexec", "pnpm dlx", "pnpm exec", "podman container exec", "podman container run",
    "podman exec", "podman run", "poetry run", "popd", "prename", "prlimit", "proot", "proxychains", "psql",
    "pushd", "rbash", "read", "readarray", "readonly", "redis-cli", "rename", "rlwrap", "rsh", "rsync",
    "run-parts", "runcon", "runuser", "scp", "screen", "script", "set", "setarch", "setpriv", "setsid", "sftp",
    "sg", "sh", "shopt", "slogin", "socat", "source", "sqlite3", "ssh", "ssh-agent", "ssh-keygen", "sshpass",
    "start-stop-daemon", "stdbuf", "strace", "su", "su-exec", "sudo", "systemd-run", "taskset", "tcpdump",
    "tcsh", "telnet", "test", "time", "timeout", "tini", "tmux", "torify", "torsocks", "toybox", "trap",
    "typeset", "unbuffer", "unset", "unshare", "uv run", "uv tool", "uvx", "valgrind", "vi", "view", "vim",
    "watch", "watchexec", "wine", "x86_64", "xargs", "xdg-open", "xvfb-run", "yarn dlx", "yarn exec", "zsh",
})  # fmt: skip

INTERPRETERS: Final = re.compile(
    r"(?:awk|gawk|mawk|nawk|original-awk|node|nodejs|perl[\d.]*|php[\d.]*|pwsh|powershell|python[\d.]*|pypy[\d.]*"
    r"|ruby[\d.]*|sed|gsed|lua[\d.]*|luajit|osascript|tclsh[\d.]*|wish|Rscript|ghci|irb|ld\.so|ld-[\w.-]*|java"
    r"|jshell|groovy|scala|kotlin|elixir|iex|erl|escript|julia|octave|ocaml|racket|guile|sbcl|clisp|runghc|R|tsx"
    r"|ts-node)\Z"
)

TAKES_CODE: Final = frozenset({
    # Their words may contain code or settings that run commands in a shell.
    "cmake", "dc", "ed", "emacs", "ex", "expect", "ftp", "gdb", "gnuplot", "m4", "mail", "mutt", "mysql", "nvim",
    "prename", "psql", "redis-cli", "rename", "rsync", "scp", "sftp", "socat", "sqlite3", "ssh", "tcpdump", "vi",
    "view", "vim",
})  # fmt: skip

READS_NAMES: Final = frozenset({"cpio", "entr", "parallel", "pax", "xargs"})
"""Programs that read file names, or the arguments of the commands they run, from their input."""

TAKES_NO_PATHS: Final = frozenset({
    "basename", "dirname", "echo", "false", "id", "kill", "printf", "ps", "pwd", "sleep", "tr", "true", "type",
    "uname", "which", "whoami", "printenv",
})  # fmt: skip

TAKES_PATHS: Final = frozenset({
    "cat", "cd", "chmod", "chown", "cmp", "cp", "diff", "du", "file", "head", "less", "ln", "ls", "mkdir", "more",
    "mv", "nl", "readlink", "realpath", "rm", "rmdir", "shred", "source", "stat", "tac", "tail", "tee", "touch",
    "tree", "truncate", "wc",
})  # fmt: skip

SEARCHES_HERE: Final = frozenset({"ag", "git grep", "rg"})
"""Programs that search the working directory unless another folder is named, as does ``grep -r``."""

LOADS_URLS: Final = frozenset({"aria2c", "curl", "http", "https", "lynx", "w3m", "wget", "xh"})

REMOTE_SUBCOMMANDS: Final = frozenset({"clone", "fetch", "ls-remote", "pull", "push", "remote"})
"""Subcommands of ``git`` that contact other machines."""

WITH_VALUE: Final[Mapping[str, tuple[str, str, frozenset[str]]]] = {
    # For programs that load URLs: short options that take a value (not a URL), short options without a value, and
    # long options that take a value.
    "curl": (
        "AbcCdDeEFHKmoPQrtTuUwXyYz",
        "#012346aBfgGiIjJklLMnNOpqRsSvVZ",
        frozenset({
            "--aws-sigv4", "--cacert", "--cert", "--ciphers", "--config", "--connect-timeout", "--cookie",
            "--cookie-jar", "--data", "--data-ascii", "--data-binary", "--data-raw", "--data-urlencode",
            "--dump-header", "--form", "--form-string", "--header", "--json", "--key", "--limit-rate",
            "--max-filesize", "--max-redirs", "--max-time", "--oauth2-bearer", "--output", "--range", "--referer",
            "--request", "--retry", "--retry-delay", "--retry-max-time", "--speed-limit", "--speed-time",
            "--upload-file", "--url-query", "--user", "--user-agent", "--write-out",
        }),
    ),
    "wget": (
        "AIRTUXltwQ",
        "46FNSbcdhknqv",
        frozenset({
            "--body-data", "--header", "--level", "--limit-rate", "--max-redirect", "--method", "--password",
            "--post-data", "--referer", "--timeout", "--tries", "--user", "--user-agent", "--wait",
        }),
    ),
}  # fmt: skip

CHANGES_FOLDER: Final = frozenset({"cd", "chdir", "pushd", "popd"})

PLACES_LINKS: Final[Mapping[str, tuple[str, ...]]] = {
    # They create links, or copy folders with links, at paths in their words. With options: only if one is given.
    "cp": ("-a", "--archive", "-d", "-l", "--link", "-P", "--no-dereference", "-r", "-R", "--recursive", "-s",
           "--symbolic-link"),
    "install": (),
    "ln": (),
    "mv": (),
}  # fmt: skip

UNPACKS_LINKS: Final = frozenset({
    # They create links wherever an archive or a commit has them.
    "7z", "bsdtar", "cpio", "git am", "git apply", "git checkout", "git cherry-pick", "git clone", "git merge",
    "git pull", "git rebase", "git reset", "git restore", "git revert", "git stash", "git submodule", "git switch",
    "git worktree", "patch", "tar", "unrar", "unzip",
})  # fmt: skip

SHELLS: Final = frozenset({
    # They run what they read, or change what other commands mean.
    ".", "alias", "ash", "bash", "busybox", "csh", "dash", "enable", "eval", "fish", "hash", "ksh", "mksh", "rbash",
    "sh", "source", "tcsh", "toybox", "trap", "zsh",
})  # fmt: skip
