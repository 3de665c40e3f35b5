"""The meanings of the language's words, with the section of docs/language.md about each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

from kerngen.ir.memory import NARROW
from kerngen.ir.types import CASTS, COMPOSITES
from kerngen.lsp.files import uri_of

_PAGE: Final = Path(__file__).parents[2] / "docs" / "language.md"
"""The page, which a clone of kerngen has; its wheel has no documentation."""


@final
@dataclass(frozen=True, slots=True)
class Word:
    """A word of the language: an example of it, its meaning, and the section about it."""

    example: str
    meaning: str
    section: str

    @property
    def link(self) -> str:
        """A link to the section if the page exists, else its name."""
        if not _PAGE.is_file():
            return f"docs/language.md: {self.section}"
        anchor = self.section.lower().replace(" ", "-")
        return f"[{self.section}]({uri_of(_PAGE)}#{anchor})"


WORDS: Final[Mapping[str, Word]] = {
    "use": Word('use "other.kern";', "imports the items of another file", "Items"),
    "const": Word(
        "const LIMIT: u32 = 0xFF;",
        "a number or a bool that the compiler computes",
        "Items",
    ),
    "struct": Word(
        "struct Ball { pos: vec3f, radius: f32 }", "a type of several fields", "Structs"
    ),
    "fn": Word(
        "fn square(x: f32) -> f32 { x * x }",
        "a function of values, which kernels and other functions call",
        "Items",
    ),
    "kernel": Word(
        "kernel twice(x: f32[n]) -> y: f32[n] { y[i] = 2.0 * x[i]; }",
        "a function that Python calls: parameters, outputs and statements",
        "Items",
    ),
    "schedule": Word(
        "schedule scale when n > 64 { rows }",
        "chooses the strategy that runs a kernel, of which the first counts whose guard "
        "is true; it changes nothing in the result but the rounding of sums",
        "Stages and schedules",
    ),
    "schedule when": Word(
        "schedule scale when n > 64 { rows }",
        "a guard: the schedule is for calls that meet this condition over dims, integer "
        "scalars, constants and facts of the adapter",
        "Stages and schedules",
    ),
    "adapter": Word(
        "schedule scale when adapter.subgroups { rows }",
        "facts of the device that runs the call",
        "Stages and schedules",
    ),
    "when": Word(
        "sum[j when j <= i] x[j]",
        "a condition: the reduction takes the terms for which it is true; others are not "
        "evaluated",
        "Reductions",
    ),
    "mut": Word(
        "kernel add(mut x: f32[n], by: f32) { x[i] += by; }",
        "a tensor of the caller that the kernel also writes",
        "Statements",
    ),
    "let": Word(
        "let top[i] = max[j] x[i, j];",
        "names a value per element, a number or a bool, which later writes don't change",
        "Statements",
    ),
    "host": Word(
        "host rest = 1 - beta;",
        "names a number that the host computes once per call, in double, from dims, "
        "scalars, constants and earlier hosts",
        "Statements",
    ),
    "require": Word(
        "require d % 8 == 0;",
        "refuses calls that do not meet a condition over dims, integer scalars and "
        "constants; the compiler uses what it proves",
        "Conditions on a call",
    ),
    "gradient": Word(
        "kernel g = gradient of f by x given y;",
        "a kernel that the compiler derives from another one",
        "Gradients",
    ),
    "by": Word(
        "kernel g = gradient of f by x;",
        "the parameters that the gradient is by: there is an output 'dx' for 'x'",
        "Gradients",
    ),
    "given": Word(
        "kernel g = gradient of f by x given y;",
        "outputs and lets that the caller has kept; all else is computed again",
        "Gradients",
    ),
    "derivative": Word(
        "derivative of square(x: f32) { 2.0 * x }",
        "the derivative of a function, one value for each f32 parameter: gradients take "
        "it instead of what they would derive",
        "Gradients",
    ),
    "if": Word(
        "if x > 0.0 { x } else { 0.0 }",
        "a value: that of the branch which the condition chooses",
        "Values",
    ),
    "true": Word("const SOFT: bool = true;", "a bool", "Values"),
    "and": Word(
        "i > 0 and x[i - 1] == 3",
        "true if both are; where the left one is false, the right one is not evaluated",
        "Values",
    ),
    "or": Word(
        "i == 0 or x[i - 1] == 3",
        "true if one is; where the left one is true, the right one is not evaluated",
        "Values",
    ),
    "not": Word("not is_nan(x)", "true if the bool behind it is false", "Values"),
    "inf": Word("if keep[j] != 0 { x[j] } else { -inf }", "infinity, an f32", "Values"),
    "@align": Word(
        "struct P { @align(16) x: f32 }",
        "where the field begins: at a multiple of so many bytes",
        "Structs",
    ),
    "@size": Word(
        "struct P { @size(16) flags: u32 }",
        "the bytes that the field takes, padding included",
        "Structs",
    ),
    "sum": Word("sum[j] x[i, j]", "the sum of the terms; of none, 0", "Reductions"),
    "prod": Word(
        "prod[j] x[i, j]", "the product of the terms; of none, 1", "Reductions"
    ),
    "max": Word(
        "max[j] x[i, j]",
        "the greatest term; of none, -inf, or the lowest integer; NaN if one is NaN",
        "Reductions",
    ),
    "min": Word(
        "min[j] x[i, j]",
        "the least term; of none, inf, or the highest integer; NaN if one is NaN",
        "Reductions",
    ),
    "argmax": Word(
        "argmax[j] x[i, j]",
        "the first place of the greatest term, an i32; of none, -1",
        "Places",
    ),
    "argmin": Word(
        "argmin[j] x[i, j]",
        "the first place of the least term, an i32; of none, -1",
        "Places",
    ),
}

_SAME: Final[Mapping[str, str]] = {"of": "gradient", "else": "if", "false": "true"}
"""Words that are explained with another one."""


def word_of(written: str) -> Word | None:
    """Return a word's meaning, or that of a type; None if it is neither."""
    if found := WORDS.get(_SAME.get(written, written)):
        return found
    if written in NARROW:
        return Word(
            f"x: {written}[n]",
            "elements of inputs and outputs; what is read is an integer of 32 bits",
            "Integers of 8 and 4 bits",
        )
    if written in COMPOSITES:
        return Word(f"x: {written}", "a type", "Vectors and matrices")
    if written in CASTS or written == "bool":
        return Word(f"x: {written}", "a type", "Values")
    if written == "f16" or written[:-1] + "f" in COMPOSITES:
        return Word(
            f"x: {written}[n]",
            "kept in 16 bits: it is read as f32, and rounded once where it is written",
            "Values",
        )
    return None
