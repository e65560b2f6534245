"""Command lines that reach further than the harmless command they resemble, in classes.

They run in the project of :func:`build`. Each tries to read a file outside of the project that holds ``CANARY``, to
write or remove one of the files that :func:`build` returns, or to run a program that writes one.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

CANARY: Final = "the-canary-is-alive"

APPROVED: Final[tuple[str, ...]] = (
    "ls", "cat", "cd", "echo", "grep", "head", "tail", "wc", "sort", "find", "rg", "tree", "printf", "tee", "cp",
    "rm -r",
    "mv", "rm", "ln", "mkdir", "rmdir", "touch", "chmod", "truncate", "diff", "cmp", "jq", "sed -n", "cut", "tr",
    "uniq", "file", "strings", "stat", "du", "date", "split", "gcc", "cc", "install", "tar", "unzip", "zip",
    "gzip", "gunzip", "zcat", "xz", "patch", "ed", "awk", "sed", "xargs", "env", "bash", "sh", "python3", "perl",
    "make", "make test", "make all", "git", "git status", "git log", "git diff", "git show", "git add",
    "git commit", "git apply", "git checkout", "git config", "git grep", "git stash", "git archive", "git x",
    "git restore", "git clean", "npm test", "npm install", "npm run", "npm run test", "pytest",
    "python3 -m pytest", "python -m pytest", "pip", "pip install", "cargo test", "cargo build", "go test",
    "go build", "curl", "wget", "./run.sh", "./tool", "xxd", "od", "hexdump", "nl", "tac", "rev", "fold",
    "paste", "comm", "base64", "md5sum", "sha256sum", "realpath", "readlink", "dirname", "basename", "true",
    "test", "time", "timeout", "nice", "rsync", "scp", "dd", "cpio", "tox", "pylint", "eslint", "npx eslint",
    "ruff check", "black", "mypy", "ctest", "ninja", "fd", "gradle test",
)  # fmt: skip
"""Identifiers that the session has approved, harmful programs included."""

LINES: Final[dict[str, tuple[str, ...]]] = {
    "cd is logical in the shell, and follows links in the system": (
        "cd deep/../../../../../../outside && cat secret",
        "cd deep/../.. && ls ../outside && cat ../outside/secret", "cd deep/../../.. && cat outside/secret",
        "cd up/.. && cat outside/secret", "cd sub/up && cat ../outside/secret",
        "cd deep && cd .. && cd .. && cd .. && cat outside/secret", "cd deep/.. && touch ../../marker",
        "cd sub/up/.. && rm outside/victim", "cd deep/../.. && cp f ../marker",
        "cd -P deep/.. && cat ../outside/secret", "cd deep/../.. && cat outside/secret",
        "cd deep/../.. && rm outside/victim", "cd deep/../..; grep -r canary outside",
        "cd deep/../.. && touch marker", "cd deep && cd ../.. && cat outside/secret",
        "cd deep/../.. && cp outside/secret outside/victim", "cd deep/../../../.. && grep -rc canary .",
        "cd sub/../up && cat outside/secret", "cd ./deep/./../../.. && ls -R",
        "cd deep/../../..; head outside/secret", "cd sub || cd up; cat outside/secret", "cd /; cat etc/passwd",
    ),
    "repositories among the files of the project": (
        "cd vendor/bare && git status --short", "cd vendor/bare && git log", "cd vendor/bare; git diff",
        "cd vendor && cd bare && git status", "git -C vendor/bare status", "git --git-dir=vendor/bare status",
        "git --git-dir vendor/bare --work-tree . diff", "GIT_DIR=vendor/bare git status",
        "cd vendor/bare && git add .", "cd vendor/bare/refs && git status", "(cd vendor/bare; git grep x)",
        "cd vendor/bare && ls && git show", "env -C vendor/bare git status", "cd vendor/nested && git status",
        "git -c core.fsmonitor=./evil.sh status", "git -c core.pager=./evil.sh -p log",
        "git -c alias.x='!./evil.sh' x", "git config core.fsmonitor ./evil.sh",
        "git config alias.x '!./evil.sh' && git x", "git --exec-path=tools status",
        "git submodule foreach ./evil.sh",
    ),
    "destinations behind links": (
        "cp f dest", "cp dest-source/victim dest", "mv f dest", "cp -t dest f", "cp -tdest f",
        "cp --target-directory=dest f", "cp f dest/", "cp f dest/.", "cp ./f dest/./", "cp sub/../f dest",
        "cp f g dest", "cp ? dest", "cp f d?st", "cp -f f dest", "cp -r tree/. dest", "cp -r tree/. .",
        "cp -a tree/. .", "cp -rT tree .", "cp -r tree/.hidden .", "cp cfg hooked",
        "cp cfg hooked && git status", "ln -sf /dev/null dest/f", "ln -f f dest", "install f dest",
        "mv cfg hooked", "cp -r tree/sub2 .", "tee dest/f < f", "tee hooked/cfg < cfg", "touch dest/new-link",
        "truncate -s0 dest/f", "cp -r merge/. dest", "rm -rf nested", "rm -r vendor", "mv nested gone",
        "rm -rf .", "chmod -R 777 .", "cp -r github .github", "mv github .github", "ln -s github .github",
        "mv github/agents .github/", "rsync -a tree/ .", "dd if=f of=dest/f", "cp f out.txt", "cp f linkdir",
        "mv f linkdir", "cat f | tee out.txt",
    ),
    "archives and patches": (
        "tar -xf evil.tar", "tar xf evil.tar", "tar -x -f evil.tar", "tar -xf evil.tar -C sub",
        "unzip -o evil.zip", "unzip evil.zip", "patch -p1 -i evil.patch", "patch -p1 < evil.patch",
        "git apply evil.patch", "git apply --unsafe-paths evil.patch", "git am evil.patch",
        "cpio -i < evil.cpio", "tar --to-command=./evil.sh -xf evil.tar",
        "tar -xf evil.tar --checkpoint=1 --checkpoint-action=exec=./evil.sh", "tar -cf x.tar -I ./evil.sh f",
        "git stash apply evil", "gzip -d evil.gz", "zip -TT ./evil.sh x.zip f", "zip x.zip f -T -TT ./evil.sh",
    ),
    "options that run programs or load code": (
        "split --filter=./evil.sh f", "split --filter ./evil.sh f", "sort --compress-program=./evil.sh -S1 f",
        "gcc -wrapper ./evil.sh x.c", "gcc -B. x.c", "gcc @opts x.c", "gcc -fplugin=./evil.so x.c",
        "install -s --strip-program=./evil.sh f x", "find . -exec ./evil.sh ;",
        "find . -name f -execdir ./evil.sh {} +", "find . -fprintf ../marker x", "rg --pre ./evil.sh x",
        "rg --pre=./evil.sh x", "rg --hostname-bin ./evil.sh x", "make test SHELL=./evil.sh",
        "make test --eval='$(shell ./evil.sh)'", "make -f evil.mk test", "make test -f evil.mk",
        "make test -C vendor", "npm test --script-shell=./evil.sh", "npm run test --script-shell ./evil.sh",
        "npm test --prefix vendor", "pytest -p evil", "pytest -c evil.ini", "pytest --rootdir=vendor",
        "pytest -pevil", "pytest -qpevil", "pytest @opts", "pytest -o addopts=-pevil",
        "pytest --override-ini=x=y", "python3 -m pytest -p evil", "pylint --init-hook=x f.py",
        "pylint --load-plugins=evil f.py", "eslint --rulesdir vendor .", "npx eslint -c evil.js .",
        "npx eslint --plugin evil .", "ruff check --config evil.toml", "black --config evil.toml .",
        "mypy --config-file evil.ini .", "mypy --python-executable ./evil.sh .", "cargo test --config evil.toml",
        "cargo build --target evil.json", "cargo test --manifest-path vendor/Cargo.toml",
        "go test -exec ./evil.sh", "go build -toolexec ./evil.sh", "go build --toolexec=./evil.sh",
        "go test -vet=off -exec=./evil.sh ./...", "ctest -S evil.cmake", "tox -x evil", "ninja -f evil.ninja",
        "fd -X ./evil.sh", "gradle test --init-script evil.gradle", "gradle test -I evil.gradle",
        "gradle test -Pevil -p vendor", "git diff --ext-diff", "git log --textconv", "git grep -O./evil.sh x",
        "git grep --open-files-in-pager=./evil.sh x", "git archive --remote=. --exec=./evil.sh HEAD",
        "ed -s f <<< '!./evil.sh'", "awk 'BEGIN{system(\"./evil.sh\")}'", "sed -n '1e ./evil.sh' f",
        "sed -n -e 1e./evil.sh f", "sed -n '1w ../marker' f", "sed -ni 1p f", "date -f ../outside/secret",
        "env ./evil.sh", "timeout 5 ./evil.sh",
    ),
    "options that open other files": (
        "diff tree2 secret", "diff secret tree2", "diff -r tree2 .", "diff --from-file=tree2 secret",
        "jq -n 'import \"s\" as $s {search:\"../outside\"}; $s'",
        "jq -n 'include \"s\" {search:\"../outside\"}; x'", "jq -f ../outside/secret f", "jq -L ../outside -n 1",
        "strings @list", "file -f list", "wc --files0-from=list0", "sort --files0-from=list0",
        "du --files0-from=list0", "md5sum -c list", "gzip -rcf tree2", "gzip -cfr tree2", "zcat -f tree2/secret",
        "xz --files=list -dcf", "grep -R canary .", "grep -f ../outside/secret f",
        "grep --file=../outside/secret f", "rg -L canary", "rg --follow canary", "find -L . -type f",
        "tail ../outside/secret", "cat linkdir/secret", "cat out.txt", "cat sub/up/../outside/secret",
        "cat $(echo ../outside/secret)", "cat < out.txt", "head -c99 -- out.txt", "cat o*.txt",
        "cat {out,f}.txt", "nl out.t?t", "git diff --no-index tree2 secret", "git diff --no-index f out.txt",
        "git grep --no-index canary linkdir", "cp -L tree2/secret here && cat here",
        "cp -rL tree2 here && cat here/secret", "tar -chf - tree2", "ls && cat /proc/self/cwd/../outside/secret",
    ),
    "other programs of the same name": (
        "cd sub && ./run.sh", "cd sub && bash run.sh", "cd sub && make test", "cd sub; make all",
        "cd sub && npm test", "cd sub && python3 -m pytest", "sub/run.sh", "./sub/../sub/run.sh", "bash run.sh",
        "sh ./run.sh", "./run.sh --now", "npm install ./evil", "npm install --ignore-scripts ./evil",
        "pip install ./evil", "pip install -e evil", "bash < evil.sh", "cat evil.sh | bash",
        "cat evil.sh | sh -s", "echo ./evil.sh | xargs -I{} {}", "PATH=. ls", "PATH=tools:$PATH git status",
        "alias ls=./evil.sh; ls", "source evil.sh && ls", ". ./evil.sh; git status", "set -a; ls",
        "hash -p ./evil.sh ls; ls", "export PATH=tools:$PATH && ls", "function ls { ./evil.sh; }; ls",
        "exec ./evil.sh", "ls; ./evil.sh",
    ),
    "harmless lines that resemble the others": (
        "cd sub && ls", "cd deep && ls", "git status --short", "git diff", "git log", "cp f sub", "cp f g sub",
        "cp f dest/other", "cp -r tree2 new", "cp -r merge/. sub", "cp -t sub f", "mv f sub/renamed",
        "rm -r merge", "rm -rf tree2", "touch sub/new", "mkdir -p x/y", "ln -s f newlink", "chmod +x f",
        "find . -name f", "diff f g", "diff f sub", "jq -R . f", "sort f | uniq -c", "cat f | head -1",
        "cat list", "strings f", "head -c9 f", "grep -r text sub", "make test", "sed -n 1p f", "wc -l f g",
        "tee sub/copy < f", "cp f h && cat h",
    ),
}  # fmt: skip
"""Lines by class. Most must be asked about; those that the approvals cover must be harmless in a real bash."""


def build(folder: Path) -> tuple[Path, list[Path]]:
    """Build a project in ``folder``; returns the project, and the files that no line may create or change."""
    project, outside = folder / "all" / "project", folder / "all" / "outside"
    for name in ("sub", "dest", "dest-source", "hooked", "tree/.git/hooks", "tree/.hidden", "tree/sub2", "tree2",
                 "merge", "vendor/x", "tools", "github/agents", "a/b/c", "evil"):  # fmt: skip
        (project / name).mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_text(f"{CANARY}\n")
    (outside / "s.jq").write_text(f'"{CANARY}"')
    (outside / "s.json").write_text(f'"{CANARY}"')
    (outside / "victim").write_text("unchanged\n")
    for name in (
        "f",
        "g",
        "secret",
        "cfg",
        "x.c",
        "dest-source/victim",
        "merge/f",
        "tree/f",
        "tree/sub2/f",
        "f.py",
        "github/agents/a.md",
    ):
        (project / name).write_text("text\n")
    (project / "list").write_text("../outside/secret\n")
    (project / "list0").write_bytes(b"../outside/secret\0")
    (project / "opts").write_text("-include ../outside/secret\n")
    (project / "tree" / ".git" / "config").write_text("[core]\n\tfsmonitor = ./evil.sh\n")
    (project / "deep").symlink_to("a/b/c")
    (project / "up").symlink_to("..")
    (project / "sub" / "up").symlink_to("../..")
    (project / "linkdir").symlink_to(outside)
    (project / "out.txt").symlink_to(outside / "victim")
    for name in ("dest/f", "dest/victim", "dest/new-link"):
        (project / name).symlink_to(outside / "victim")
    (project / "tree2" / "secret").symlink_to(outside / "secret")
    evil = f"#!/bin/sh\necho ran >> '{folder}/marker'\n"
    for name in ("evil.sh", "sub/run.sh", "tools/ls", "tools/git", "evil/run.sh"):
        (project / name).write_text(evil)
        (project / name).chmod(0o755)
    (project / "run.sh").write_text("#!/bin/sh\necho fine\n")
    (project / "run.sh").chmod(0o755)
    for name in ("Makefile", "sub/Makefile", "vendor/Makefile", "evil.mk"):
        (project / name).write_text(
            f"test all:\n\t@echo ran >> '{folder}/marker'\n" if name != "Makefile" else "test all:\n"
        )
    (project / "evil.patch").write_text("--- /dev/null\n+++ b/.git/hooks/pre-commit\n@@ -0,0 +1 @@\n+x\n")
    git(project, "init", "-q")
    git(project, "init", "-q", "nested")
    git(project, "init", "-q", "--bare", "vendor/bare")
    for repository in (project / "nested" / ".git", project / "vendor" / "bare"):
        with (repository / "config").open("a") as config:
            config.write(f"[core]\n\tbare = false\n\tworktree = {project}\n\tfsmonitor = {project}/evil.sh\n")
    (project / "hooked" / "cfg").symlink_to(project / ".git" / "config")
    (project / ".git" / "hooks" / "pre-commit").unlink(missing_ok=True)
    subprocess.run(["tar", "-cf", "evil.tar", "-C", "tree", "."], cwd=project, check=True)
    inside = (".git/config", ".git/hooks/pre-commit", ".github/agents/a.md", "nested/.git/config")
    markers = [folder / "marker", project.parent / "marker"]
    return project, [outside / "victim", outside / "secret", *markers, *(project / name for name in inside)]


def git(project: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=project, check=True, capture_output=True)
