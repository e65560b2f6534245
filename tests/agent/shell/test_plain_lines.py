"""Loops and process substitutions are read as the plain lines that they stand for, or not at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from jumpseat.agent.shell.plain_lines import plain_line
from jumpseat.agent.shell.syntax import parse_shell

PLAIN = {
    "for f in a b; do cat $f; done": "cat a\ncat b",
    "for f in a b; do\n  echo ${f}\n  cat $f.txt\ndone; ls": "echo a\n  cat a.txt\necho b\n  cat b.txt; ls",
    'for f in src/*.py; do wc -l "$f"; done': "wc -l src/*.py",
    "diff <(sort a) <(sort b | uniq) | head": "sort a\nsort b | uniq\ndiff /dev/null /dev/null | head",
}
SAME = (
    # The variable may have another value, or more than one word.
    "for f in a b; do read f; cat $f; done",
    "for f in a b; do f=c; cat $f; done",
    "for f in a b; do printf -v f c; cat $f; done",
    "for f in $(ls); do cat $f; done",
    "for f in $x; do cat $f; done",
    "for f in -r x; do rm $f; done",
    "for f in {a,b}; do cat $f; done",
    "for f in ~/x; do cat $f; done",
    "for f in src/*.py; do cat $f; done",
    'for f in src/*.py; do cat "$f".bak; done',
    'for f in src/*.py; do cat > "$f"; done',
    "for f in a b; do cat ${f%a}; done",
    "for f in a b; do cat ${!f}; done",
    "for f in; do cat $f; done",
    "for f; do cat $f; done",
    # Programs obey the variable.
    "for PATH in x; do cat a; done",
    "for http_proxy in x; do curl a; done",
    # The rest of a line would be a comment, or the text of a file.
    "for f in a b; do cat $f # x\ndone; rm a",
    "for f in a b; do cat << $f; done",
    # The loop is a part of a statement.
    "for f in a b; do cat $f; done | sh",
    "for f in a b; do cat $f; done > out",
    "x && for f in a b; do cat $f; done",
    "select f in a b; do cat $f; done",
    # What is read is code, or the command runs in another folder.
    "bash <(cat a)",
    "source <(cat a)",
    "sh < <(cat a)",
    "cat > >(sh)",
    "cat <(cat <(ls))",
    "cd /etc && cat <(cat shadow)",
    "cat <(ls # x\n)",
)


@pytest.mark.parametrize(("line", "plain"), PLAIN.items())
def test_a_loop_over_words_is_the_sequence_of_its_turns(line: str, plain: str) -> None:
    assert plain_line(line) == plain


@pytest.mark.parametrize("line", SAME)
def test_a_line_that_may_mean_anything_else_stays_as_it_is_and_is_in_doubt(line: str) -> None:
    assert plain_line(line) == line
    assert not parse_shell(line).certain


def test_the_plain_lines_print_what_bash_prints(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("a", "b", "a.txt", "b.txt", "src/x.py"):
        (tmp_path / name).write_text(f"{name}\n")

    def output(line: str) -> str:
        return subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        ).stdout

    for line, plain in list(PLAIN.items())[:3]:
        assert output(line) == output(plain) != ""


def test_commands_of_loops_are_found_for_rules_that_forbid() -> None:
    line = parse_shell("for f in a b; do rm -r $f; done")
    assert [command.identifier for command in line.commands] == ["rm -r"]
    assert ("rm", "-r", "b") in line.possible_commands
    assert parse_shell("curl").commands
