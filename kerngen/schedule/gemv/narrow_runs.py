"""Narrow integers in a product: neighbours of a row at once, and what they share.

A weight is often an integer times the scale of its block, less a zero point:

    sum[p] x[i, p] * (scale[j, p / 32] * (f32(w[j, p]) - f32(zero[j, p / 32])))

What is the same for a run of neighbours, as the scale, is read once and multiplied with
their sum.  A run is what four words hold, 32 integers of 4 bits or 16 of 8, or eight.

An integer n becomes an f32 without a conversion or a shift of its own, as GPUs do half as many
of both as additions.  The f32 2^(23 - k) has a last bit of the value 2^-k.  So where n is in
the bits from k on, and these bits are put into the f32's as they are, its value is
2^(23 - k) + n.  For n = 5 in bits 4 to 7 of a word, that is

    word & 0xf0              0x00000050
    2^19 as f32              0x49000000
    both, by exclusive or    0x49000050  =  524293.0  =  2^19 + 5

2^(23 - k) and the zero point are subtracted together, exactly.  Of a signed integer, the
upper bit is flipped first, by the same exclusive or: that adds 8 to an i4, or 128 to an i8,
and makes it non-negative (`_bias`).

An instruction of NVIDIA's GPUs masks and combines bits at once, but has only one literal: of
two constants the compiler makes two instructions, and shaders of `i4` wait for these.  So the
bits of 2^(23 - k) are computed in a way that hides them from the compiler
(`NarrowRowwise._powers`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, TypeAlias, final

from kerngen.ir import nodes as ir
from kerngen.ir.analysis.affine import as_literal
from kerngen.ir.analysis.reads import loads
from kerngen.ir.types import Scalar, Storage
from kerngen.ir.walk import children, factors_of, map_children, walk
from kerngen.schedule.lowering.addresses import is_contiguous, row_major
from kerngen.schedule.lowering.expressions import Lowerer
from kerngen.schedule.lowering.subscripts import lower_subscript
from kerngen.schedule.lowering.values import COMPONENTS, LANES, Value
from kerngen.schedule.task import Task
from kerngen.shader import declarations as wgsl
from kerngen.shader import tree as t

EIGHT: Final = 8
WORDS: Final = 4
"""How many words a lane reads at once: a `vec4u`."""

_MANTISSA: Final = 23
"""The bits of an f32's fraction."""

_EXPONENT_OF_0: Final = 127
"""What the exponent field of an f32 has for 2^0."""

_CODES: Final = """\
// The four {which} of a word of {storage}: {powers} more than each,
// whose bits are given.
fn {function}(word: u32, powers: vec4u) -> vec4f {{
    return bitcast<vec4f>(({word} & vec4u({masks})) ^ powers);
}}"""


def codes_of(
    right: ir.Expr, over: tuple[ir.Index, ...], names: set[str]
) -> list[ir.Load]:
    """Return the reads of narrow integers that are contiguous along the index of a sum.

    `right` is the sum's right factor, and `names` are the tensors that can be read as vectors.
    The list is empty if the sum has several indices.
    """
    if len(over) != 1:
        return []
    casts = (x for x in walk(right) if isinstance(x, ir.Cast))
    return [
        x.operand
        for x in casts
        if isinstance(x.operand, ir.Load) and _is_code(x, over[0], names)
    ]


def words_of(
    task: Task, right: ir.Expr, index: ir.Index, names: set[str]
) -> tuple[Storage, frozenset[str]] | None:
    """Return the type and the tensors of a factor's integers if four words can be read at once.

    Else the result is None.  The integers must be of one type, and nothing else may read their
    tensors, as these are bound as `vec4u`.  A block of numbers with one scale must be a
    multiple of what four words hold.
    """
    codes = codes_of(right, (index,), names)
    storages = {load.tensor.narrow for load in codes} - {None}
    if len(storages) != 1:
        return None
    (storage,) = storages
    assert storage is not None, "what is a code is narrow"
    # Each read of these tensors is one of the codes.
    tensors = frozenset(load.tensor.name for load in codes)
    reads = (x for value in task.values for x in loads(value))
    is_alone = len([x for x in reads if x.tensor.name in tensors]) == len(codes)
    blocks = (
        as_literal(x.right) or 0
        for x in walk(right)
        if isinstance(x, ir.Binary) and x.op == "/" and x.left == ir.IndexValue(index)
    )
    run = WORDS * storage.per_word
    fits = is_alone and all(block % run == 0 for block in blocks)
    return (storage, tensors) if fits else None


