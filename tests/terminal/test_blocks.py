"""Streamed Markdown is split into blocks that never change, however the text is chunked."""

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


def test_blocks_do_not_depend_on_the_chunks() -> None:
    choose = random.Random(3)
    for _ in range(200):
        splitter, found, rest = BlockSplitter(), list[str](), TEXT
        while rest:
            length = choose.randrange(1, 12)
            found += splitter.feed(rest[:length])
            rest = rest[length:]
        assert [*found, splitter.finish()] == BLOCKS


def test_unfinished_block_is_available() -> None:
    splitter = BlockSplitter()
    assert splitter.feed("First.\n\nSec") == []
    assert splitter.feed("ond") == []
    assert splitter.pending == "First.\n\nSecond"
    assert splitter.feed("\n") == ["First.\n\n"]
    assert splitter.pending == "Second\n"


def test_fenced_code_is_one_block_whatever_its_content() -> None:
    splitter = BlockSplitter()
    assert splitter.feed("````\n```\n\n# no heading\n\n") == []
    assert splitter.feed("````\n") == ["````\n```\n\n# no heading\n\n````\n"]


def test_tail_of_a_long_block_is_returned_without_the_rest() -> None:
    splitter = BlockSplitter()
    for piece in ("```\n", *(f"line {number}\n" for number in range(1000)), "and ", "so ", "on"):
        assert splitter.feed(piece) == []
    assert splitter.size == len(splitter.pending)
    assert splitter.tail(20).endswith("line 999\nand so on")
    assert len(splitter.tail(20)) < 40
    assert splitter.tail(10**6) == splitter.pending
    splitter.feed("\n```\n")
    assert (splitter.size, splitter.pending) == (0, "")
