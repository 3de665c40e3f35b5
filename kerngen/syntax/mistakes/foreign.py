"""Tables: words of other languages and libraries, and how to write them here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from kerngen.syntax.mistakes.foreign_types import each

OPERATORS = {
    "&&": "'and'",
    "||": "'or'",
    "!": "'not'",
    "**": "'a * a', or 'pow(a, b)'",
    "?": "'if c { a } else { b }'",
    "/*": "'//' before each line of a comment",
    "#": "'//' before a comment",
    "#[": "nothing: only fields of a struct have attributes, as in '@size(16)'",
    "'": "double quotes around the path of a 'use': no other strings exist",
    "=>": "'->'",
    ":=": "'=', and 'let name = value;' for a new name",
    "<-": "'='",
    "%=": "'x = x % y;'",
    "&=": "'x = x & y;'",
    "|=": "'x = x | y;'",
    "^=": "'x = x ^ y;'",
    "<<=": "'x = x << y;'",
    ">>=": "'x = x >> y;'",
    "~=": "'!='",
    **{f".{sign}": f"'{sign}': an equation is about one element" for sign in "=+*/"},
    ".^": "'pow(x, y)': an equation is about one element",
    "++": "'x += 1;'",
    "--": "'x -= 1;'",
    "===": "'=='",
    "!==": "'!='",
    "<>": "'!='",
    ">>>": "'>>' after a cast to u32",
    "|>": "'f(x)'",
    "::": "the name after it alone",
    "..": "an index, which ranges over its axis, or over 'i < n' in 'sum[i < n]'",
    "@": "a product as a sum: 'c[i, j] = sum[p] a[i, p] * b[p, j];'",
    "\\": "the next line without it: a statement may span lines",
    "\N{MULTIPLICATION SIGN}": "'*'",
    "\N{MIDDLE DOT}": "'*'",
    "\N{DIVISION SIGN}": "'/'",
    "\N{MINUS SIGN}": "'-'",
    "\N{EN DASH}": "'-'",
    "\N{LESS-THAN OR EQUAL TO}": "'<='",
    "\N{GREATER-THAN OR EQUAL TO}": "'>='",
    "\N{NOT EQUAL TO}": "'!='",
    "\N{NOT SIGN}": "'not'",
    "\N{LOGICAL AND}": "'and'",
    "\N{LOGICAL OR}": "'or'",
    "\N{GREEK CAPITAL LETTER SIGMA}": "'sum[i]'",
    "\N{N-ARY SUMMATION}": "'sum[i]'",
    "\N{N-ARY PRODUCT}": "'prod[i]'",
    "\N{SQUARE ROOT}": "'sqrt(x)'",
}

DIRECTIVES = {
    "include": "'use \"file.kern\";'",
    "define": "'const NAME: f32 = value;'",
    **each(
        "version pragma extension if ifdef ifndef endif", "nothing: remove the line"
    ),
}
"""Directives of a C preprocessor, by the word after `#`, and how to write them here."""

MODULES = frozenset({"np", "numpy", "jnp", "math", "torch", "tl", "std", "metal", "ti"})
"""Modules whose functions and constants are written as members: `np.exp`, `math.pi`."""

_CHOICE = "'if c { a } else { b }'"
_LOOP = "an index on the left, as in 'y[i] = ...;', which ranges over its axis"
_NO_BARRIER = "nothing: each statement sees all that those before it wrote"
_GATHER = (
    "a sum of what belongs to each element: "
    "'h[b] = sum[i when i32(ids[i]) == b] 1.0;'"
)
_SHARED = (
    "the value alone, as in 'let t[i] = ...;': the compiler decides where it is kept"
)
_PLAIN_ITEM = "'fn' or 'kernel'"

WORDS = {
    "return": "the value alone at the end of a 'fn', and 'y[i] = value;' in a kernel",
    **each("for foreach forall parallel loop do", _LOOP),
    "while": "a reduction or an index in place of a loop",
    **each("break continue", "the condition in the value: " + _CHOICE),
    **each("pass discard", "nothing: remove it"),
    **each("switch match then", _CHOICE),
    "where": f"{_CHOICE}, or a reduction's condition: 'sum[j when c] x[j]'",
    **each("elif elsif", "'else if'"),
    **each("def func function", _PLAIN_ITEM),
    **each("void __global__ __kernel entry", "'kernel'"),
    "template": f"{_PLAIN_ITEM} alone: types are written out",
    "layout": "parameters: 'kernel f(x: f32[n]) -> y: f32[n] { ... }'",
    **each("uniform buffer", "a parameter of the kernel"),
    "typedef": "the type itself",
    "enum": "a 'const' for each value",
    **each("module namespace", "the items alone: a file is a module"),
    "impl": "a 'fn' outside of the struct",
    "lambda": "a 'fn'",
    "__device__": "'fn'",
    **each("pub export extern", f"{_PLAIN_ITEM} alone"),
    "inline": "'fn' alone",
    "static": "'const name: type = value;'",
    "class": "'struct'",
    **each("var auto", "'let'"),
    **each("import from include", "'use \"file.kern\";'"),
    **each("shared groupshared __shared__", _SHARED),
    "as": "a cast like a call, 'f32(x)'",
    "xor": "'^'",
    "is": "'=='",
    "mod": "'%', or the call 'mod(x, y)'",
    "div": "'/'",
    "in": "the bare index: it ranges over its axis, or over 'i < n' in 'sum[i < n]'",
    **each("print printf", "an output for it"),
    "assert": "'require d % 8 == 0;' in the kernel, or a check in Python before the call",
    **each("barrier workgroupBarrier storageBarrier __syncthreads", _NO_BARRIER),
    **each("atomicAdd atomic_add", _GATHER),
}

ADDRESS_SPACES = {
    **each("workgroup private", _SHARED),
    "function": "'let'",
    "storage": "a parameter of the kernel: 'x: f32[n]', or 'mut x: f32[n]'",
    "uniform": "a parameter of the kernel: 'x: f32'",
}
"""Address spaces of WGSL's `var<space>`, and how to write such a variable here."""