def _is_code(expr: ir.Expr, index: ir.Index, names: set[str]) -> bool:
    match expr:
        case ir.Cast(ir.Load(tensor) as load, Scalar.F32):
            is_narrow = tensor.narrow is not None and tensor.name in names
            return is_narrow and is_contiguous(load, index)
        case _:
            return False


@final
@dataclass(frozen=True, slots=True)
class NeighbourRun:
    """A run of a right factor: the product of what its numbers share, and their other factors.

    - `same`: the product of what they share; None if they share nothing
    - `four`: appends to a block the code that computes vector n of the rest, and returns its
      value
    """

    same: t.Expr | None
    four: Callable[[int, list[t.Stmt]], Value]


Reads: TypeAlias = Callable[[Lowerer], t.Expr]
"""A function that lowers a read of memory, at the index values of a lowerer."""


@final
@dataclass
class RunReader:
    """Builds reads of a right factor at `run` places from `to.at[index]`, a multiple of `run`.

    - `held`: given a name and a function that builds a read, returns a variable with the value
      that was read, maybe a turn ahead
    - `powers`: returns a variable of `power_bits` for a type of integers
    - `_same`: the local values that are the same for the whole run
    - `_codes`: for each local value of narrow integers their type, their words, and what is
      subtracted from them
    """

    to: Lowerer
    index: ir.Index
    names: set[str]
    suffix: str
    run: int
    held: Callable[[str, Reads], t.Ident]
    powers: Callable[[Storage], t.Expr]
    _same: dict[str, Value] = field(default_factory=dict[str, Value])
    _codes: dict[str, tuple[Storage, t.Expr, t.Expr]] = field(
        default_factory=dict[str, tuple[Storage, t.Expr, t.Expr]]
    )

    def read(self, right: ir.Expr) -> NeighbourRun:
        """Append the reads of a run to the block of `to`; the result appends the arithmetic."""
        factors = [*factors_of(right)]
        rest = [self._with_locals(x) for x in factors if not self._is_same(x)]
        same = [self._once(x) for x in factors if self._is_same(x)]
        shared = self._named("same", _product(same)) if same else None
        return NeighbourRun(shared, partial(self._four, rest))

    def _named(self, what: str, value: t.Expr) -> t.Ident:
        return self._named_in(self.to.block, f"{what}{self.suffix}", value)

    def _named_in(self, block: list[t.Stmt], what: str, value: t.Expr) -> t.Ident:
        name = t.Ident(self.to.shader.name(what, "turn"))
        block.append(t.Let(name.name, value))
        return name

    def _is_same(self, expr: ir.Expr) -> bool:
        """Whether an expression is the same for the run.

        It may have the index only as the number of a block, `p / 32`, of whole runs.
        """
        match expr:
            case ir.IndexValue(index):
                return index != self.index
            case ir.Binary("/", ir.IndexValue(index), by) if index == self.index:
                block = as_literal(by) or 0
                return block > 0 and block % self.run == 0
            case ir.Reduce():
                return False
            case _:
                return all(map(self._is_same, children(expr)))

    def _with_locals(self, expr: ir.Expr) -> ir.Expr:
        """Replace narrow integers, and reads that are the same for the run, by local values."""
        match expr:
            # `f32(w[j, p]) - f32(zero[j, p / 32])`: integers with a zero point.
            case ir.Binary(
                "-", ir.Cast(ir.Load()) as codes, ir.Cast(ir.Load(tensor)) as zero
            ) if (
                _is_code(codes, self.index, self.names)
                and tensor.narrow is not None
                and self._is_same(zero)
            ):
                return self._code(codes, self._once(zero))
            case ir.Cast() if _is_code(expr, self.index, self.names):
                return self._code(expr, None)
            case ir.Load() if self._is_same(expr):
                name = f"block {len(self._same)}"
                self._same[name] = Value(self._hold(expr))
                return ir.LocalValue(name, expr.type)
            case _:
                return map_children(expr, self._with_locals)

    def _once(self, expr: ir.Expr) -> t.Expr:
        """Compute a value that is the same for the run; what it reads is held before."""
        inner = self._with_locals(expr)
        held = {**self.to.locals, **self._same}
        return replace(self.to, vector=None, locals=held).lower(inner).expr

    def _hold(self, load: ir.Load) -> t.Expr:
        """Read an element that is the same for the run, and return its value.

        An f16 or a word of narrow integers is held as memory has it, and converted where it
        is used: a conversion at once would wait for the memory at once.
        """
        name, storage = f"block_{len(self._same)}", load.tensor.narrow
        buffer = self.to.shader.buffer(load.tensor)
        if storage is None and not buffer.is_half:
            return self._hold_as(name, lambda to: to.lower(load).expr)
        count = storage.per_word if storage else 1
        held = self._hold_as(name, lambda to: buffer.expr[_address(to, load) // count])
        if storage is None:
            return t.call("f32", held)
        is_signed = storage in {Storage.I8, Storage.I4}
        word = t.call("bitcast<i32>", held) if is_signed else held
        shift = _address(self.to, load) % count * storage.bits
        return t.call("extractBits", word, shift, storage.bits)

    def _hold_as(self, name: str, reads: Reads) -> t.Ident:
        return self.held(
            f"{name}{self.suffix}", lambda to: reads(replace(to, vector=None))
        )

    def _code(self, cast: ir.Expr, zero: t.Expr | None) -> ir.Expr:
        """Return a local for integers, from which a zero point is subtracted."""
        assert isinstance(cast, ir.Cast), "what is a code is one"
        assert isinstance(cast.operand, ir.Load), "what is a code is one"
        storage = cast.operand.tensor.narrow
        assert storage is not None, "what is a code is narrow"
        # What is subtracted: the powers of two, the bias of signed integers, the zero point.
        more = [f"{(1 << power) + _bias(storage)}.0" for power in _powers(storage)]
        less: t.Expr = t.call("vec4f", *map(t.Literal, more))
        if zero is not None:
            less = self._named("zero", t.Binary("+", less, zero))
        name = f"codes {len(self._codes)}"
        self._codes[name] = storage, self._words(cast.operand, storage), less
        return ir.LocalValue(name, Scalar.F32)

    def _words(self, load: ir.Load, storage: Storage) -> t.Expr:
        """Read the words that hold the run."""
        tensor = self.to.shader.buffer(load.tensor).expr
        count = self.run // storage.per_word

        def reads(to: Lowerer) -> t.Expr:
            number = run_number(to, load, self.run)
            # One word or four are an element of the binding; two are read one by one.
            if 1 < count < WORDS:
                pair = tensor[number * count], tensor[number * count + 1]
                return t.call("vec2u", *pair)
            return tensor[number]

        return self._hold_as(f"words_{len(self._codes)}", reads)

    def _four(self, rest: list[ir.Expr], number: int, block: list[t.Stmt]) -> Value:
        """Compute vector `number` of the factors that differ between neighbours."""
        codes = {
            name: Value(
                t.Binary("-", self._raw(storage, words, number), less), wide=True
            )
            for name, (storage, words, less) in self._codes.items()
        }
        at = {**self.to.at, self.index: self.to.at[self.index] + number * LANES}
        held = {**self.to.locals, **self._same, **codes}
        lowerer = replace(self.to, at=at, locals=held, block=block)
        values = [lowerer.lower(each) for each in rest]
        wide = [lowerer.widen(value, Scalar.F32) for value in values]
        name = f"right_{number}{self.suffix}"
        return Value(self._named_in(block, name, _product(wide)), wide=True)

    def _raw(self, storage: Storage, words: t.Expr, number: int) -> t.Expr:
        """Return four integers of the words, each plus a power and its bias."""
        word, half = divmod(number, storage.per_word // LANES)
        if self.run > storage.per_word:
            words = t.Member(words, COMPONENTS[word])
        which = "bytes" if storage.bits == EIGHT else ("lower", "upper")[half]
        function = self.to.shader.name(f"{storage.value}_{which}", "reader")
        text = _codes_function(function, storage, which)
        self.to.shader.declare(f"function {function}", wgsl.Verbatim(text))
        return t.call(function, words, self.powers(storage))


def power_bits(storage: Storage) -> t.Expr:
    """Return the bits of the powers of two that four integers are combined with.

    Of i4 they are `vec4u(0x4b000008u, 0x49000080u, 0x47000800u, 0x45008000u)`: 2^23, 2^19, 2^15
    and 2^11, each with the bit that flips the sign of its integer.
    """
    bias, places, powers = _bias(storage), _places(storage), _powers(storage)
    # The sign's bit flipped, a number in two's complement is unsigned, plus the bias.
    bits = [
        (power + _EXPONENT_OF_0 << _MANTISSA) ^ (bias << place)
        for place, power in zip(places, powers, strict=True)
    ]
    return t.call("vec4u", *(t.Literal(f"0x{each:08x}u") for each in bits))


def run_number(to: Lowerer, load: ir.Load, run: int) -> t.Expr:
    """Return the number of the run at a read's place, among all runs of the tensor."""
    s, extents = to.shader, load.tensor.extents
    *outer, last = _subscripts(to, load)
    row = row_major(s, extents[:-1], outer)
    return row * (s.extent(extents[-1]) // run) + last // run


def _address(to: Lowerer, load: ir.Load) -> t.Expr:
    return row_major(to.shader, load.tensor.extents, _subscripts(to, load))


def _subscripts(to: Lowerer, load: ir.Load) -> list[t.Expr]:
    base = replace(to, vector=None)
    pairs = zip(load.subscripts, load.tensor.extents, strict=True)
    return [lower_subscript(base, place, extent).expr for place, extent in pairs]


def _codes_function(function: str, storage: Storage, which: str) -> str:
    """Return the text of the function that returns four integers of a word, plus powers.

        fn i4_lower(word: u32, powers: vec4u) -> vec4f {
            return bitcast<vec4f>((vec4u(word) & vec4u(0xfu, 0xf0u, 0xf00u, 0xf000u)) ^ powers);
        }

    The upper four of 4 bits are shifted down by 16 bits first, so that they fit a fraction.
    """
    bias, powers = _bias(storage), _powers(storage)
    masks = [(1 << storage.bits) - 1 << place for place in _places(storage)]
    words = {
        "bytes": "vec4u(vec2u(word), vec2u(word >> 16u))",
        "lower": "vec4u(word)",
        "upper": "vec4u(word >> 16u)",
    }
    return _CODES.format(
        which=which if which == "bytes" else f"{which} elements",
        storage=storage.value,
        function=function,
        word=words[which],
        powers=", ".join(f"{(1 << power) + bias}" for power in powers),
        masks=", ".join(f"0x{mask:x}u" for mask in masks),
    )


def _places(storage: Storage) -> list[int]:
    """Return the lowest bit of each of four integers, modulo 16: 0, 4, 8 and 12 of i4."""
    return [storage.bits * n % 16 for n in range(LANES)]


def _powers(storage: Storage) -> list[int]:
    """Return the powers of two that four integers are added to, as logarithms."""
    return [_MANTISSA - place for place in _places(storage)]


def _bias(storage: Storage) -> int:
    """Return the number that makes a signed integer non-negative when added."""
    return {Storage.I8: 128, Storage.I4: 8}.get(storage, 0)


def _product(values: list[t.Expr]) -> t.Expr:
    first, *rest = values
    for each in rest:
        first = t.Binary("*", first, each)
    return first
