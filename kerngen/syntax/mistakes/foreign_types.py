"""Types of other languages, and how to write them here: `float3` is `vec3f`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from kerngen.source.similar import closest, did_you_mean

OWN_TYPE: Final = re.compile(
    r"(?:[fiu]32|f16|[iu][48]|bool|vec[234][fiuh]|mat[234]x[234][fh])"
)


def each(words: str, ours: str) -> dict[str, str]:
    """Return a table in which several words have one entry."""
    return dict.fromkeys(words.split(), ours)


TYPES = {
    **each("float float32 Float32 number", "f32"),
    **each("Int32 int int32", "i32"),
    **each("UInt32 size_t uint uint32 unsigned usize", "u32"),
    "boolean": "bool",
    **each("half float16", "f16"),
    **each("vec2 float2", "vec2f"),
    **each("vec3 float3", "vec3f"),
    **each("vec4 float4", "vec4f"),
    **{f"float{c}x{r}": f"mat{c}x{r}f" for c in (2, 3, 4) for r in (2, 3, 4)},
    **{f"{kind}{n}": f"vec{n}{kind[0]}" for kind in ("int", "uint") for n in (2, 3, 4)},
    **{f"{kind}vec{n}": f"vec{n}{kind}" for kind in "iu" for n in (2, 3, 4)},
    **{f"half{n}": f"vec{n}h" for n in (2, 3, 4)},
    **{f"{name}{n}": f"vec{n}f" for name in ("Vec", "Vector") for n in (2, 3, 4)},
    **{f"{name}{n}": f"mat{n}x{n}f" for name in ("Mat", "Matrix") for n in (2, 3, 4)},
    "mat2": "mat2x2f",
    "mat3": "mat3x3f",
    "mat4": "mat4x4f",
    **each("tensor Tensor ndarray array", "f32[n]"),
}
"""Types of other languages, with ours."""

_SIZED: Final = re.compile(
    r"(bf|bfloat|f|float|i|int|u|uint|complex)_?(8|16|64|128|256)(?:_t)?", re.IGNORECASE
)
_BITS: Final = {
    "double": "float64", "long": "int64", "short": "int16", "char": "int8", "byte": "uint8",
}  # fmt: skip
_NARROW: Final = frozenset(("f16", "u8", "i8"))
_KINDS: Final = {"f": "f32", "b": "f32", "i": "i32", "u": "u32"}

_NUMBERS: Final = (2, 3, 4)
_SHAPES: Final = [f"{c}x{r}" for c in _NUMBERS for r in _NUMBERS]


def _table(hint: str, ours: str, *theirs: str) -> dict[str, str]:
    """Return the hint for names with a `#`, for each size that vectors or matrices have."""
    sizes = _SHAPES if ours.startswith("mat") else map(str, _NUMBERS)
    return {
        name.replace("#", size): f"{hint}: use '{ours.replace('#', size)}'."
        for size in sizes
        for name in theirs
    }


_DOUBLES: Final = "WGSL has no floats of 64 bits"
_ON_NO_DEVICE: Final = {
    **_table(_DOUBLES, "vec#f", "vec#d", "dvec#", "double#"),
    **_table(_DOUBLES, "mat#f", "mat#d", "dmat#", "double#"),
    **_table("Matrices hold floats alone", "mat#f", "mat#i", "mat#u", "int#", "uint#"),
    **_table("No vector holds truth values", "vec#u", "vec#b", "bvec#", "bool#"),
    "atomic_int": "There are no atomics: use 'i32'.",
    "atomic_uint": "There are no atomics: use 'u32'.",
}


def _no_such_type(name: str) -> str:
    """Return the hint for a type that WGSL lacks, such as `f64`, or ""."""
    if name in _ON_NO_DEVICE:
        return _ON_NO_DEVICE[name]
    match = _SIZED.fullmatch(_BITS.get(name, name))
    if match is None or (match[1].lower() in {"f", "float"} and match[2] == "16"):
        return ""
    if match[1].lower() == "complex":
        return "There are no complex numbers: keep both parts, as in 'vec2f'."
    ours = _KINDS[match[1][0].lower()]
    kind = "floats" if ours == "f32" else "integers"
    bits = "bf16" if match[1][0].lower() == "b" else f"{kind} of {match[2]} bits"
    narrow = f"{ours[0]}{match[2]}"
    kept = f", or '{narrow}' to keep elements of tensors in {match[2]} bits"
    fits = narrow in _NARROW
    return f"WGSL has no {bits}: use '{ours}'{kept if fits else ''}."


def unknown_type_hint(name: str, known: Iterable[str], array: str = "[n]") -> str:
    """Return the type to write instead of an unknown one, or "".

    `array` is how a place writes the lengths of an array: `[n]`, or `[4]` in a struct.

    >>> unknown_type_hint("f64", ()), unknown_type_hint("int", ())
    ("WGSL has no floats of 64 bits: use 'f32'.", "Did you mean 'i32'?")
    """
    ours = TYPES.get(name, "").replace("[n]", array)
    return _no_such_type(name) or did_you_mean(ours or closest(name, known))


_GENERIC: Final = re.compile(r"(\w+)\s*<\s*(\w+(?:\[[^\[\]]*\])?)\s*(?:,\s*(\w+)\s*)?>")
_SUFFIXES: Final = {"f32": "f", "i32": "i", "u32": "u", "f16": "h"}
_COLUMNS: Final = re.compile(r"vec[234]|mat[234]x[234]")


def without_generics(written: str, array: str = "[n]") -> str:
    """Return a type with arguments in `<...>` as it is written here.

    >>> without_generics("array<vec3<f32>, 4>"), without_generics("atomic<u32>[n]")
    ('vec3f[4]', 'u32[n]')
    """
    changed = 1
    while changed:
        written, changed = _GENERIC.subn(lambda match: _plain(match, array), written)
    return written.replace("][", ", ")


def _plain(match: re.Match[str], array: str) -> str:
    name, element, length = match[1], match[2], match[3] or ""
    ours = TYPES.get(element, element)
    if name == "atomic":
        return ours
    if _COLUMNS.fullmatch(name):
        return f"{name}{_SUFFIXES.get(ours, 'f')}"
    if not OWN_TYPE.match(ours):
        ours = "f32"
    outer = f"[{length}]" if length and not OWN_TYPE.fullmatch(length) else array
    base, bracket, inner = ours.partition("[")
    return f"{base}{outer}{bracket}{inner}"