EXPRESSION_WORDS = {**each("for in", "a reduction: 'sum[j] x[j]'")}

PARAMETER_WORDS = {
    **each("const in", "the name alone: what is not 'mut' is only read"),
    **each("inout ref var", "'mut'"),
    "out": "the output after '->'",
}

_RANK = (
    "the place of each element, 'let at[i] = sum[j when x[j] < x[i] or "
    "x[j] == x[i] and j < i] 1;', then"
)
_MEAN = "(sum[{i}] {x}) / f32({n})"
_SPREAD = "(sum[{i}] ({x} - mean{left}) * ({x} - mean{left})) / f32({n})"
_CENTRED = f"'let mean{{left}} = {_MEAN};', then"
_PRODUCT = "'c[i, j] = sum[p] a[i, p] * b[p, j];'"

REDUCTIONS = {
    **each("mean avg average", f"'{_MEAN}'"),
    "var": f"{_CENTRED} '{_SPREAD}'",
    "std": f"{_CENTRED} 'sqrt({_SPREAD})'",
    "norm": "'sqrt(sum[{i}] {x} * {x})'",
    "any": "'max[{i}] if {x} {{ 1 }} else {{ 0 }}', and compare it with 0",
    "all": "'min[{i}] if {x} {{ 1 }} else {{ 0 }}', and compare it with 1",
    "count": "'sum[{i} when {x}] 1'",
    **each("product mul", "'prod[{i}] {x}'"),
    **each("add reduce", "'sum[{i}] {x}'"),
    "amax": "'max[{i}] {x}'",
    "amin": "'min[{i}] {x}'",
    **each("scan cumsum", "'y[i] = sum[j when j <= i] x[j];'"),
    "sort": f"{_RANK} 'y[p] = sum[i when at[i] == p] x[i];'",
    "median": f"{_RANK} 'sum[i when at[i] == n / 2] x[i]'",
    **each("dot inner", "'sum[i] a[i] * b[i]'"),
    **each("matmul mm", _PRODUCT),
    "bmm": "'c[b, i, j] = sum[p] x[b, i, p] * y[b, p, j];'",
    "einsum": f"the sum itself: {_PRODUCT}",
    "outer": "'c[i, j] = a[i] * b[j];'",
    "transpose": "'y[j, i] = x[i, j];'",
    "softmax": (
        "its parts: 'let top{left} = max[{i}] {x};', "
        "'let total{left} = sum[{i}] exp({x} - top{left});', then "
        "'exp({x} - top{left}) / total{left}'"
    ),
    "logsumexp": (
        "'let top{left} = max[{i}] {x};', then "
        "'top{left} + log(sum[{i}] exp({x} - top{left}))'"
    ),
}
"""Functions of whole tensors in other libraries, as templates over a `Reduced`."""


@final
@dataclass(frozen=True, slots=True)
class Reduced:
    """The parts of a reduction for a hint, in the user's words where known.

    That is: the index, the value, the index's range, and the remaining indices.
    """

    index: str = "j"
    value: str = "x[i, j]"
    length: str = "n"
    left: str = "[i]"

    def by(self, name: str) -> str:
        """Return the reduction that other languages call `name`, as it is written here."""
        return REDUCTIONS[name].format(
            i=self.index, x=self.value, n=self.length, left=self.left
        )


