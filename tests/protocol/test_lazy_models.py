"""Models that are built at their first use behave like those that pydantic builds when they are defined."""

from __future__ import annotations

import copy
import threading
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, field_validator, model_validator

from jumpseat_protocol.lazy_models import LazyModel


class LazyShape(LazyModel):
    """A shape."""

    model_config = ConfigDict(alias_generator=str.upper, populate_by_name=True, defer_build=True)

    kind: ClassVar[str] = "shape"
    name: str = Field(min_length=1)
    tags: list[str] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _of_string(cls, data: Any) -> Any:
        return {"NAME": data} if isinstance(data, str) else data

    def described(self) -> str:
        return f"{self.kind} {self.name}"


class LazyCircle(LazyShape):
    model_config = ConfigDict(extra="forbid")

    radius: float = 1.0
    inner: LazyCircle | None = None

    @field_validator("radius")
    @classmethod
    def _positive(cls, radius: float) -> float:
        if radius <= 0:
            raise ValueError(f"expected a positive {cls.__name__}")
        return radius

    def described(self) -> str:
        return f"{super().described()} of {self.radius}"


class EagerShape(BaseModel):
    """A shape."""

    model_config = ConfigDict(alias_generator=str.upper, populate_by_name=True)

    kind: ClassVar[str] = "shape"
    name: str = Field(min_length=1)
    tags: list[str] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _of_string(cls, data: Any) -> Any:
        return {"NAME": data} if isinstance(data, str) else data

    def described(self) -> str:
        return f"{self.kind} {self.name}"


class EagerCircle(EagerShape):
    model_config = ConfigDict(extra="forbid")

    radius: float = 1.0
    inner: EagerCircle | None = None

    @field_validator("radius")
    @classmethod
    def _positive(cls, radius: float) -> float:
        if radius <= 0:
            raise ValueError(f"expected a positive {cls.__name__}")
        return radius

    def described(self) -> str:
        return f"{super().described()} of {self.radius}"


def behaviour(shape: Any, circle: Any) -> list[object]:
    """Return the results of all kinds of use of a model and a subclass of it, names of classes left out."""
    found: list[object] = [circle.kind, issubclass(circle, shape)]
    for value in ("c", {"NAME": "c", "RADIUS": 2, "INNER": {"name": "d", "tags": ["t"]}}):
        made = circle.model_validate(value)
        found += [made.model_dump(by_alias=True), made.described(), made == copy.deepcopy(made), made.tags]
    for bad in ({"name": ""}, {"name": "c", "radius": 0}, {"name": "c", "inner": {"name": "d", "more": 1}}, None):
        with pytest.raises(ValidationError) as caught:
            circle.model_validate(bad)
        found.append(caught.value.errors(include_url=False, include_context=False, include_input=False))
    made = circle(name="c", tags=["a"])
    found += [made.model_fields_set, made.model_copy(update={"radius": 3.0}).radius, hasattr(circle, "name")]
    found += [{name: field.alias for name, field in circle.model_fields.items()}, shape.__doc__]
    found.append(TypeAdapter(circle).json_schema())
    return [str(item).replace("Eager", "").replace("Lazy", "") for item in found]


def is_built(model: type) -> bool:
    return "__lazy_namespace__" not in vars(model)


def test_a_lazy_model_behaves_like_an_ordinary_one() -> None:
    assert behaviour(LazyShape, LazyCircle) == behaviour(EagerShape, EagerCircle)


class Part(LazyModel):
    size: int = 1


class Whole(LazyModel):
    part: Part | None = None
    others: list[Annotated[First | Second, Field(discriminator="kind")]]


class First(LazyModel):
    kind: Literal["first"]


class Second(LazyModel):
    kind: Literal["second"]
    of: Unused | None = None


class Unused(LazyModel):
    pass


class Wrong(LazyModel):
    clash = 2


def test_a_model_is_built_when_it_or_a_model_with_it_is_used() -> None:
    assert not any(map(is_built, (Part, Whole, First, Second, Unused)))
    whole = Whole.model_validate({"part": {"size": 2}, "others": [{"kind": "second"}, {"kind": "first"}]})
    assert whole.part is not None
    assert whole.part.size == 2
    assert [type(other) for other in whole.others] == [Second, First]
    assert all(map(is_built, (Part, Whole, First, Second, Unused)))


def test_a_mistake_in_a_model_is_reported_at_every_use() -> None:
    for _ in range(2):
        with pytest.raises(Exception, match="clash"):
            Wrong.model_validate({})


class Shared(LazyModel):
    values: list[Part]


def test_threads_that_use_a_model_for_the_first_time_get_the_same_one() -> None:
    start = threading.Barrier(8)
    found: list[object] = []

    def use() -> None:
        start.wait()
        found.append((list(Shared.model_fields), Shared(values=[Part()]).model_dump()))

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(["values"], {"values": [{"size": 1}]})] * 8
