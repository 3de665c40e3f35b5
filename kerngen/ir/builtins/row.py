"""The row of a built-in function: its types, what outputs print for it, and its error.

`Builtin` describes all columns of the table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Literal, TypeAlias, final

from kerngen.ir.builtins.helpers import Helper
from kerngen.ir.types import F32_MAX, Matrix, Scalar, ValueType, Vector, scalar_of

Interval: TypeAlias = tuple[float, float]

"""The least and the greatest value of an argument."""

EVERY_F32: Final[Interval] = (-F32_MAX, F32_MAX)
"""All finite f32."""

MODERATE: Final[Interval] = (-1e6, 1e6)
"""The arguments for which an error bound is assumed to hold if WGSL has no limits for it."""


@final
@dataclass(frozen=True, slots=True)
class Accuracy:
    """A bound on the f32 error of a built-in, by WGSL's accuracy rules.

    The bound is `absolute + (ulps + ulps_per_argument * |x|) * ulp(result)`, x being the
    first argument.  `source` is where it comes from ("WGSL 15.7.4.1").
    """

    ulps: float = 0.0
    absolute: float = 0.0
    ulps_per_argument: float = 0.0
    source: str = "exact"

    @property
    def is_rounded(self) -> bool:
        """Whether the result is the exact one, or the exact one rounded once."""
        return self.ulps <= 0.5 and self.absolute == self.ulps_per_argument == 0.0

    @property
    def text(self) -> str:
        """The error bound in words: '(3 + 2 |x|) ulp (WGSL 15.7.4)'."""
        terms: list[str] = []
        if self.ulps or self.ulps_per_argument:
            factor = f"{self.ulps:g}"
            if self.ulps_per_argument:
                factor = f"({factor} + {self.ulps_per_argument:g} |x|)"
            terms.append(f"{factor} ulp")
        if self.absolute:
            terms.append(f"{self.absolute:.3g}")
        if self == EXACT:
            return "exact"
        return f"{' + '.join(terms)} ({self.source})" if terms else self.source


EXACT: Final = Accuracy(source="exact (WGSL 15.7.4)")
"""The accuracy of functions whose results are exact."""


@final
class Variation(Enum):
    """How much a result varies, if an argument is only known to within an error."""

    MONOTONE = auto()
    """No farther than at the ends of the argument's interval."""
    LIPSCHITZ = auto()
    """No farther than the arguments: the slope is at most 1."""
    STEPS = auto()
    """Constant between steps: not at all if both ends give the same."""
    JUMPS = auto()
    """Anything is possible: between equal ends there may be a jump."""


