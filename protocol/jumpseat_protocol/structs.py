"""Additions to :class:`msgspec.Struct` for data classes.

Hundreds of data classes are defined at every start: a struct takes an eighth of the time of a standard dataclass.
"""

from __future__ import annotations

from typing import ClassVar


class Discreet:
    """Leaves the fields in ``hidden`` out of the representation of a struct, which logs may show."""

    __slots__ = ()
    __struct_fields__: ClassVar[tuple[str, ...]]
    hidden: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        shown = (name for name in self.__struct_fields__ if name not in self.hidden)
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


class PartlyCompared:
    """Leaves the fields in ``uncompared`` out of the comparison of structs."""

    __slots__ = ()
    __struct_fields__: ClassVar[tuple[str, ...]]
    uncompared: ClassVar[tuple[str, ...]] = ()

    def _compared(self) -> list[object]:
        return [getattr(self, name) for name in self.__struct_fields__ if name not in self.uncompared]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartlyCompared) or type(other) is not type(self):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(tuple(self._compared()))
