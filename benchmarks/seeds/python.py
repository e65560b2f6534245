"""Errors for basedpyright."""

from __future__ import annotations

from typing import Final

from benchmarks.seeds.seed import Project, create, delete, edit, move

FILES: Final = {
    "shapes.py": """\
from dataclasses import dataclass

old: str = 3


@dataclass
class Shape:
    name: str
    width: float
    height: float

    def area(self) -> float:
        return self.width * self.height

    def scaled(self, factor: float) -> "Shape":
        return Shape(self.name, self.width * factor, self.height * factor)


class Circle(Shape):
    def area(self) -> float:
        return self.width * self.width * 3.14


def total(shapes: list[Shape]) -> float:
    return sum(shape.area() for shape in shapes)


def largest(shapes: list[Shape], least: float = 0.0) -> Shape | None:
    found = None
    for shape in shapes:
        if shape.area() > least:
            least = shape.area()
            found = shape
    return found
""",
    "store.py": """\
import json
from pathlib import Path

from shapes import Shape, largest


class Store:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.items: dict[str, Shape] = {}

    def load(self) -> int:
        for entry in json.loads(self.path.read_text()):
            shape = Shape(entry["name"], entry["width"], entry["height"])
            self.items[shape.name] = shape
        return len(self.items)

    def biggest(self) -> Shape | None:
        return largest(list(self.items.values()), 1.0)

    def forget(self, name: str) -> bool:
        return self.items.pop(name, None) is not None


def broken(store: Store) -> int:
    return store.missing_since_long()
""",
    "report.py": """\
import sys

from helpers import padded
from shapes import Circle, Shape, total
from store import Store


def line_of(shape: Shape) -> str:
    return padded(shape.name, 20) + str(shape.area())


def report(store: Store) -> str:
    shapes = [*store.items.values(), Circle("ring", 2.0, 2.0)]
    lines = [line_of(shape) for shape in shapes]
    lines.append(f"total {total(shapes)}")
    return "\\n".join(lines)


def main(argv: list[str]) -> int:
    print(argv[0], older)
    return len(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
""",
    "helpers.py": """\
def padded(text: str, width: int) -> str:
    return text.ljust(width)


def unused(value: int) -> int:
    return value
""",
}