@final
@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a built-in: the types of arguments and result."""

    parameters: tuple[Scalar, ...]
    result: Scalar


def same(count: int, *types: Scalar) -> tuple[Overload, ...]:
    """Return overloads with `count` arguments and a result that all have one type."""
    return tuple(Overload((scalar,) * count, scalar) for scalar in types)


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """Constant arguments that WGSL refuses: `test` is true of those at the positions `places`.

    `reason` is a template over the arguments at `places`, "the exponent {0} is above 128".
    """

    places: tuple[int, ...]
    test: Callable[..., bool]
    reason: str

    def of(self, values: Sequence[float | None]) -> str:
        """Return the reason why WGSL refuses a call, or "" if it does not.

        `values` are all arguments of the call, None for those that are not constant.
        """
        known = [value for place in self.places if (value := values[place]) is not None]
        refused = len(known) == len(self.places) and self.test(*known)
        return self.reason.format(*known) if refused else ""


def _unknown_sign(_may_be_negative: Sequence[bool]) -> bool:
    return True


@final
@dataclass(frozen=True, kw_only=True, slots=True)
class Builtin:
    """One built-in function: its row in the table.

    What shaders and references print:

    - `wgsl` is a format template over the arguments `{0}`, `{1}`, ... and the types `{T}`
      (f32 or vec4f, the width at hand); without one it is the function's own name.
      `helper` is the function that a shader declares where WGSL has none.
      A built-in that is not `wide` has no vector form: WGSL wants some argument scalar.
    - `numpy` is a template over the arguments alone; it may use `np` and `ref`
      (`kerngen.runtime.reference`).

    What the host's JavaScript prints; without a form it refuses the built-in:

    - `javascript` is a template over numbers, `javascript_of_integers` one over BigInts.
    - `javascript_of_bits` is a function of 32-bit BigInts; `{as_int}` is `asIntN` or
      `asUintN`, which cuts to a width, by the type.

    What it computes:

    - `scalar` is its meaning for Python's numbers, floats in double; it may raise
      `ValueError` or `ArithmeticError`, or return inf or NaN, where there is no value.
      `signed` is its meaning for i32, where that differs from u32.
    - `host` is the function of `kerngen.plan.hostmath` that generated modules call with
      Python's numbers; without one they call `numpy`.
    - `partials` are the partial derivatives of the f32 overload, one for each argument:
      expressions of the language over the arguments `x`, `y`, `z` and the result `f`.
      Where the function has a kink they are the mean of both sides, so that `max(x, x)`
      gives half to each; where it has a step, the derivatives beside the step.  The
      derivative by an argument that is no float is `0.0`; `partials` is None for a
      function without derivatives.

    How close results are:

    - `accuracy` holds for arguments in the `domain`, an interval for each, for which
      `condition` is true.  Ulps are those of the result, or of `magnitude`, a function of
      the arguments.
    - `variation` is how errors of arguments spread to the result.

    What the compiler may conclude:

    - `refusals` are constant arguments that WGSL refuses.
    - `may_be_negative` returns whether an integer result may be negative, given whether
      each argument may be.
    - `largest` bounds the size of a result, given the size of its argument.
    - `truncating` is the operator that gives the same result if no operand is negative.
    - `takes_bit_field`: the last two arguments are the offset and the width of a bit
      field, `splats_last`: the last argument may be a scalar beside vectors.
    """

    name: str
    overloads: tuple[Overload, ...]
    doc: str
    numpy: str
    scalar: Callable[..., Any]
    signed: Callable[..., Any] | None = None
    wgsl: str = ""
    helper: Helper | None = None
    wide: bool = True
    host: str = ""
    javascript: str = ""
    javascript_of_integers: str = ""
    javascript_of_bits: str = ""
    partials: tuple[str, ...] | None = None
    accuracy: Accuracy = EXACT
    domain: tuple[Interval, ...] = ()
    condition: Callable[..., Any] | None = None
    magnitude: Callable[..., Any] | None = None
    variation: Variation = Variation.MONOTONE
    refusals: tuple[Refusal, ...] = ()
    may_be_negative: Callable[[Sequence[bool]], bool] = _unknown_sign
    largest: Callable[[float], float] | None = None
    truncating: Literal["/", "%"] | None = None
    takes_bit_field: bool = False
    splats_last: bool = False

    @property
    def arity(self) -> int:
        """The number of arguments, which is the same for all overloads."""
        return len(self.overloads[0].parameters)

    @property
    def template(self) -> str:
        """The format template of a WGSL call of the function."""
        if self.wgsl:
            return self.wgsl
        name = self.helper.name if self.helper else self.name
        return f"{name}({', '.join(f'{{{n}}}' for n in range(self.arity))})"

    @property
    def intervals(self) -> tuple[Interval, ...]:
        """The domain in which the accuracy holds: an interval for each argument."""
        default = EVERY_F32 if self.accuracy.is_rounded else MODERATE
        return self.domain or (default,) * self.arity

    def overload(self, first: Scalar) -> Overload:
        """Return the overload whose first argument is of this type."""
        return next(each for each in self.overloads if each.parameters[0] is first)

    def value(self, given: Scalar, values: Sequence[float]) -> Any:
        """Return the result for Python numbers; `given` is the kernel type of the first."""
        function = self.signed if given is Scalar.I32 and self.signed else self.scalar
        return function(*values)

    def refused(self, values: Sequence[float | None]) -> str:
        """Return the reason why WGSL refuses a call, or "" if it does not.

        `values` are the arguments, None for those that are not constant.
        """
        return next(filter(None, (refusal.of(values) for refusal in self.refusals)), "")

    def result(self, given: tuple[ValueType, ...]) -> ValueType | None:
        """Return the result type for arguments of these types, or None if they don't fit.

        All arguments are scalars, or all are vectors of one width, to whose components the
        function is applied; but a bool argument is one scalar for all components.  Only of
        scalars may the result be a bool.
        """
        # The overload is that of the components' types; all vectors have one width.
        scalars = tuple(map(scalar_of, given))
        found = next((o for o in self.overloads if o.parameters == scalars), None)
        if found is None or any(isinstance(type_, Matrix) for type_ in given):
            return None
        pairs = zip(given, found.parameters, strict=True)
        chosen = [type_ for type_, scalar in pairs if scalar is not Scalar.BOOL]
        widths = {type_.width if isinstance(type_, Vector) else 1 for type_ in chosen}
        if len(widths) > 1 or (found.result is Scalar.BOOL and widths - {1}):
            return None
        width = widths.pop() if widths else 1
        return found.result if width == 1 else Vector(found.result, width)
