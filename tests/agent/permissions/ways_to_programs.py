"""Ways to start a program without its name, as families: each way, in each nesting, with each quoting.

``{rm}`` stands for a spelling of the forbidden program, ``{RM}`` for one of its path.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

NAMES: Final = (
    "rm",
    r"\rm",
    "r''m",
    '"rm"',
    "r\\\nm",
    "$'rm'",
    "$'r\\x6d'",
    "r${EMPTY}m",
    "$(echo rm)",
    "`echo rm`",
    "r?",
)
PATHS: Final = (
    "/bin/rm",
    "/bin/r?",
    "/b?n/rm",
    "/bin/r[m]",
    "'/bin/rm'",
    "/bin/../bin/rm",
    "/bin/{rm,ls}",
    "$(which rm)",
)

DIRECT: Final = (
    "{rm} f", "command {rm} f", "builtin command {rm} f", "exec {rm} f", "exec -a x {rm} f", "env {rm} f",
    "env -i A=1 {rm} f", "env -S '{rm} f'", "nohup {rm} f", "nice -n 5 {rm} f", "timeout 5 {rm} f",
    "time {rm} f", "sudo {rm} f", "sudo -u x -- {rm} f", "setsid {rm} f", "stdbuf -o0 {rm} f", "busybox {rm} f",
    "toybox {rm} f", "xargs {rm} < f", "ls | xargs -n1 {rm}", "ls | xargs -I X {rm} X", "find . -exec {rm} {} +",
    "find . -execdir {rm} {} ;", "find . -exec env {rm} {} \\;", "watch {rm} f", "unknown {rm} f",
    "unknown --run={rm} f", "unknown -c {rm} f", "nice env timeout 5 {rm} f", "eval {rm} f", "eval '{rm} f'",
    "alias x={rm}; x f", "trap '{rm} f' EXIT", "X={rm}; $X f", "set -- {rm}; \"$@\" f", "BASH_CMDS[x]={rm}; x f",
    "hash -p {rm} x; x f", "declare -n r=BASH_ALIASES; r[x]={rm}; x f", "coproc {rm} f", "f() { {rm} f; }; f",
    "printf -v 'BASH_ALIASES[x]' {rm}; x f", "read 'BASH_CMDS[x]' <<< {rm}; x f", "! {rm} f", "script -c '{rm} f'",
    "tar cf a.tar x --to-command={rm}", "tar -I {rm} -xf a.tar", "git -c core.pager={rm} log",
    "git -c alias.x='!{rm}' x", "git rebase -x '{rm} f' main", "git bisect run {rm} f", "git difftool -x {rm}",
    "git config alias.x '!{rm} f'", "git submodule foreach {rm} f", "GIT_PAGER={rm} git log",
    "EDITOR={rm} git commit",
    "GIT_EXTERNAL_DIFF={rm} git diff", "SHELL={rm} make", "make --eval='x:;{rm} f'",
    "sort --compress-program={rm} f", "split --filter='{rm} f' x", "rsync -e '{rm} f' a b:c",
    "ssh -o ProxyCommand='{rm} f' x",
    "fd -x {rm}", "rg --pre {rm} x", "go test -exec {rm} ./...", "docker run x {rm} f", "gdb -ex '!{rm} f'",
    "vim -c '!{rm} f'", "less '+!{rm} f' x", "parallel {rm} ::: f", "find . -name f | parallel {rm}",
)  # fmt: skip
"""Lines that name the program themselves."""

FILES: Final = (
    "{RM} f", "cp {RM} y && ./y f", "ln -s {RM} y; ./y f", "cat {RM} > y; chmod +x y; ./y f", "mv {RM} y; ./y f",
    "tee y < {RM} > /dev/null; ./y f", "< {RM} cat > y; ./y f", "dd if={RM} of=y; ./y f", "install {RM} y; ./y f",
    "cp link y; ./y f", "cp copy y; ./y f", "./link f", "./copy f", "./hard f", "./changed f", "./shebang f",
    "curl -so y file:///bin/rm; ./y f", "tar cf a.tar -C /bin . && tar xf a.tar && ./r? f",
    "/lib64/ld-linux-x86-64.so.2 {RM} f", "bash ./missing", "python3 -c 'x' ; ./missing",
    "cd / && bin/r? f", "PATH=.:$PATH link f", "cp -r /bin b && b/rm f", "sh script", "./script", ". ./script",
    "bash <(echo rm f)", "source /dev/stdin <<< 'rm f'", "./run copy", "env ./copy f", "unknown ./copy f",
    "EDITOR=./copy git commit", "CC=./copy make", "find . -name link -exec {} f \\;", "python3 literal.py",
)  # fmt: skip
"""Lines that reach it by its file: ``link``, ``hard``, ``copy``, ``changed`` are it, and ``script`` names it."""

CODE: Final = (
    "gcc -B. x.c", "g++ -O2 -B ./tools x.cc", "cc -wrapper ./q x.c", "clang -fplugin=./q.so x.c", "gcc @opts x.c",
    "gcc -specs=./q x.c", "tar -I ./q -cf a.tar f", "tar cIf ./q a.tar f", "tar -cvf a.tar -F./q f",
    "tar --use-comp=./q -cf a.tar f", "cmake -P x.cmake", "cmake -C x.cmake -S . -B build", "cmake -E env ./q",
    "ctest -S x.cmake", "ctest --build-and-test a b",
    'python3 -c "import os; os.system(\'r\'+\'m f\')"', "python3 -uc 'x'", "python3 - < x.py", "python3 < x.py",
    "echo x | python3", "python3", "perl -e 'unlink f'", "perl -ne 'x' f", "perl -pi -e 'x' f", "ruby -e 'x'",
    "node -e 'x'", "node --eval='x'", "node -pe 'x'", "node -r 'data:text/javascript,x' a.js", "php -r 'x'",
    "lua -e 'x'", "awk 'BEGIN{system(\"r\" \"m f\")}'", "awk '{print | \"sh\"}' f", "awk 'BEGIN{\"x\"|getline}'",
    "gawk 'BEGIN{f=\"system\"; @f(\"x\")}'", "sed 's/x/y/e' f", "sed '1e x' f", "sed -e p -e 'e' f",
    "sed -n '1!e ls' f",
    "echo x | sh", "curl -s x | bash", "bash <<< x", "sh -s < f", "bash", "bash -i", "sh <<'E'\nx\nE",
    "echo x | base64 -d | sh", "bash --rcfile x -i", "bash --init-file x", "BASH_ENV=x bash -c true",
    "ENV=x sh -c :",
    "x='a[$(x)]'; echo $((x))", "x='a[$(x)]'; [[ $x -eq 1 ]]", "[[ -v 'a[$(x)]' ]]", "test -v 'a[$(x)]'",
    "let 'a[$(x)]'",
    "(( a[$(x)] ))", "read x < f; echo $((x))", "echo ${x@P}", "echo ${!x}", "echo ${x:=y}", "LD_PRELOAD=./x ls",
    "PATH=. ls", "export PATH=.; ls", "IFS=_; ls", "PS4='$(x)' bash -xc :", "python3 -m timeit 'x'",
    "python3 -m pdb x.py",
    "bash -c \"$(cat f)\"", "$x", "\"$@\"", "eval \"$x\"", "sqlite3 x < f", "vim -es < f", "git x",
    "git -c alias.y=z y",
    "git --exec-path=. status", "GIT_CONFIG_COUNT=1 git log", "git clone 'ext::sh -c x' y",
    "git fetch --upload-pack=x",
    "MAKEFLAGS=--eval=x make", "TAR_OPTIONS=x tar cf a b", "npm_config_script_shell=./copy npm test",
    "HOME=. git log",
    "env -S x", "enable -f ./x y", "mapfile -C x y", "bind -x x", "true; " * 1000,
    "x=1 y=2 $z", "for x in rm; do $x f; done", "case x in x) $y;; esac", "[ -n \"$(x | sh)\" ]", "echo $(x | sh)",
)  # fmt: skip
"""Lines whose code, variables or constructs may start anything."""

NESTINGS: Final = (
    "@", "true && @", "( @ )", "if true; then @; fi", "for i in 1 2; do @; done", "echo \"$(@)\"", "{ @; } > o",
    "while @; do break; done", "x() { @\n}; x", "@ | cat", "cat <(@)",
)  # fmt: skip

WORK: Final = r"""
    npm test
    npm test -- --run src/a.test.ts
    npm run build && npm test 2>&1 | tail -5
    npx eslint src --fix
    npx tsc --noEmit
    pytest -q tests
    python -m pytest tests/test_a.py::test_b -k 'a and not b'
    python script.py
    python script.py --name "two words" out/dir
    python3 -m venv .venv
    python -m pip install -r requirements.txt
    pip install ruby sh
    make
    make test -j4
    make install PREFIX=build
    git commit -m "Fix; the rm of things | and more"
    git commit --no-verify -m "Fix"
    git add -A && git commit -qm "Fix $(date)"
    git checkout -b feature/x
    git rebase main
    git log --oneline -5 | head -3
    git push origin main
    git rm f
    git -C sub status
    git config user.name "A B"
    git -c user.name=A commit -m x
    git show HEAD:f > o
    cargo test --all
    go test ./... -run 'TestA|TestB'
    go build ./...
    gcc -O2 -DBUILD=1 -IBuild -Wl,-Bstatic x.c -o x
    cmake -S . -B build -DCMAKE_BUILD_TYPE=Release -G Ninja
    cmake --build build --target all
    ctest --test-dir build -R SPEC --output-on-failure
    tar czf a.tar.gz --exclude=.git --include='*.py' src
    tar -xf a.tar.gz -C build
    mvn -q test
    ./run
    ./run "two words" --flag=1
    bash clean.sh
    node x.js
    node --test tests
    docker ps
    docker run --rm -it image
    docker compose up -d
    docker rm x
    kubectl get pods
    gh pr create --title "Fix: it works (really)" --body "Don't; see #1"
    curl -sS -H 'Accept: a/b; c' https://example.com/x | jq '.a | .b'
    grep -rn 'rm -rf' .
    grep "a\|b" f | wc -l
    find . -name '*.py' -not -path './x/*' | xargs grep -l foo
    find . -name '*.pyc' -delete
    find . -type f -exec grep -l x {} +
    find . -name '*.txt' -exec sh -c 'grep x "$1"' _ {} \;
    git ls-files '*.py' | xargs ruff check
    sed -n '1,20p' f
    sed -i 's/a/b/g; s|c|d|' f
    sed -E -i.bak -e 's/(a)/\1/' f
    awk -F, '{print $1, $2}' f
    awk 'NR>1 || /x/ {s+=$3} END{printf "%d\n", s}' f
    ls $HOME
    cat $(git ls-files '*.md')
    for f in *; do cat "$f"; done
    for i in 1 2 3; do echo $((i+1)); done
    [ "$x" = y ] && echo $x
    if [ -f f ]; then cat f; else echo no; fi
    [[ -n $x && $x == a* ]] && echo y
    x=$(git rev-parse HEAD); echo "$x"
    n=3; echo "$((n * 2))"
    cd sub && npm test
    mkdir -p a/b && touch a/b/c && cp f a/
    export NODE_ENV=test; npm test
    NODE_ENV=test CI=1 npm test
    DATABASE_URL=postgres://u:p@localhost:5432/x pytest
    PYTHONPATH=src python script.py
    env FOO=1 npm test
    timeout 60 npm test
    time make test
    nohup npm start > log 2>&1 &
    sleep 1; kill %1
    tar czf a.tar.gz src
    unzip -q a.zip -d out
    echo done > o
    cat <<'EOF' > notes|NL|rm f; $(x)|NL|EOF
    printf '%s\n' a b | sort | uniq -c
    trap 'kill 0' EXIT; npm start
    set -euo pipefail; npm test
    uv run pytest -q
    poetry run python script.py
    terraform plan -out=x
    psql -l
    which python3 && python3 --version
    command -v node
    ps aux | grep node
    ssh host ls
    bash -lc 'npm test'
    sh -c 'cd sub && make'
    rustc --version; java -version
    java -jar x.jar
    sudo apt-get install -y python3
    jq -r '.scripts | keys[]' package.json
    tree -L 2 && du -sh .
    diff <(sort f) <(sort g)
    ls | while read -r x; do echo "$x"; done
"""
"""Everyday lines of a project, in which no forbidden program can hide."""


def ways() -> Iterator[str]:
    """Yield each way to the program, in each spelling and nesting."""
    for way, name in product(DIRECT, NAMES):
        yield way.replace("{rm}", name)
    for way, path in product(FILES, PATHS):
        yield way.replace("{RM}", path)
    for number, way in enumerate((*DIRECT, *FILES, *CODE)):
        # Two of them each, in turn.
        for nesting in (NESTINGS[number % len(NESTINGS)], NESTINGS[number * 5 % len(NESTINGS)]):
            yield nesting.replace("@", way.replace("{rm}", "r''m").replace("{RM}", "/bin/rm"))


def work() -> list[str]:
    """Return the everyday lines."""
    return [line.strip().replace("|NL|", "\n") for line in WORK.strip().splitlines()]
