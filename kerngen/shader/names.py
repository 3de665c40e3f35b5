"""Valid WGSL names for users' names: `filter` becomes `filter_`.

All rules of WGSL about names are here: keywords and reserved words (WGSL 3.7 and 15.3),
and predeclared types and functions, which a user's name would shadow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import final

KEYWORDS = frozenset(
    "alias break case const const_assert continue continuing default diagnostic discard "
    "else enable false fn for if let loop override requires return struct switch true "
    "var while".split()
)

RESERVED_WORDS = frozenset(
    "NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto "
    "await become binding_array cast catch class co_await co_return co_yield coherent "
    "column_major common compile compile_fragment concept const_cast consteval constexpr "
    "constinit crate debugger decltype delete demote demote_to_helper do dynamic_cast "
    "enum explicit export extends extern external fallthrough filter final finally "
    "friend from fxgroup get goto groupshared highp impl implements import inline "
    "instanceof interface layout lowp macro macro_rules match mediump meta mod module "
    "move mut mutable namespace new nil noexcept noinline nointerpolation non_coherent "
    "noncoherent noperspective null nullptr of operator package packoffset partition "
    "pass patch pixelfragment precise precision premerge priv protected pub public "
    "readonly ref regardless register reinterpret_cast require resource restrict self "
    "set shared sizeof smooth snorm static static_assert static_cast std subroutine "
    "super target template this thread_local throw trait try type typedef typeid "
    "typename typeof union unless unorm unsafe unsized use using varying virtual "
    "volatile wgsl where with writeonly yield".split()
)

PREDECLARED_TYPES = frozenset(
    [
        *"array atomic bool f16 f32 i32 mat2x2 mat2x3 mat2x4 mat3x2 mat3x3 mat3x4".split(),
        *"mat4x2 mat4x3 mat4x4 ptr sampler sampler_comparison u32 vec2 vec3 vec4".split(),
        *(f"vec{width}{kind}" for width in (2, 3, 4) for kind in "fhiu"),
        *(f"mat{c}x{r}{kind}" for c in (2, 3, 4) for r in (2, 3, 4) for kind in "fh"),
    ]
)

BUILTIN_FUNCTIONS = frozenset(
    "abs acos acosh all any arrayLength asin asinh atan atan2 atanh bitcast ceil clamp "
    "cos cosh countLeadingZeros countOneBits countTrailingZeros cross degrees "
    "determinant distance dot dpdx dpdy exp exp2 extractBits faceForward "
    "firstLeadingBit firstTrailingBit floor fma fract frexp fwidth insertBits "
    "inverseSqrt ldexp length log log2 max min mix modf normalize pow quantizeToF16 "
    "radians reflect refract reverseBits round saturate select sign sin sinh smoothstep "
    "sqrt step storageBarrier tan tanh transpose trunc workgroupBarrier".split()
)

ENUMERANTS = frozenset(
    "function private read read_write storage uniform workgroup write".split()
)
"""Address spaces and access modes: a declaration of one of these names would hide them."""

ENTRY_POINT = "main"

# Members of structs are not in a scope, so that they shadow nothing.
_NOT_FOR_MEMBERS = KEYWORDS | RESERVED_WORDS
_NOT_FOR_VALUES = (
    _NOT_FOR_MEMBERS | PREDECLARED_TYPES | BUILTIN_FUNCTIONS | {ENTRY_POINT}
)


@final
class Namer:
    """A supply of unused names in one scope: `x`, then `x_`, `x_2`, `x_3`."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self._taken = set(reserved)
        self._again: dict[str, int] = {}

    def claim(self, wanted: str) -> str:
        """Return `wanted` or the nearest free name, which is then no longer free."""
        # WGSL allows `_a`, but not `_` or `__a`, and no digit in front.
        name = wanted.lstrip("_")
        if not name[:1].isalpha():
            name = f"value{name}"
        free, again = name, self._again.get(name, 0)
        while free in self._taken:
            again += 1
            free = f"{name}_{again if again > 1 else ''}"
        self._again[name] = again
        self._taken.add(free)
        return free


def unlike_enumerants(wanted: str) -> str:
    """Return `wanted`, with a `_` added if it would hide an address space or access mode."""
    return f"{wanted}_" if wanted in ENUMERANTS else wanted


def value_namer(helpers: Iterable[str] = ()) -> Namer:
    """Return a namer for a shader's variables and functions; it avoids names of `helpers`."""
    return Namer(_NOT_FOR_VALUES | set(helpers))


def member_names(wanted: Iterable[str]) -> dict[str, str]:
    """Return the WGSL name of each struct member."""
    namer = Namer(_NOT_FOR_MEMBERS)
    return {name: namer.claim(name) for name in wanted}
