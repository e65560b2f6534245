"""Streamed Markdown is cut into blocks that stay as they are, however it arrives."""

from __future__ import annotations

import random

from jumpseat_terminal.blocks import BlockSplitter

TEXT = """\
A paragraph
of two lines.

- an item

- another one

  with a second paragraph

Text.
```python
a = 1

b = 2
```
Right behind it.

1. one

   ```
   code in an item
   ```

2. two

~~~
```
~~~

The end"""

BLOCKS = [
    "A paragraph\nof two lines.\n\n",
    "- an item\n\n- another one\n\n  with a second paragraph\n\n",
    "Text.\n```python\na = 1\n\nb = 2\n```\n",
    "Right behind it.\n\n",
    "1. one\n\n   ```\n   code in an item\n   ```\n\n2. two\n\n",
    "~~~\n```\n~~~\n",
    "\nThe end",
]


def test_blocks_are_the_same_however_the_text_is_cut() -> None:
    choose = random.Random(3)
    for _ in range(200):
        splitter, found, rest = BlockSplitter(), list[str](), TEXT
        while rest:
            length = choose.randrange(1, 12)
            found += splitter.feed(rest[:length])
            rest = rest[length:]
        assert [*found, splitter.finish()] == BLOCKS


def test_what_is_not_finished_is_there_to_be_shown() -> None:
    splitter = BlockSplitter()
    assert splitter.feed("First.\n\nSec") == []
    assert splitter.feed("ond") == []
    assert splitter.rest == "First.\n\nSecond"
    assert splitter.feed("\n") == ["First.\n\n"]
    assert splitter.rest == "Second\n"


def test_code_is_one_block_whatever_is_in_it() -> None:
    splitter = BlockSplitter()
    assert splitter.feed("````\n```\n\n# no heading\n\n") == []
    assert splitter.feed("````\n") == ["````\n```\n\n# no heading\n\n````\n"]


def test_the_end_of_a_long_block_is_had_without_the_rest_of_it() -> None:
    splitter = BlockSplitter()
    for piece in ("```\n", *(f"line {number}\n" for number in range(1000)), "and ", "so ", "on"):
        assert splitter.feed(piece) == []
    assert splitter.size == len(splitter.rest)
    assert splitter.tail(20).endswith("line 999\nand so on")
    assert len(splitter.tail(20)) < 40
    assert splitter.tail(10**6) == splitter.rest
    splitter.feed("\n```\n")
    assert (splitter.size, splitter.rest) == (0, "")
