"""The exception for a kernel that can't be derived, with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Literal, TypeAlias, final

from kerngen.source.text import Span

Lacking: TypeAlias = Literal["rule", "parts", "prod", "infinite"]
"""Why an equation has no derivative: an operation in it has no rule, its tensor is written
in parts, it is the gradient of a `prod`, or it divides by 0."""


@final
class Kind(Enum):
    """The reasons why a derivation fails."""

    BY_UNKNOWN = "by unknown"
    BY_INTEGER = "by integer"
    BY_TWICE = "by twice"
    IN_PLACE = "in place"
    GIVEN_UNKNOWN = "given unknown"
    GIVEN_UNUSED = "given unused"
    ZERO = "zero"
    NO_DERIVATIVE = "no derivative"
    TOO_LARGE = "too large"


@final
class GradientError(Exception):
    """A gradient that cannot be derived.

    `fields` are the names in the message; `span` is a place in the forward program; `lacking`
    is the cause of `Kind.NO_DERIVATIVE`.
    """

    def __init__(
        self,
        kind: Kind,
        fields: Mapping[str, str],
        span: Span | None = None,
        *,
        lacking: Lacking = "rule",
    ) -> None:
        super().__init__(kind.value, dict(fields))
        self.kind = kind
        self.fields = dict(fields)
        self.span = span
        self.lacking: Lacking = lacking
