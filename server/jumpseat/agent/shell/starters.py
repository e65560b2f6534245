"""Tables of what programs start. Data only; :mod:`jumpseat.agent.shell.started` judges lines by them.

What is missing here is judged by its words alone, with the least that can be said of any program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

STARTS_NOTHING: Final = frozenset({
    # Whatever their words are, expanded ones included.
    ":", "arch", "b2sum", "base32", "base64", "basename", "break", "cal", "cat", "cd", "chgrp", "chmod", "chown",
    "cksum", "cmp", "column", "comm", "continue", "cp", "curl", "cut", "date", "df", "diff", "dir", "dirname",
    "dirs", "du", "echo", "egrep", "exit", "expand", "expr", "factor", "false", "fgrep", "file", "fmt", "fold",
    "free", "grep", "groups", "head", "hexdump", "hostname", "iconv", "id", "jobs", "join", "jq", "kill",
    "killall", "ln", "logname", "ls", "md5sum", "mkdir", "mkfifo", "mktemp", "mv", "nl", "nproc", "numfmt", "od",
    "paste", "pathchk", "pgrep", "pkill", "popd", "pr", "printenv", "ps", "pushd", "pwd", "readlink", "realpath",
    "return", "rev", "rm", "rmdir", "seq", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "shift",
    "shred", "shuf", "sleep", "stat", "strings", "sum", "tac", "tail", "tee", "times", "touch", "tr", "tree",
    "true", "truncate", "tsort", "tty", "type", "ulimit", "umask", "uname", "unexpand", "uniq", "unlink",
    "uptime", "wc", "whereis", "which", "who", "whoami", "xxd", "yes",
})  # fmt: skip


class Wrapper(Struct, frozen=True):
    """A program that starts the one behind its own options and ``operands``.

    ``flags`` are its short options without a value, ``valued`` those with one; ``long`` are long options, with
    ``=`` after those whose value may be the next word. Any other option is not judged.
    """

    flags: str = ""
    valued: str = ""
    long: tuple[str, ...] = ()
    operands: int = 0
    assigns: bool = False
    adds: bool = False


_PYTHON_PROJECT: Final = Wrapper(
    long=("--frozen", "--locked", "--no-sync", "--all-extras", "--extra=", "--with=", "--group=", "--quiet")
)
_NODE_PROJECT: Final = Wrapper(flags="y", long=("--yes", "--no-install", "--no"))

WRAPPERS: Final[Mapping[str, Wrapper]] = {
    "builtin": Wrapper(),
    "bun x": _NODE_PROJECT,
    "bundle exec": Wrapper(),
    "bunx": _NODE_PROJECT,
    "caffeinate": Wrapper("disum", "tw"),
    "chronic": Wrapper("ve"),
    "command": Wrapper("p"),
    "composer exec": Wrapper(),
    "conda run": Wrapper(valued="n", long=("--no-capture-output", "--name=")),
    "coverage run": Wrapper("ap", long=("--branch", "--append", "--parallel-mode", "--source=", "--omit=")),
    "cross-env": Wrapper(assigns=True),
    "doas": Wrapper("n", "u"),
    "env": Wrapper("i0v", "uC", ("--ignore-environment", "--unset=", "--chdir="), assigns=True),
    "exec": Wrapper("cl"),
    "hatch run": Wrapper(),
    "ionice": Wrapper("t", "cn"),
    "nice": Wrapper("", "n", ("--adjustment=",)),
    "nohup": Wrapper(),
    "npm exec": _NODE_PROJECT,
    "npx": _NODE_PROJECT,
    "pdm run": Wrapper(),
    "pipenv run": Wrapper(),
    "pnpm dlx": _NODE_PROJECT,
    "pnpm exec": _NODE_PROJECT,
    "poetry run": Wrapper("q"),
    "rye run": Wrapper(),
    "setsid": Wrapper("cfw", long=("--wait", "--fork", "--ctty")),
    "stdbuf": Wrapper("", "ioe", ("--input=", "--output=", "--error=")),
    "sudo": Wrapper("EHnkS", "ug", ("--non-interactive", "--preserve-env", "--user=", "--group="), assigns=True),
    "taskset": Wrapper("c", operands=1),
    "time": Wrapper("pv", "fo", ("--verbose", "--portability", "--format=", "--output=")),
    "timeout": Wrapper("v", "sk", ("--signal=", "--kill-after=", "--foreground", "--preserve-status"), 1),
    "unbuffer": Wrapper("p"),
    "uv run": _PYTHON_PROJECT,
    "uvx": Wrapper(long=("--quiet", "--from=", "--with=", "--python=")),
    "xargs": Wrapper(
        "0rtx",
        "nPLdsaIE",
        ("--null", "--no-run-if-empty", "--verbose", "--max-args=", "--max-procs=", "--max-lines=", "--delimiter=",
         "--arg-file=", "--replace="),
        adds=True,
    ),
    "yarn dlx": _NODE_PROJECT,
    "yarn exec": Wrapper(),
}  # fmt: skip


class Interpreter(Struct, frozen=True):
    """An interpreter that runs the file in its first operand.

    ``options`` is a pattern of the options that neither hold code nor read it, ``valued`` of those among them whose
    value is the next word. Those with ``has_modules`` take a module for the file, with ``-m``.
    """

    options: re.Pattern[str]
    valued: frozenset[str] = frozenset()
    has_modules: bool = False


_VERSION: Final = r"--version|--help|-h|-v|-V"
_JAVASCRIPT: Final = Interpreter(
    re.compile(
        rf"{_VERSION}|-c|--check|--test(?:-[a-z]+)*(?:=[\w./*-]+)?|--watch(?:-path=[\w./-]+)?|--no-warnings"
        r"|--enable-source-maps|--trace-(?:warnings|deprecation|uncaught)|--max-old-space-size=\d+"
        r"|--(?:expose|unhandled|experimental|stack|inspect)[a-z-]*(?:=[\w.:]+)?|--(?:require|import|loader)=[\w./@-]+"
        r"|-r|--require|--import|--loader|--env-file(?:-if-exists)?=[\w./-]+|--esm|--transpile-only|-T"
    ),
    frozenset({"-r", "--require", "--import", "--loader"}),
)
OTHER_INTERPRETER: Final = Interpreter(re.compile(_VERSION))

INTERPRETER_OPTIONS: Final = (
    (
        re.compile(r"(?:python|pypy)[\d.]*"),
        Interpreter(
            re.compile(rf"{_VERSION}|-[bBdEIOPqsSuv]+|-VV|-[XW][\w:.=-]*|-OO|-m|-[bBEIOPqsSu]+m"),
            frozenset({"-X", "-W"}),
            True,
        ),
    ),
    (re.compile(r"node|nodejs|tsx|ts-node"), _JAVASCRIPT),
    (re.compile(r"perl[\d.]*"), Interpreter(re.compile(rf"{_VERSION}|-[cwTtW]+|-[IM][\w:./=,-]+"))),
    (
        re.compile(r"ruby[\d.]*"),
        Interpreter(re.compile(rf"{_VERSION}|-[cwU]+|-W\w*|-[Ir][\w:./-]*"), frozenset({"-I", "-r"})),
    ),
    (re.compile(r"php[\d.]*"), Interpreter(re.compile(rf"{_VERSION}|-[lmin]|--ini"))),
    (
        re.compile(r"java"),
        Interpreter(
            re.compile(
                rf"{_VERSION}|-version|-(?:cp|classpath|jar)|--class-path|-[DX][\w.:=/,+*-]*|-e[as](?::[\w.]+)?"
                r"|--enable-preview|--add-opens[= ]?[\w./=-]*|--(?:source|release)"
            ),
            frozenset({"-cp", "-classpath", "--class-path", "--source", "--release", "--add-opens"}),
        ),
    ),
    (
        re.compile(r"julia|Rscript|lua[\d.]*|luajit"),
        Interpreter(re.compile(rf"{_VERSION}|--(?:vanilla|project=\S*)")),
    ),
)

TAKES_CODE_MODULES: Final = frozenset({
    "cProfile", "code", "doctest", "IPython", "pdb", "profile", "ptpython", "runpy", "timeit", "trace", "this",
})  # fmt: skip
"""Modules of Python that take code, or another file to run with options of their own."""

SAFE_AWK: Final = re.compile(r"(?!(?s:.*)\bsystem\b)(?:[^|@\\]|\|\||\\[.\"/ntwsb$()|*+?\[\]{}^-])*+\Z")
"""A program of awk that neither pipes, nor calls the system, nor calls functions by names that it computes."""

AWK_OPTIONS: Final = re.compile(r"-F.*|-v.*|--field-separator=.*|--posix|--version|--csv|-O")

SED_OPTIONS: Final = re.compile(
    r"-[nErsuz]+|-[nErsuz]*i(?:\.\w+)?|-[nErsuz]*e"
    r"|--(?:quiet|silent|expression|in-place|regexp-extended|null-data|sandbox|version|posix)(?:=.*)?"
)

GIT_OPTIONS_BEFORE: Final = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--bare"})

GIT_SETTINGS: Final = re.compile(
    r"(?:user\.(?:name|email)|color\.\w+|core\.(?:quotepath|autocrlf|eol|filemode|abbrev|longpaths)|advice\.\w+"
    r"|init\.defaultbranch|commit\.gpgsign|tag\.gpgsign|log\.\w+|diff\.(?:noprefix|renames|context|algorithm)"
    r"|merge\.(?:ff|conflictstyle)|pull\.(?:rebase|ff)|push\.(?:default|followtags|autosetupremote)"
    r"|rebase\.\w+|fetch\.prune|column\.\w+|versionsort\.\w+|gc\.auto|rerere\.enabled|status\.\w+"
    r"|(?:branch|remote)\.[\w/.-]+\.(?:remote|merge|rebase|fetch))",
    re.IGNORECASE,
)
"""Settings of git that name no program."""

GIT_STARTS: Final[Mapping[str, tuple[str, ...]]] = {
    # Options of subcommands that start the program in their value; with "" the subcommand itself.
    "archive": ("--exec", "--remote"),
    "bisect": ("",),
    "clone": ("-u", "--upload-pack", "-c", "--config", "--template"),
    "daemon": ("",),
    "difftool": ("",),
    "fetch": ("--upload-pack",),
    "fetch-pack": ("--exec", "--upload-pack"),
    "filter-branch": ("",),
    "for-each-repo": ("",),
    "grep": ("-O", "--open-files-in-pager"),
    "help": ("-w", "--web", "-m", "--man", "-i", "--info"),
    "hook": ("",),
    "init": ("--template",),
    "instaweb": ("",),
    "ls-remote": ("--upload-pack", "--exec"),
    "mergetool": ("",),
    "pull": ("--upload-pack",),
    "push": ("--receive-pack", "--exec"),
    "rebase": ("-x", "--exec"),
    "send-email": ("",),
    "submodule": ("foreach",),
    "var": ("",),
}

_COMPILER: Final = ("-B", "-fplugin", "-specs", "--specs", "-wrapper", "@")
STARTS_BY_OPTION: Final[Mapping[str, tuple[str, ...]]] = {
    # Options of other programs that start programs, or name a file or folder with what to start.
    **dict.fromkeys(("c++", "cc", "clang", "clang++", "g++", "gcc"), _COMPILER),
    "cmake": ("-C", "-E", "-P"),
    "ctest": ("-S", "--script", "--build-and-test", "--build-makeprogram"),
    "tar": (
        "-F", "-I", "--checkpoint-action", "--info-script", "--new-volume-script", "--rmt-command", "--rsh-command",
        "--to-command", "--use-compress-program",
    ),
}  # fmt: skip

TEXT_WORDS: Final = frozenset({"docker", "gh", "glab", "helm", "kubectl", "tar", "terraform", "unzip", "zip"})
"""Programs with words that are texts, beside those whose harmless options are known."""

NAMES_PACKAGES: Final = frozenset({
    "apk", "apt", "apt-get", "brew", "conda", "dnf", "gem", "go", "mamba", "npm", "pacman", "pip", "pip3", "pnpm",
    "yarn", "yum",
})  # fmt: skip
"""Programs whose words name packages, which have the names of programs."""

ANY_CHECK: Final = frozenset({
    "black", "codespell", "eslint", "gofmt", "isort", "prettier", "ruff", "shellcheck", "stylelint", "yamllint",
})  # fmt: skip
"""Checkers of which no option names a program, so that xargs may add any words to theirs."""

DECIDING_VARIABLES: Final = re.compile(
    r"PATH|IFS|ENV|HOME|PS\d|PROMPT_COMMAND|SHELLOPTS|GLOBIGNORE|FPATH|BASH\w*|LD_\w+|DYLD_\w+|GCONV_PATH"
    r"|GIT_(?:CONFIG\w*|EXEC_PATH|DIR|TEMPLATE_DIR|PROXY_COMMAND)|XDG_\w+|NPM_CONFIG_\w+|MAKEFLAGS|TAR_OPTIONS",
    re.IGNORECASE,
)
"""Variables that decide which programs other words name, or that hold settings of a program."""
