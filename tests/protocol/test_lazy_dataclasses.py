"""Dataclasses whose methods are generated at first use behave like those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final, Generic, TypeVar

import pytest
from pydantic import TypeAdapter
from typing_extensions import is_typeddict

from jumpseat_protocol import lazy_dataclasses
from jumpseat_protocol.lazy_libraries import in_libraries

T = TypeVar("T")
Decorator = Callable[..., Any]

OPTIONS: Final[list[dict[str, bool]]] = [
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"slots": True, "kw_only": True},
    {"slots": True, "eq": False},
    {"slots": True, "kw_only": True, "eq": False, "repr": False},
]


@pytest.fixture(params=OPTIONS, ids=lambda options: " ".join(options) or "plain")
def options(request: pytest.FixtureRequest) -> dict[str, bool]:
    return request.param


def family(decorator: Decorator, options: dict[str, bool]) -> tuple[Any, Any]:
    """Return a class with all kinds of fields, and a subclass of it."""

    @decorator(**options)
    class Base(Generic[T]):
        """A base."""

        kind: ClassVar[str] = "base"
        name: str
        size: int = 3
        tags: list[str] = dataclasses.field(default_factory=list)  # pyright: ignore[reportUnknownVariableType]
        kept: int | None = dataclasses.field(default=None, init=False, repr=False, compare=False)

        def described(self) -> str:
            return f"{self.kind} {self.name}"

    @decorator(**options)
    class Derived(Base[str]):
        color: str = "red"
        name: str = "unnamed"

        def __post_init__(self) -> None:
            if self.color == "invalid":
                raise ValueError(self.color)

    return Base, Derived


def observed(action: Callable[[], Any]) -> Any:
    """Return what an action returns or raises."""
    try:
        return action()
    except Exception as error:
        return type(error), str(error)


def behaviour(base: Any, derived: Any, *, first: Callable[[Any], Any]) -> list[Any]:
    """Return what the classes do; ``first`` is what is asked of the derived class before anything else."""

    def matched(value: Any) -> Any:
        match value:
            case base(name, size):  # pyright: ignore[reportUnknownVariableType]
                return name, size
            case _:
                return None

    def changed(value: Any) -> Any:
        value.size = 9
        return value.size

    def cyclic(value: Any) -> Any:
        value.tags.append(value)
        return value

    def unknown(value: Any) -> None:
        value.other = 1

    one = lambda: base(name="a", size=2)  # noqa: E731
    steps: list[Callable[[], Any]] = [
        lambda: first(derived),
        lambda: one().described(),
        lambda: one() == base(name="a", size=2),
        lambda: one() == derived(name="a", size=2),
        lambda: base(name="a") != base(name="b"),
        lambda: hash(one()) == hash(base(name="a", size=2)),
        lambda: base("a", 2).size,
        lambda: derived("a", 2, ["x"]).tags,
        lambda: derived("a", name="b"),
        lambda: derived(*"abcdef"),
        lambda: derived(kept=1),
        base,
        lambda: base(name="a", nothing=1),
        lambda: [(field.name, field.init) for field in dataclasses.fields(derived)],
        lambda: dataclasses.asdict(derived(color="blue", tags=["x"])),
        lambda: dataclasses.replace(derived(), size=7).size,
        lambda: derived(color="invalid"),
        lambda: one().tags is one().tags,
        lambda: one().kept,
        lambda: matched(one()),
        lambda: changed(one()),
        lambda: unknown(one()) if "__slots__" not in vars(base) else None,
        lambda: copy.deepcopy(one()).name,
        lambda: copy.copy(one()).size,
        lambda: repr(one()) if base.__repr__ is not object.__repr__ else "the address",
        lambda: repr(cyclic(one())) if base.__repr__ is not object.__repr__ else "the address",
        lambda: derived.__match_args__,
        lambda: "__slots__" in vars(derived) and derived.__slots__,
        lambda: derived.__doc__ if base.__doc__ == "A base." else "lost",
        lambda: (base.__name__, base.__qualname__, base.__module__),
        lambda: TypeAdapter(base).validate_python({"name": "a", "size": "4"}).size,
    ]
    return [observed(step) for step in steps]


def without_docs(results: list[Any]) -> list[Any]:
    # The standard decorator makes up a docstring from the signature, which takes time and which nothing reads.
    return [result for place, result in enumerate(results) if place != 28]


def _make(cls: Any) -> Any:
    return cls().size


def _count_fields(cls: Any) -> int:
    return len(dataclasses.fields(cls))


def _is_derived(cls: Any) -> bool:
    return issubclass(cls, cls.__bases__[0])


@pytest.mark.parametrize("few", [0, 100], ids=["compiled", "not compiled"])
@pytest.mark.parametrize(
    "first",
    [_make, dataclasses.is_dataclass, _count_fields, _is_derived],
)
def test_it_behaves_like_the_standard_decorator(
    options: dict[str, bool], first: Callable[[Any], Any], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lazy_dataclasses, "FEW", few)
    standard = behaviour(*family(dataclasses.dataclass, options), first=first)

    lazy = behaviour(*family(lazy_dataclasses.dataclass, options), first=first)

    assert without_docs(lazy) == without_docs(standard)


def test_a_class_with_slots_from_the_start_is_not_made_again() -> None:
    class Base(metaclass=lazy_dataclasses.SlottedType):
        kind: ClassVar[str] = "base"

    class Circle(Base):
        x: int
        size: int = 3
        tags: list[str] = dataclasses.field(default_factory=list[str])

        def area(self) -> int:
            return self.size**2

    class Ring(Circle):
        x: int = 1
        width: int = 1

    made: list[Any] = [lazy_dataclasses.dataclass(slots=True, kw_only=True)(cls) for cls in (Circle, Ring)]

    assert made == [Circle, Ring]
    assert [cls.__slots__ for cls in made] == [("x", "size", "tags"), ("width",)]
    ring = made[1](size=4)
    assert (ring.x, ring.area(), ring.tags, ring.width, ring.kind) == (1, 16, [], 1, "base")
    assert dataclasses.replace(ring, width=2) != ring
    assert not hasattr(ring, "__dict__")


@lazy_dataclasses.dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


def test_a_frozen_instance_survives_pickling_and_refuses_changes() -> None:
    point = Point(1, 2)

    assert pickle.loads(pickle.dumps(point)) == point
    with pytest.raises(dataclasses.FrozenInstanceError):
        point.x = 3  # pyright: ignore[reportAttributeAccessIssue]


def test_nothing_is_generated_before_it_is_needed() -> None:
    @lazy_dataclasses.dataclass(slots=True)
    class Unused:
        name: str

    before: Any = Unused.__init__

    assert Unused("a") == Unused("a")

    assert Unused.__init__ is before
    for _ in range(lazy_dataclasses.FEW):
        Unused("a")
    compiled: Any = Unused.__init__
    assert compiled is not before
    assert isinstance(vars(Unused)["__dataclass_fields__"], dict) is False
    assert [field.name for field in dataclasses.fields(Unused)] == ["name"]
    assert isinstance(vars(Unused)["__dataclass_fields__"], dict)


LIBRARY = """
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import ClassVar, TypedDict

