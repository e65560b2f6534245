"""The indentation of new lines: from the system of the passage, as the model wrote it, to that of the file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final, TypeAlias

from msgspec import Struct

Rule: TypeAlias = Callable[[str], str | None]
"""Returns the file's indentation for one of the model; ``None`` if it is not certain."""

Pair: TypeAlias = tuple[str, str]
"""The indentation of a line in the passage, and in the file."""


def find_rule(pairs: Sequence[Pair], others: Sequence[str], step: int) -> Rule | None:
    """Return the rule that explains all ``pairs``.

    ``others`` are the other indentations that the model wrote, ``step`` the number of spaces per level in the file.
    """
    known = dict(pairs)
    if any(known[written] != there for written, there in pairs):
        return None
    if all(written == there for written, there in pairs):
        return lambda written: written
    if len(known) == 1 and step:
        written, there = pairs[0]
        model_step = _step([*known, *others])
        if written and model_step not in (0, step) and len(there) * model_step == len(written) * step:
            if all((len(other) + len(there) - len(written)) % step == 0 for other in others):
                # The block may as well be moved as a whole.
                return lambda _: None
            return _scale(known, Fraction(step, model_step))
    return _shift(known, others) or _tabs(known) or _scale(known)


def _shift(known: dict[str, str], others: Sequence[str]) -> Rule | None:
    """Return a rule for a block that was moved to the left or to the right as a whole."""
    written, there = next(pair for pair in known.items() if pair[0] != pair[1])
    if there.endswith(written):
        added = there[: len(there) - len(written)]
        if any(file != added + model for model, file in known.items()):
            return None
        step = _step([*known, *others])
        aligns = " " in "".join(known)

        def deeper(model: str) -> str | None:
            if "\t" in added and " " in model and not aligns:
                # The model wrote spaces where the file has tabs.
                columns = len(model) if "\t" not in model else 0
                return added + "\t" * (columns // step) if step and columns and columns % step == 0 else None
            return added + model

        return deeper
    if written.endswith(there):
        removed = written[: len(written) - len(there)]
        if any(model != removed + file for model, file in known.items()):
            return None
        return lambda model: model[len(removed) :] if model.startswith(removed) else None
    return None


def indentation_step(text: str) -> int:
    """Return the number of spaces per level in a text, 0 if it has none."""
    sizes = [len(match[0]) for match in _SPACES.finditer(text, 0, 100_000)]
    sizes = [size for size in sizes if size]
    # Few lines are aligned with something else.
    return next((step for step in (4, 2, 3) if sizes and _share(sizes, step) > ALIGNED), 0)


def _share(sizes: Sequence[int], step: int) -> float:
    return sum(size % step == 0 for size in sizes) / len(sizes)


def _step(indentations: Sequence[str]) -> int:
    """Return the number of spaces of one level, 0 if it is unknown."""
    sizes = sorted({len(blanks) for blanks in indentations if blanks and not blanks.strip(" ")} | {0})
    steps = [after - before for before, after in pairwise(sizes)]
    return min(steps, default=0)


def _tabs(known: dict[str, str]) -> Rule | None:
    """Return a rule for tabs in place of spaces, or the other way round; blanks that align are kept."""
    for width in (2, 3, 4, 8):
        spaces = " " * width
        if all(model.replace("\t", spaces) == file for model, file in known.items()):
            return lambda model, spaces=spaces: model.replace("\t", spaces)
        if all(file.replace("\t", spaces) == model for model, file in known.items()) and all(
            _tabbed(model, width) == file for model, file in known.items()
        ):
            return lambda model, width=width: _tabbed(model, width)
    return None


def _tabbed(blanks: str, width: int) -> str:
    count, rest = divmod(len(blanks), width)
    return "\t" * count + " " * rest


def _scale(known: dict[str, str], factor: Fraction | None = None) -> Rule | None:
    """Return a rule for other blanks or another number of blanks per level; ``factor`` is that of the sizes."""
    models, files = "".join(known), "".join(known.values())
    if len(set(models)) != 1 or len(set(files)) != 1:
        return None
    blank, file_blank = models[0], files[0]
    points = sorted({(len(model), len(file)) for model, file in known.items()})
    (size, file_size), (last_size, last_file_size) = points[0], points[-1]
    if len(points) > 1:
        factor = Fraction(last_file_size - file_size, last_size - size)
    elif factor is None:
        if blank == file_blank or not size or not file_size:
            return None
        factor = Fraction(file_size, size)
    if factor <= 0 or any((length - size) * factor + file_size != file_length for length, file_length in points):
        return None

    def scaled(model: str) -> str | None:
        count = (len(model) - size) * factor + file_size
        if model.strip(blank) or count < 0 or count.denominator != 1:
            return None
        return file_blank * int(count)

    return scaled


ALIGNED: Final = 0.7
"""Share of the lines of a text whose indentation consists of whole levels."""


class Block(Struct, frozen=True):
    """The lines of a change, blank lines excluded.

    ``pairs`` are the indentations of the lines of the passage, as the model wrote them and in the file. ``new`` are
    those of the new lines, ``texts`` the rest of these lines, and ``partners`` the index of the line of the passage
    that each of them keeps or replaces. ``step`` is the number of spaces per level in the file, ``following`` its
    next line. A change ``within`` a line leaves the blanks before it alone.
    """

    pairs: Sequence[Pair]
    new: Sequence[str]
    texts: Sequence[str]
    partners: Sequence[int | None]
    step: int = 0
    following: str = ""
    within: bool = False


def new_indentations(block: Block) -> list[str] | None:
    """Return the indentation of each new line in the file; ``None`` if it is not certain."""
    written, there = block.pairs[0]
    if block.within:
        first = block.new[0].removeprefix(written)
        if len(block.pairs) == 1:
            return [first, *block.new[1:]]
        rest = _choose(block, find_rule(block.pairs[1:], block.new[1:], block.step), 1)
        return None if rest is None else [first, *rest]
    if len(block.pairs) == 1 and written != there:
        return _of_one_line(block, written, there)
    rule = find_rule(block.pairs, block.new, block.step)
    rest_as_in_file = all(blanks == file for blanks, file in block.pairs[1:])
    if written or not there or (rule is not None and not rest_as_in_file):
        return _choose(block, rule, 0)
    # The first line lacks its indentation.
    rest_rule = find_rule(block.pairs[1:], block.new[1:], block.step)
    rest = None if rest_rule is None else _choose(block, rest_rule, 1)
    if rest is None:
        return None
    if block.new[0] == written and block.partners[0] is not None:
        there = block.pairs[block.partners[0]][1]
    return [there if block.new[0] in (written, there) else block.new[0], *rest]


def closes_another_block(pairs: Sequence[Pair]) -> bool:
    """Return whether the last line, which has signs alone, is one of another block.

    Its indentation shows which block it closes, if that of the lines before follows a rule.
    """
    written, there = pairs[-1]
    before = pairs[1:-1] if pairs[0][0] != pairs[0][1] else pairs[:-1]
    rule = find_rule(before, [written], 0) if len(before) > 1 else None
    meant = None if rule is None else rule(written)
    return meant is not None and meant != there


def _of_one_line(block: Block, written: str, there: str) -> list[str] | None:
    """Return the indentations for the change of one line, which says little about the lines around."""
    new = block.new
    if new[0] == there:
        return list(new)
    if new[0] != written:
        return None
    rule = find_rule(block.pairs, new, block.step)
    moved = [there if blanks == written else _apply(rule, blanks, ()) for blanks in new]
    block_moved = [blanks for blanks in moved if blanks is not None]
    as_written = [there, *new[1:]]
    if len(block_moved) != len(new):
        return as_written if len(new) == 1 else None
    if written or block_moved == as_written:
        return block_moved
    faults, faults_as_written = (_faults(blanks, block) for blanks in (block_moved, as_written))
    if faults != faults_as_written:
        if faults > faults_as_written:
            return as_written
        # Lines that have the indentation of the file may be meant as they are.
        return None if all(blanks.startswith(there) for blanks in new[1:]) else block_moved
    kept = next((index for index, partner in enumerate(block.partners) if index and partner is not None), None)
    if kept is not None and new[kept] == written:
        return block_moved
    # After an opening line, the other lines may be nested instead.
    return as_written if kept is not None and new[kept] == there and block.texts[0][-1:] not in _OPENERS else None


def _faults(indentations: Sequence[str], block: Block) -> int:
    """Count the lines whose indentation does not fit to the line before."""
    lines = list(zip(map(len, indentations), block.texts, strict=True))
    if following := block.following.lstrip():
        lines.append((len(block.following) - len(following), following))
    step = 0 if "\t" in "".join(indentations) else block.step
    return sum(_is_fault(before, line, step) for before, line in pairwise(lines))


def _is_fault(before: tuple[int, str], line: tuple[int, str], step: int) -> bool:
    (size, text), (next_size, next_text) = before, line
    opens, closes = text[-1:] in _OPENERS, next_text[:1] in _CLOSERS
    if opens:
        return next_size < size if closes else next_size <= size or next_size > size + (step or next_size)
    if closes:
        return next_size >= size
    return next_size > size and text[-1:] not in _CONTINUED


_SPACES: Final = re.compile(r"^ *(?=[^ *\t\r\n])", re.MULTILINE)
_OPENERS: Final = tuple(":{([")
_CLOSERS: Final = tuple("})]")
_CONTINUED: Final = tuple(",\\=+-*/|&")


def _choose(block: Block, rule: Rule | None, start: int) -> list[str] | None:
    """Decide whether the new lines have the same slip as the passage, or the indentation of the file."""
    pairs = block.pairs
    slipped: list[str | None] = []
    for index in range(start, len(block.new)):
        written, partner = block.new[index], block.partners[index]
        kept = partner is not None and pairs[partner][0] == written
        slipped.append(pairs[partner][1] if partner is not None and kept else _apply(rule, written, pairs[start:]))
    clean = list(block.new[start:])
    if slipped == clean or all(written == there for written, there in pairs[start:]):
        return clean
    same = _has_same_slip(block, start, slipped)
    if same is None:
        return None
    certain = [indentation for indentation in slipped if indentation is not None] if same else clean
    if len(certain) != len(slipped) or not _keeps_blanks(block, start, certain):
        return None
    return certain


def _keeps_blanks(block: Block, start: int, indentations: Sequence[str]) -> bool:
    """Return whether the lines of the file have their indentation, or a part of it, or blanks in addition."""
    for indentation, partner in zip(indentations, block.partners[start:], strict=True):
        if partner is not None:
            there = block.pairs[partner][1]
            if not (indentation.startswith(there) or there.startswith(indentation) or indentation.endswith(there)):
                return False
    return True


def _apply(rule: Rule | None, written: str, pairs: Sequence[Pair]) -> str | None:
    known = {file for model, file in pairs if model == written}
    if len(known) == 1:
        return known.pop()
    return None if rule is None else rule(written)


def _has_same_slip(block: Block, start: int, slipped: Sequence[str | None]) -> bool | None:
    """Return whether the new lines are indented like the passage, not like the file; ``None`` if it is unclear.

    ``slipped`` are the indentations in the file if they are.
    """
    blanks_of_file = set("".join(there for _, there in block.pairs[start:]))
    if blanks_of_file and not set("".join(block.new[start:])) <= blanks_of_file:
        # Tabs in a passage with spaces, or the other way round.
        return True
    if not start:
        written, there = block.pairs[block.partners[0] or 0]
        if (block.new[0] == written) != (block.new[0] == there):
            return block.new[0] == written
    kept = [
        (blanks, *block.pairs[partner], block.pairs[partner][1] if moved is None else moved)
        for blanks, partner, moved in zip(block.new[start:], block.partners[start:], slipped, strict=True)
        if partner is not None
    ]
    written, there = ([pair[side] for pair in block.pairs] for side in (0, 1))
    parts = [_has_parts_of_levels(blanks, block.step) for blanks in (written, there, block.new[start:])]
    if parts == [True, False, True]:
        # The levels of the model are not those of the file.
        return True
    # A block that was moved as a whole is moved by the same number of blanks.
    jumps = _count_jumps([len(moved) - len(there) for _, _, there, moved in kept])
    jumps_from_file = _count_jumps([len(blanks) - len(there) for blanks, _, there, _ in kept])
    if jumps != jumps_from_file:
        return jumps < jumps_from_file
    # Later lines may be nested, so that they have the other indentation by chance.
    return next(
        (blanks == written for blanks, written, there, _ in kept if (blanks == written) != (blanks == there)), None
    )


def _has_parts_of_levels(indentations: Sequence[str], step: int) -> bool:
    return step > 0 and any(len(blanks) % step for blanks in indentations)


def _count_jumps(distances: Sequence[int]) -> int:
    return sum(before != after for before, after in pairwise(distances))
