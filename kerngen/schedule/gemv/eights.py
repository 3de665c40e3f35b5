"""Narrow integers in a product: eight neighbours of a row at once, and what they share.

A weight is often an integer times the scale of its block, less a zero point:

    sum[p] x[i, p] * (scale[j, p / 32] * (f32(w[j, p]) - f32(zero[j, p / 32])))

What is the same for eight neighbours, as the scale, is read once and multiplied with their
sum.  Eight of 4 bits are a word, of 8 bits two.

An integer n becomes an f32 without a conversion or a shift of its own; of both GPUs do half
as many as of additions.  Where n is k bits from the right, the last bit of 2^(23 - k) has
the value 2^-k: the bits of n, where they are, among those of 2^(23 - k) make 2^(23 - k) + n.
That and the zero point are subtracted together, exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final, final

from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.nodes import (
    Binary,
    Cast,
    Expr,
    Index,
    IndexValue,
    Load,
    LocalValue,
    Reduce,
)
from kerngen.ir.types import Scalar, Storage
from kerngen.ir.walk import children, map_children, walk
from kerngen.schedule.lowering.addresses import is_contiguous, row_major
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.subscripts import lower_subscript
from kerngen.schedule.lowering.values import LANES, Value
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t

EIGHT: Final = 8
HALVES: Final = EIGHT // LANES

_MANTISSA: Final = 23
_EXPONENT_OF_0: Final = 127

_HALF: Final = """\
// Half {half} of the eight neighbours of {name} with number `at`: {powers} more than each.
fn {function}(at: u32) -> vec4f {{
    let codes = {word} & vec4u({masks});
    return bitcast<vec4f>(codes ^ vec4u({bits}));
}}"""


def takes_eights(right: Expr, over: tuple[Index, ...], names: set[str]) -> bool:
    """Whether the right factor reads eight narrow integers along an index at once."""
    return len(over) == 1 and any(_is_code(x, over[0], names) for x in walk(right))


def _is_code(expr: Expr, index: Index, names: set[str]) -> bool:
    match expr:
        case Cast(Load(tensor) as load, Scalar.F32):
            is_narrow = tensor.narrow is not None and tensor.name in names
            return is_narrow and is_contiguous(load, index)
        case _:
            return False


@final
@dataclass(frozen=True, slots=True)
class Eight:
    """Eight neighbours of a right factor: two vectors, and the factor that both share."""

    halves: tuple[Value, ...]
    same: t.Expr | None


@final
@dataclass
class EightReader:
    """Writes reads of a right factor at eight places, from a multiple of 8 on."""

    to: Lowerer
    index: Index
    names: set[str]
    suffix: str
    _same: dict[str, Value] = field(default_factory=dict[str, Value])
    _codes: dict[str, tuple[Load, t.Expr]] = field(
        default_factory=dict[str, tuple[Load, t.Expr]]
    )

    def read(self, right: Expr) -> Eight:
        """Write the reads of eight neighbours, and return them."""
        factors = [*_factors(right)]
        base = replace(self.to, vector=None)
        same = [base.lower(x).expr for x in factors if self._is_same(x)]
        rest = [self._with_locals(x) for x in factors if not self._is_same(x)]
        shared = self._named("same", _product(same)) if same else None
        return Eight(tuple(self._half(rest, half) for half in range(HALVES)), shared)

    def _named(self, what: str, value: t.Expr) -> t.Ident:
        name = t.Ident(self.to.shader.name(f"{what}{self.suffix}", "turn"))
        self.to.block.append(t.Let(name.name, value))
        return name

    def _is_same(self, expr: Expr) -> bool:
        """Whether an expression is the same for the eight: of the index it has blocks alone."""
        match expr:
            case IndexValue(index):
                return index != self.index
            case Binary("/", IndexValue(index), by) if index == self.index:
                return (as_literal(by) or 0) > 0 and (as_literal(by) or 0) % EIGHT == 0
            case Reduce():
                return False
            case _:
                return all(map(self._is_same, children(expr)))

    def _with_locals(self, expr: Expr) -> Expr:
        """Put locals for the integers, and for what is read once for all eight."""
        match expr:
            case Binary("-", Cast(Load()) as codes, Cast(Load(tensor)) as zero) if (
                _is_code(codes, self.index, self.names)
                and tensor.narrow is not None
                and self._is_same(zero)
            ):
                return self._code(codes, self._once(zero))
            case Cast() if _is_code(expr, self.index, self.names):
                return self._code(expr, None)
            case Load() if self._is_same(expr):
                name = f"block {len(self._same)}"
                self._same[name] = Value(self._once(expr))
                return LocalValue(name, Scalar.F32)
            case _:
                return map_children(expr, self._with_locals)

    def _once(self, expr: Expr) -> t.Ident:
        value = replace(self.to, vector=None).lower(expr).expr
        return self._named(f"block_{len(self._same) + len(self._codes)}", value)

    def _code(self, cast: Expr, zero: t.Expr | None) -> Expr:
        """Return a local for integers, from which a zero point is subtracted."""
        assert isinstance(cast, Cast), "what is a code is one"
        assert isinstance(cast.operand, Load), "what is a code is one"
        storage = cast.operand.tensor.narrow
        assert storage is not None, "what is a code is narrow"
        more = [f"{(1 << power) + _bias(storage)}.0" for power in _powers(storage)]
        less: t.Expr = t.call("vec4f", *map(t.Literal, more))
        if zero is not None:
            less = self._named("zero", t.Binary("+", less, zero))
        name = f"codes {len(self._codes)}"
        self._codes[name] = cast.operand, less
        return LocalValue(name, Scalar.F32)

    def _half(self, rest: list[Expr], half: int) -> Value:
        """Read one of the vectors."""
        codes = {
            name: Value(t.Binary("-", self._raw(load, half), less), wide=True)
            for name, (load, less) in self._codes.items()
        }
        at = {**self.to.at, self.index: self.to.at[self.index] + half * LANES}
        held = {**self.to.locals, **self._same, **codes}
        lowerer = replace(self.to, at=at, locals=held)
        values = [lowerer.lower(each) for each in rest]
        wide = [lowerer.widen(value, Scalar.F32) for value in values]
        return Value(self._named(f"right_half_{half}", _product(wide)), wide=True)

    def _raw(self, load: Load, half: int) -> t.Expr:
        """Return four integers, of those in the words of eight, each plus its bias."""
        s, extents = self.to.shader, load.tensor.extents
        narrow, buffer = load.tensor.narrow, s.buffer(load.tensor)
        assert narrow is not None, "only codes are read so"
        base = replace(self.to, vector=None)
        pairs = zip(load.subscripts, extents, strict=True)
        *outer, last = (
            lower_subscript(base, place, extent).expr for place, extent in pairs
        )
        row = row_major(s, extents[:-1], outer)
        number = row * (s.extent(extents[-1]) // EIGHT) + last // EIGHT
        tensor = buffer.expr
        assert isinstance(tensor, t.Ident), "a buffer is a name"
        function = s.name(f"{tensor.name}_half_{half}", "reader")
        text = _half_reader(function, tensor.name, narrow, half)
        s.declare(f"function {function}", wgsl.Verbatim(text))
        return t.call(function, number)


def _half_reader(function: str, name: str, storage: Storage, half: int) -> str:
    """Return the text of the function that reads half of eight integers, each plus a power."""
    words, bias = EIGHT // storage.per_word, _bias(storage)
    places, powers = _places(storage), _powers(storage)
    # The sign's bit flipped, a number in two's complement is unsigned, plus the bias.
    bits = [
        (power + _EXPONENT_OF_0 << _MANTISSA) ^ (bias << place)
        for place, power in zip(places, powers, strict=True)
    ]
    masks = [(1 << storage.bits) - 1 << place for place in places]
    if words == 1:
        word = f"vec4u({name}[at] >> {half * 16}u)" if half else f"vec4u({name}[at])"
    else:
        pair = f"{name}[at * {words}u + {half}u]"
        word = f"vec4u(vec2u({pair}), vec2u({pair} >> 16u))"
    return _HALF.format(
        half=half,
        name=name,
        function=function,
        word=word,
        powers=", ".join(f"{(1 << power) + bias}" for power in powers),
        masks=", ".join(f"0x{mask:x}u" for mask in masks),
        bits=", ".join(f"0x{each:08x}u" for each in bits),
    )


def _places(storage: Storage) -> list[int]:
    """Return where four integers lie, in bits: from the right of 16 bits that hold them."""
    return [storage.bits * n % 16 for n in range(LANES)]


def _powers(storage: Storage) -> list[int]:
    """Return the logarithms of what each of four integers is added to."""
    return [_MANTISSA - place for place in _places(storage)]


def _bias(storage: Storage) -> int:
    """Return the number that makes a signed integer non-negative when added."""
    return {Storage.I8: 128, Storage.I4: 8}.get(storage, 0)


def _factors(expr: Expr) -> Iterator[Expr]:
    match expr:
        case Binary("*", left, right):
            yield from (*_factors(left), *_factors(right))
        case _:
            yield expr


def _product(values: list[t.Expr]) -> t.Expr:
    first, *rest = values
    for each in rest:
        first = t.Binary("*", first, each)
    return first
