"""Tables of programs and their options: which only read, run other commands, or open more files. Data only.

A program that is in no table is assumed to touch only what its words name. A missing row lets an approval cover too
much; a superfluous row asks the user once more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_GIT_OUTPUT: Final = ("--output", "--ext-diff", "--textconv")

READ_ONLY: Final[Mapping[str, tuple[str, ...]]] = {
    # Commands that only read, each with the options that make them write or run something.
    "basename": (), "cat": (), "cd": (), "cmp": (), "comm": (), "cut": (), "diff": (), "dirname": (), "du": (),
    "df": (), "echo": (), "false": (), "fold": (), "grep": (), "egrep": (), "fgrep": (), "head": (), "id": (),
    "jq": (), "ls": (), "md5sum": (), "nl": (), "od": (), "paste": (), "printenv": (), "printf": ("-v",), "ps": (),
    "pwd": (), "readlink": (), "realpath": (), "rev": (), "sha1sum": (), "sha256sum": (), "sleep": (),
    "stat": (), "tac": (), "tail": (), "tr": (), "true": (), "type": (), "uname": (), "wc": (), "which": (),
    "whoami": (),
    "find": ("-exec", "-ok", "-delete", "-fprint", "-fls"),
    "rg": ("--pre", "--hostname-bin", "-z", "--search-zip"),
    "sort": ("-o", "--output", "--compress-program", "-T", "--temporary-directory"),
    "tree": ("-o", "-R"),
    "git status": (), "git rev-parse": (), "git ls-files": (), "git ls-tree": (), "git describe": (),
    "git log": _GIT_OUTPUT, "git diff": _GIT_OUTPUT, "git show": _GIT_OUTPUT,
    "git blame": ("--textconv",), "git shortlog": ("--output",),
    "git stash list": _GIT_OUTPUT, "git stash show": _GIT_OUTPUT, "git remote show": (), "git worktree list": (),
}  # fmt: skip

ACTING_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    # Other commands, each with the options that make them run, write or destroy something else.
    "cargo": ("--config", "-Z"),
    "date": ("-s", "--set"),
    "curl": ("-K", "--config", "-o", "--output", "-O", "--remote-name", "-T", "--upload-file", "-c", "--cookie-jar",
             "-x", "--proxy", "--preproxy", "--socks4", "--socks5", "--resolve", "--connect-to", "--url",
             "--doh-url", "--dns-servers", "--unix-socket", "--abstract-unix-socket", "--engine", "--variable",
             "--expand-", "-w", "--write-out", "-Q", "--quote",
             "-D", "--dump-header", "--libcurl", "--trace", "--stderr", "--etag-save", "--hsts", "--alt-svc"),
    "gh api": ("-X", "--method", "-f", "--raw-field", "-F", "--field", "--input", "--hostname"),
    "git archive": ("--exec", "-o", "--output", "--remote"),
    "git branch": ("-d", "-D", "--delete", "-m", "-M", "--move", "-c", "-C", "--copy", "-f", "--force", "-u",
                   "--set-upstream-to", "--unset-upstream", "--edit-description"),
    "git checkout": ("-f", "--force", "-B"),
    "git clean": ("-f", "--force", "-d", "-x", "-X", "-i", "--interactive"),
    "git clone": ("-c", "--config", "-u", "--upload-pack", "--template"),
    "git fetch": ("--upload-pack",),
    "git format-patch": _GIT_OUTPUT,
    "git grep": ("-O", "--open-files-in-pager", "--ext-grep", "--textconv"),
    "git init": ("--template",),
    "git ls-remote": ("--upload-pack", "--exec"),
    "git pull": ("--upload-pack",),
    # A refspec that begins with "+" or ":" overwrites or deletes the remote branch.
    "git push": ("--receive-pack", "--exec", "-f", "--force", "-d", "--delete", "--mirror", "--prune", "+", ":"),
    "git rebase": ("-x", "--exec", "-i", "--interactive"),
    "git reset": ("--hard", "--merge", "--keep"),
    "git switch": ("-f", "--force", "--discard-changes", "-C", "--force-create"),
    "git tag": ("-d", "--delete", "-f", "--force"),
    "git commit": ("--template", "-t"),
    "go env": ("-w", "-u"),
    "go": ("-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool", "-overlay", "--overlay",
           "-ldflags", "--ldflags", "-modfile", "--modfile"),
    "make": ("-f", "--file", "--makefile", "-C", "--directory", "-I", "--include-dir", "--eval", "-E", "="),
    "npm": ("--script-shell", "--prefix", "--userconfig", "--globalconfig", "--node-options", "-C"),
    "pip": ("--python", "--global-option", "--config-settings"),
    # `@file` reads more options from a file.
    "pytest": ("-p", "-c", "--rootdir", "--confcutdir", "-o", "--override-ini", "--pdbcls", "--debug", "@",
               "--basetemp", "--pastebin", "--junitxml", "--junit-xml", "--log-file"),
    "tar": ("-I", "--use-compress-program", "--to-command", "--checkpoint-action", "-F", "--info-script",
            "--new-volume-script", "--rsh-command", "--rmt-command", "--absolute-names", "-P", "--transform",
            "--xform"),
    "wget": ("-e", "--execute", "--use-askpass", "--config", "-O", "--output-document", "-o", "--output-file",
             "-a", "--append-output", "-P", "--directory-prefix", "-i", "--input-file",
             # These take folders and names from the server, or follow links to other servers.
             "-x", "--force-directories", "-r", "--recursive", "-m", "--mirror", "-p", "--page-requisites", "-H",
             "--span-hosts", "--content-disposition", "--trust-server-names", "--save-cookies", "--warc-file",
             "--rejected-log"),
    "zip": ("-T", "--test", "-TT", "--unzip-command"),
}  # fmt: skip

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
    "sort": ("--files0-from",),
    "tar": ("-h", "--dereference", "-T", "--files-from", "--one-top-level"),
    "tree": ("-l", "--fromfile", "--fromtabfile"),
    "wc": ("--files0-from",),
    "zip": ("-r", "--recurse-paths", "-R", "--recurse-patterns", "-@"),
}  # fmt: skip

WITH_SUBCOMMAND: Final = frozenset({
    # Programs and subcommands whose next word is a subcommand, and so part of the identifier.
    "apt", "apt-get", "aws", "az", "brew", "brew services", "bun", "bundle", "cargo", "composer", "conda",
    "conda env", "deno", "dnf", "docker", "docker buildx", "docker compose", "docker config", "docker container",
    "docker context", "docker image", "docker network", "docker plugin", "docker secret", "docker service",
    "docker stack", "docker swarm", "docker system", "docker volume", "dotnet", "firebase", "flatpak", "fly",
    "gcloud", "gem", "gh", "gh auth", "gh cache", "gh codespace", "gh config", "gh gist", "gh gpg-key", "gh issue",
    "gh label", "gh pr", "gh project", "gh release", "gh repo", "gh ruleset", "gh run", "gh secret", "gh ssh-key",
    "gh variable", "gh workflow", "git", "git bundle", "git lfs", "git maintenance", "git notes", "git reflog",
    "git remote", "git sparse-checkout", "git stash", "git worktree", "go", "go mod", "go tool", "go work",
    "gradle", "helm", "helm plugin", "helm repo", "heroku", "hg", "jj", "just", "kubectl", "kubectl auth",
    "kubectl config", "kubectl rollout", "kubectl set", "make", "mvn", "nix", "nmcli", "npm", "npm cache",
    "npm config", "npm pkg", "npm run", "pip", "pip cache", "pip config", "pip3", "pnpm", "pnpm run", "podman",
    "podman container", "podman image", "podman volume", "poetry", "rustup", "service", "snap", "svn", "systemctl",
    "terraform", "terraform state", "terraform workspace", "uv", "uv pip", "vault", "yarn", "yarn config",
    "yarn run", "bun run", "deno task",
})  # fmt: skip

SUBCOMMAND_DEPTH: Final[Mapping[str, int]] = {"aws": 2, "az": 3, "gcloud": 3, "nmcli": 2, "service": 2, "vault": 2}
"""The number of subcommand words that a program takes; all that are present belong to the identifier."""

TAKES_TARGETS: Final = frozenset({"gradle", "just", "make", "mvn"})
"""Every argument of these programs is one more target to build."""

TAKES_OPERANDS: Final = frozenset({
    # The first word is an operand, such as a file. The first word of an unknown program may be a subcommand.
    "awk", "base64", "black", "bunzip2", "bzip2", "cc", "chgrp", "clang", "clang++", "clang-format", "clear",
    "code", "convert", "csplit", "cypress", "dd", "eslint", "ffmpeg", "flake8", "g++", "gcc", "gofmt", "gunzip",
    "gzip", "hexdump", "install", "isort", "javac", "jest", "kill", "killall", "mocha", "mypy", "node", "nproc",
    "open", "patch", "phpunit", "ping", "pkill", "prettier", "pylint", "pyright", "rspec", "rubocop", "ruff",
    "rustc", "rustfmt", "seq", "shellcheck", "shfmt", "shuf", "split", "strings", "tput", "tsc", "uniq",
    "unzip", "vitest", "xxd", "xz", "yes", "yq",
})  # fmt: skip

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
    "basename", "dirname", "echo", "false", "id", "printf", "ps", "pwd", "sleep", "tr", "true", "type", "uname",
    "which", "whoami", "printenv",
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