FUNCTIONS = {
    "relu": "'max(x, 0.0)'",
    "leaky_relu": "'if x > 0.0 { x } else { 0.01 * x }'",
    "sigmoid": "'1.0 / (1.0 + exp(-x))', in a 'fn' for example",
    "silu": "'x / (1.0 + exp(-x))', in a 'fn' for example",
    "gelu": "'0.5 * x * (1.0 + erf(x / sqrt(2.0)))', in a 'fn' for example",
    "where": "'if c { a } else { b }'",
    **each("fabs absolute fabsf", "'abs(x)'"),
    "square": "'x * x'",
    **each("maximum fmax fmaxf", "'max(x, y)'"),
    **each("minimum fmin fminf", "'min(x, y)'"),
    "power": "'pow(x, y)'",
    "rsqrt": "'inverseSqrt(x)'",
    "arcsin": "'asin(x)'",
    "arccos": "'acos(x)'",
    "arctan": "'atan(x)'",
    "arctan2": "'atan2(y, x)'",
    "expf": "'exp(x)'",
    **each("logf ln", "'log(x)'"),
    "sqrtf": "'sqrt(x)'",
    "log10": "'log(x) / log(10.0)'",
    "clip": "'clamp(x, low, high)'",
    "lerp": "'mix(a, b, t)'",
    **each("fmod remainder", "'x % y'"),
    "isnan": "'is_nan(x)'",
    "isinf": "'not is_finite(x)'",
    "isfinite": "'is_finite(x)'",
    **each("float float32 double", "'f32(x)'"),
    **each("int int32", "'i32(x)'"),
    "uint": "'u32(x)'",
    **each("len shape size", "the name of the dim, 'n' in 'x: f32[n]'"),
    "range": "an index, which ranges over its axis",
    "arange": "the index itself: 'y[i] = f32(i);'",
    **each(
        "program_id get_global_id", "an index: 'y[i] = ...;' computes every element"
    ),
    "load": "the element, 'x[i]'",
    "store": "'y[i] = ...;'",
    "astype": "a cast like a call, 'f32(x)'",
    "reshape": "the subscripts that are meant, as in 'x[i * w + j]'",
    "roll": "the subscripts that are meant, as in 'x[(i + n - 1) % n]'",
    "pad": "'if 0 <= i and i < n { x[i] } else { 0.0 }'",
    "concatenate": "'if i < m { a[min(i, m - 1)] } else { b[i - m] }'",
    **each(
        "rand randn random",
        "a hash of a seed and the index, as the standard kernels' random.kern has",
    ),
    "zeros": "'y[i] = 0.0;'",
    "ones": "'y[i] = 1.0;'",
}
"""Functions of numbers in other languages and libraries, and how to write them here."""

_PARAMETER = re.compile(r"\b(?!if\b|else\b|not\b)[a-z]+\b(?!\()")
_ALONE = re.compile(r".?[({,f] ?\w+ ?[,)}{]")
_SIMPLE = re.compile(r"[\w.]+(?:\[[^\[\]]*\])?|\w+\([^()]*\)")


def called(name: str, arguments: Sequence[str]) -> str:
    """Return a call of a foreign function as it is written here, with its arguments.

    The template's parameters are replaced in order; if the number of arguments differs,
    it is returned unchanged.
    """
    template = FUNCTIONS[name]
    if not template.startswith("'") or "[" in template:
        return template
    end = template.index("'", 1)
    written = template[1:end]
    parameters = list(dict.fromkeys(_PARAMETER.findall(written)))
    if len(parameters) != len(arguments) or not all(arguments):
        return template
    given = dict(zip(parameters, arguments, strict=True))

    def put(match: re.Match[str]) -> str:
        text = given[match[0]]
        bare = _ALONE.match(written, max(match.start() - 2, 0)) or _SIMPLE.fullmatch(
            text
        )
        return text if bare else f"({text})"

    return f"'{_PARAMETER.sub(put, written)}'{template[end + 1 :]}"


OF_VECTORS = {
    **each("mul matmul multiply", "'m * v'"),
    "add": "'a + b'",
    **each("norm magnitude len abs2", "'length(v)'"),
    **each("unit normalized", "'normalize(v)'"),
    **each("maximum fmax amax", "'max(a, b)'"),
    **each("minimum fmin amin", "'min(a, b)'"),
    **each("any all", "the components: 'a.x > b.x and a.y > b.y'"),
    **each("inverse inv", "the inverse as a parameter of its own"),
    "lengthSquared": "'dot(v, v)'",
    "distanceSquared": "'dot(b - a, b - a)'",
    "lerp": "'mix(a, b, t)'",
    "outerProduct": "'mat3x3f(a * b.x, a * b.y, a * b.z)'",
}
"""Functions of vectors and matrices in other languages, and how to write them here."""

VALUES = {
    "True": "'true'",
    "False": "'false'",
    **each("None null", "a number"),
    **each("nan NaN", "a number; 'is_nan(x)' tests for it"),
    **each("inf Infinity INFINITY", "'inf'"),
    "FLT_MAX": "'3.4028234e38'",
    "pi": "'3.14159265', or 'const PI: f32 = 3.14159265;'",
    **each("PI M_PI", "'const PI: f32 = 3.14159265;'"),
    **each(
        "threadIdx blockIdx global_id global_invocation_id thread_position_in_grid",
        "an index: 'y[i] = ...;' computes every element",
    ),
    "blockDim": "a dim",
    **each("np math torch jnp tl", "the function's name alone"),
}
"""Words that are values in other languages, and how to write them here."""