class Options(TypedDict, total=False):
    size: int

class MoreOptions(Options):
    name: str

@dataclass(frozen=True)
class Plain:
    kind: ClassVar[str] = "plain"
    size: int
    tags: list[str] = field(default_factory=list)

@dataclass(order=True)
class Ordered:
    size: int

@dataclass
class Counted:
    count: int = field(init=False)
    start: InitVar[int] = 1
    _: KW_ONLY
    step: int = 1

    def __post_init__(self, start: int) -> None:
        self.count = start + self.step
"""


def test_libraries_define_lazy_dataclasses_while_they_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "library_with_dataclasses.py").write_text(LIBRARY)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    with in_libraries():
        library: Any = import_module("library_with_dataclasses")

    assert not is_typeddict(library.Options)
    del sys.modules["library_with_dataclasses"]
    standard: Any = import_module("library_with_dataclasses")
    assert [isinstance(vars(module.Plain)["__dataclass_fields__"], dict) for module in (library, standard)] == [
        False,
        True,
    ]
    for module in (library, standard):
        assert [field.name for field in dataclasses.fields(module.Plain)] == ["size", "tags"]
        assert module.Plain(1) == module.Plain(1, [])
        assert module.Ordered(1) < module.Ordered(2)
        assert module.Counted(start=4, step=2).count == 6
        assert type(module.MoreOptions(size=1, name="a")) is dict
        assert module.MoreOptions({"size": 1}, name="a") == {"size": 1, "name": "a"}


def test_typed_dicts_of_our_own_packages_stay_typed_dicts_while_libraries_are_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jumpseat_of_a_test.py").write_text(LIBRARY)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    with in_libraries():
        ours: Any = import_module("jumpseat_of_a_test")

    assert is_typeddict(ours.Options)
    assert TypeAdapter(ours.Options).validate_python({"size": "3"}) == {"size": 3}
