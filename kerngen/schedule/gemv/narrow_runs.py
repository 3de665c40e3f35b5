"""Narrow integers in a product: neighbours of a row at once, and what they share.

A weight is often an integer times the scale of its block, less a zero point:

    sum[p] x[i, p] * (scale[j, p / 32] * (f32(w[j, p]) - f32(zero[j, p / 32])))

What is the same for a run of neighbours, as the scale, is read once and multiplied with
their sum.  A run is what four words hold, 32 integers of 4 bits or 16 of 8, or eight.

An integer n becomes an f32 without a conversion or a shift of its own; of both GPUs do half
as many as of additions.  Where n is k bits from the right, the last bit of 2^(23 - k) has
the value 2^-k: the bits of n, where they are, among those of 2^(23 - k) make 2^(23 - k) + n.
That and the zero point are subtracted together, exactly.

An instruction of NVIDIA's GPUs masks and adds bits at once, but has only one literal: of two
constants the compiler makes two instructions, which are all that `i4` waits for.  So the
bits of 2^(23 - k) are, for the compiler, numbers that lanes may have different ones of.
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
_EXPONENT_OF_0: Final = 127

_CODES: Final = """\
// The four {which} of a word of {storage}: {powers} more than each,
// whose bits are given.
fn {function}(word: u32, powers: vec4u) -> vec4f {{
    return bitcast<vec4f>(({word} & vec4u({masks})) ^ powers);
}}"""


def codes_of(
    right: ir.Expr, over: tuple[ir.Index, ...], names: set[str]
) -> list[ir.Load]:
    """Return the narrow integers that the right factor of a sum reads along its index."""
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
    """Return the type and the tensors of integers that can be read by four words, if any.

    They are of one type, nothing else reads those tensors, which are bound as words by
    fours, and a block is no shorter than what four words hold.
    """
    codes = codes_of(right, (index,), names)
    storages = {load.tensor.narrow for load in codes} - {None}
    if len(storages) != 1:
        return None
    (storage,) = storages
    assert storage is not None, "what is a code is narrow"
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
    """Neighbours of a right factor: what they share, and the rest, four at a time.

    `four` writes what computes vector n of the rest into a block, and returns it.
    """

    same: t.Expr | None
    four: Callable[[int, list[t.Stmt]], Value]


Reads: TypeAlias = Callable[[Lowerer], t.Expr]
"""What is read of memory, at the place that a lowerer has."""


@final
@dataclass
class RunReader:
    """Reads a right factor at `run` places from `to.at[index]` on, a multiple of `run`.

    `held` names what is read of memory, so that it can be read before its turn; `powers`
    names the bits that integers of a type are added to.
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
        """Write what reads them; what becomes of the integers is left to `Run.four`."""
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
        """Whether an expression is the same for the run: of the index it has blocks alone."""
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
        """Replace narrow integers, and what is read once for the whole run, by local variables."""
        match expr:
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
        """Compute what is the same for the run, of reads that are held."""
        inner = self._with_locals(expr)
        held = {**self.to.locals, **self._same}
        return replace(self.to, vector=None, locals=held).lower(inner).expr

    def _hold(self, load: ir.Load) -> t.Expr:
        """Read an element that is the same for the run; as memory has it, where it can be.

        So what waits for the memory is not the reading, but the use.
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
            # Words by fours are bound so.
            if 1 < count < WORDS:
                pair = tensor[number * count], tensor[number * count + 1]
                return t.call("vec2u", *pair)
            return tensor[number]

        return self._hold_as(f"words_{len(self._codes)}", reads)

    def _four(self, rest: list[ir.Expr], number: int, block: list[t.Stmt]) -> Value:
        """Compute four neighbours of what is not the same for all."""
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
    """Return the bits of the powers of two that four integers are added to."""
    bias, places, powers = _bias(storage), _places(storage), _powers(storage)
    # The sign's bit flipped, a number in two's complement is unsigned, plus the bias.
    bits = [
        (power + _EXPONENT_OF_0 << _MANTISSA) ^ (bias << place)
        for place, power in zip(places, powers, strict=True)
    ]
    return t.call("vec4u", *(t.Literal(f"0x{each:08x}u") for each in bits))


def run_number(to: Lowerer, load: ir.Load, run: int) -> t.Expr:
    """Return the number, among all of a tensor, of the run that begins at a place."""
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
    """Return the text of the function that takes four integers of a word, plus powers."""
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
    """Return where four integers lie, in bits: from the right of 16 bits that hold them."""
    return [storage.bits * n % 16 for n in range(LANES)]


def _powers(storage: Storage) -> list[int]:
    """Return the logarithms of what each of four integers is added to."""
    return [_MANTISSA - place for place in _places(storage)]


def _bias(storage: Storage) -> int:
    """Return the number that makes a signed integer non-negative when added."""
    return {Storage.I8: 128, Storage.I4: 8}.get(storage, 0)


def _product(values: list[t.Expr]) -> t.Expr:
    first, *rest = values
    for each in rest:
        first = t.Binary("*", first, each)
    return first
