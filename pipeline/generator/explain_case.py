"""What the sentences of a migration report are made for, and what they are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipeline.generator.explain_calls import REST
from pipeline.generator.explain_values import Unknown
from pipeline.generator.settings import GeneratorSettings

__all__ = ["Case", "Finding"]

_DEFAULT_SIZE = (256, 256)


@dataclass(frozen=True)
class Finding:
    """What one setting does.

    Attributes:
        setting: its name and value.
        keras: what it does in Keras's class.
        ours: what it does in this package's.
        exact: what it does in this package's with `keras_exact=True`; None if that changes nothing.
    """

    setting: str
    keras: str
    ours: str
    exact: str | None = None


@dataclass(frozen=True, kw_only=True)
class Case:
    """A generator and one call of a flow method.

    Attributes:
        settings: of the generator.
        flow: arguments of the flow method by name, and the method's own name under `method`; None if there is none.
        unknown: the generator's arguments whose value nobody knows; `**` stands for any.
        is_fitted: whether the generator's `fit` is called; None if nobody knows.
    """

    settings: GeneratorSettings
    flow: Mapping[str, Any] | None = None
    unknown: frozenset[str] = frozenset()
    is_fitted: bool | None = None

    @property
    def method(self) -> str | None:
        """`flow`, `flow_from_directory`, `flow_from_dataframe`, or None if nobody knows."""
        return self.flow.get("method") if self.flow else None

    @property
    def may_be_files(self) -> bool:
        """Whether images may come from files."""
        return self.method != "flow"

    @property
    def may_be_arrays(self) -> bool:
        """Whether images may come from arrays."""
        return self.method in (None, "flow")

    @property
    def size(self) -> tuple[int, int] | None:
        """(height, width) of the images, or None if nobody knows."""
        if self.method in (None, "flow"):
            return None
        size = _DEFAULT_SIZE if self.leaves_out("target_size") else self.flow.get("target_size")
        is_size = isinstance(size, tuple | list) and len(size) == 2 and all(type(side) is int for side in size)
        return tuple(size) if is_size else None

    @property
    def is_square(self) -> bool:
        """Whether all images are known to be square."""
        return self.size is not None and self.size[0] == self.size[1]

    def knows(self, argument: str) -> bool:
        """Whether the value of an argument of the generator is known, be it given or the default."""
        return argument not in self.unknown and REST not in self.unknown

    def leaves_out(self, argument: str) -> bool:
        """Whether the flow's call is known not to have an argument."""
        return self.flow is not None and argument not in self.flow and REST not in self.flow

    def given(self, argument: str) -> Any:
        """A value that the flow's call has and that is known, else None."""
        value = (self.flow or {}).get(argument)
        return None if isinstance(value, Unknown) else value