SEEDS: Final = [
    edit("unknown name", "shapes.py", "self.width * self.height", "self.width * heigth", "* heigth"),
    edit("unknown function", "report.py", "str(shape.area())", "text_of(shape.area())", "text_of"),
    edit("unknown name in a comprehension", "report.py", "for shape in shapes]", "for shape in all_of]", "all_of"),
    edit("unknown member", "shapes.py", "least = shape.area()", "least = shape.surface()", "shape.surface"),
    edit(
        "unknown member of self", "store.py", "return len(self.items)", "return len(self.entries)", "self.entries"
    ),
    edit("unknown member of a module", "store.py", "json.loads(", "json.parse(", "json.parse"),
    edit("wrong type of an argument", "report.py", "padded(shape.name, 20)", 'padded(shape.name, "20")', '"20"'),
    edit("wrong order of arguments", "report.py", "padded(shape.name, 20)", "padded(20, shape.name)", "padded(20"),
    edit("an argument less", "report.py", "padded(shape.name, 20)", "padded(shape.name)", "padded(shape.name)"),
    edit("an argument more", "report.py", "total(shapes)}", "total(shapes, 2)}", "total(shapes, 2)"),
    edit("unknown keyword", "store.py", "1.0)", "smallest=1.0)", "smallest="),
    edit("wrong return value", "store.py", "return len(self.items)", "return self.items", "return self.items"),
    edit("no return value", "store.py", "is not None", "is not None if name else None", "if name else"),
    edit(
        "wrong type in a container",
        "store.py",
        "self.items[shape.name] = shape",
        "self.items[shape.name] = 1",
        "] = 1",
    ),
    edit("wrong key", "store.py", "self.items[shape.name] = shape", "self.items[1] = shape", "self.items[1]"),
    edit("None is not handled", "store.py", "return largest(", "return 1.0 + largest(", "1.0 + largest"),
    edit(
        "wrong operator",
        "report.py",
        "padded(shape.name, 20) + str(shape.area())",
        "padded(shape.name, 20) + shape.area()",
        "+ shape.area",
    ),
    edit("unknown type", "helpers.py", "value: int", "value: Int", "Int"),
    edit("unknown module", "report.py", "import sys\n", "import sys\nimport shapez\n", "shapez"),
    edit("unknown name of a module", "report.py", "Circle, Shape, total", "Circle, Shape, sum_of, total", "sum_of"),
    edit("call of what is no function", "store.py", "self.path.read_text()", "self.path()", "self.path()"),
    edit("index of what has none", "report.py", "argv[0]", "main[0]", "main[0]"),
    edit("two errors", "helpers.py", "return value", "return valu + unknown", "return valu + "),
    edit("an error below an old one", "shapes.py", "old: str = 3\n", 'old: str = 3\nnew: int = "3"\n', "new: int"),
    edit(
        "an error in the line of an old one",
        "report.py",
        "print(argv[0], older)",
        "print(argv[0], older, oldest)",
        "oldest",
    ),
    edit(
        "lines above an old error",
        "store.py",
        "def broken",
        "def added(x: int) -> str:\n    return x\n\n\ndef broken",
        "return x",
    ),
    edit(
        "another override",
        "shapes.py",
        "class Circle(Shape):\n    def area(self) -> float:",
        "class Circle(Shape):\n    def area(self) -> str:",
        "area(self) -> str",
        "3.14",
    ),
    edit("another name of a function", "shapes.py", "def total(", "def sum_of(", "report.py: import Circle"),
    edit(
        "a parameter more",
        "shapes.py",
        "def total(shapes: list[Shape])",
        "def total(shapes: list[Shape], unit: str)",
        "report.py: total(shapes)}",
    ),
    edit(
        "another type of a parameter",
        "shapes.py",
        "least: float = 0.0",
        'least: str = ""',
        "> least",
        "least = shape.area()",
        "store.py: 1.0)",
    ),
    edit(
        "a field less",
        "shapes.py",
        "    width: float\n    height: float\n",
        "    width: float\n",
        "self.width * self.height",
        "Shape(self.name, self",
        "store.py: Shape(entry",
        "report.py: Circle(",
    ),
    edit(
        "another name of a field",
        "helpers.py",
        "def padded(text: str, width: int)",
        "def padded(text: str, width: int, fill: str)",
        "report.py: padded(",
    ),
    edit(
        "another type of a result",
        "shapes.py",
        "def total(shapes: list[Shape]) -> float:\n    return sum(",
        "def total(shapes: list[Shape]) -> str:\n    return sum(",
        "return sum(",
    ),
    edit(
        "another name of a class",
        "store.py",
        "class Store:",
        "class Shop:",
        "store: Store",
        "report.py: import Store",
        "report.py: total(shapes)",
    ),
    edit(
        "another name of a member",
        "store.py",
        "self.path = path",
        "self.file = path",
        "self.path.read_text",
    ),
    create("a new file", "fresh.py", "from shapes import total\n\nprint(total(1), nothing)\n", "fresh.py: print("),
    create("a new file without errors", "clean.py", "from shapes import total\n\nprint(total([]))\n"),
    delete("helpers.py", "report.py: from helpers"),
    move("helpers.py", "tools.py", "report.py: from helpers"),
    edit(
        "harmless: lines above old errors",
        "shapes.py",
        "from dataclasses",
        "# A note.\n# Another.\n\nfrom dataclasses",
    ),
    edit("harmless: another body", "helpers.py", "return text.ljust(width)", "return text.rjust(width)"),
]

PYTHON: Final = Project(
    "Python",
    "basedpyright-langserver",
    FILES,
    SEEDS,
    "modules/module_NUMBER.py",
    'def value_NUMBER(x: int, name: str = "a") -> int:\n'
    '    """Return x."""\n    if name:\n        return x * 2\n    return x\n\n\n',
)
