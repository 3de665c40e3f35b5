"""Files of one shape each, the worst that we know: long, deep, wrong all over.

The fuzzer draws small programs of every kind; these are as large as is asked for, and
of a single kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

PATH: Final = "main.kern"

Shape: TypeAlias = Callable[[int], Mapping[str, str]]
"""Returns files of so many characters together; the one to compile is `PATH`."""

_X: Final = "(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }\n"
_HEAD: Final = (
    "kernel k(x: f32[n], mut z: f32[n], ids: i32[n], h: f32) -> y: f32[n] {\n"
)
_END: Final = "y[i] = x[i];\n}\n"
_MAIN: Final = f"{_HEAD}{_END}"
_GEMM: Final = "(a:f32[m,k],b:f32[k,n])->c:f32[m,n]{c[i,j]=sum[p]a[i,p]*b[p,j];}\n"
_AXES: Final = ", ".join("2" * 16)
_INDICES: Final = ", ".join("abcdefghijklmnop")
_FIELDS: Final = "".join(f"a{n}: f32, " for n in range(500))
_IN_STRUCT: Final = f"struct S {{ {_FIELDS}}}\nkernel k(mut p: S[n], q: S[n]) {{\n"


def _many(piece: str, start: str = "", end: str = "") -> Shape:
    """Return texts that repeat a piece; `#` in it is its number, `@` the next."""

    def make(size: int) -> Mapping[str, str]:
        pieces, left, number = [start], size - len(start) - len(end), 0
        while left > 0:
            numbered = piece.replace("#", str(number)).replace("@", str(number + 1))
            pieces.append(numbered)
            left -= len(numbered)
            number += 1
        return {PATH: "".join((*pieces, end))}

    return make


def _body(piece: str, head: str = _HEAD, end: str = _END) -> Shape:
    """Return kernels with one long body."""
    return _many(piece, head, end)


def _deep(opening: str, core: str, closing: str) -> Shape:
    """Return kernels with one expression, which nests as deep as there is room."""

    def make(size: int) -> Mapping[str, str]:
        deep = (size - len(_MAIN)) // (len(opening) + len(closing))
        value = f"{opening * deep}{core}{closing * deep}"
        return {PATH: f"{_HEAD}y[i] = {value};\n}}\n"}

    return make


def _nested(opening: str, core: str, closing: str, deep: int = 110) -> Shape:
    """Return kernels whose statements nest nearly as deep as they may."""
    return _body(f"y[i] = {opening * deep}{core}{closing * deep};\n")


def _stages(number: int) -> Shape:
    """Return kernels of so many stages each."""
    body = "z[i] = sum[j] z[j] + x[i];\n" * number
    return _many(_HEAD.replace("k(", "k#(") + body + _END)


def _rows(number: int) -> Shape:
    """Return kernels of so many stages that may run together."""
    lets = (f"let a{n + 1}[i] = sum[j] x[i, j] * a{n}[i];\n" for n in range(number))
    body = f"let a0[i] = sum[j] x[i, j];\n{''.join(lets)}"
    head = "kernel k#(x: f32[m, n]) -> y: f32[m, n] {\n"
    return _many(f"{head}{body}y[i, j] = x[i, j] + a{number}[i];\n}}\n")


def _of_length(text: str) -> Shape:
    """Return texts in which one part, `%`, is as long as there is room."""
    kind, many = text[text.index("%") + 1], text.count("%")

    def make(size: int) -> Mapping[str, str]:
        long = kind * ((size - len(text)) // many)
        return {PATH: text.replace(f"%{kind}", long)}

    return make


# Several files


def _chain(size: int) -> Mapping[str, str]:
    """Each file uses the next one."""
    number = size // 60
    files = {
        f"f{n}.kern": f'use "f{n + 1}.kern";\nfn g{n}(x: f32) -> f32 {{ x }}\n'
        for n in range(number)
    }
    main = 'use "f0.kern";\nkernel k(x: f32[n]) -> y: f32[n] { y[i] = g0(x[i]); }\n'
    return {**files, f"f{number}.kern": "fn g(x: f32) -> f32 { x }\n", PATH: main}


def _circle(size: int) -> Mapping[str, str]:
    """Each file uses the next one, and the last one the first."""
    number = size // 60
    return {
        PATH: 'use "f0.kern";\n',
        **{
            f"f{n}.kern": f'use "f{(n + 1) % number}.kern";\nfn g{n}(x: f32) -> f32 {{ x }}\n'
            for n in range(number)
        },
    }


def _circles(size: int) -> Mapping[str, str]:
    """Each file uses the next one, and the first."""
    number = size // 80
    return {
        PATH: 'use "f0.kern";\n',
        **{
            f"f{n}.kern": f'use "f{(n + 1) % number}.kern";\nuse "{PATH}";\n'
            f"fn g{n}(x: f32) -> f32 {{ x }}\n"
            for n in range(number)
        },
    }


def _diamonds(size: int) -> Mapping[str, str]:
    """Each file uses the next two, so that there are many ways to the last one."""
    number = size // 100
    files = {
        f"f{n}.kern": f'use "f{n + 1}.kern";\nuse "f{n + 2}.kern";\nfn g{n}(x: f32) -> f32 {{ x }}\n'
        for n in range(number)
    }
    ends = {f"f{n}.kern": f"const A{n}: f32 = 1.0;\n" for n in (number, number + 1)}
    return {
        **files,
        **ends,
        PATH: 'use "f0.kern";\nkernel k(x: f32[n]) -> y: f32[n] { y[i] = g9(x[i]); }\n',
    }


def _star(size: int) -> Mapping[str, str]:
    """One file uses, and calls, all the others."""
    number = size // 100
    uses = "".join(f'use "f{n}.kern";\n' for n in range(number))
    calls = "".join(f"y[i] = g{n}(x[i]);\n" for n in range(number))
    files = (f"fn g{n}(x: f32) -> f32 {{ x + 1.0 }}\n" for n in range(number))
    listed = {f"f{n}.kern": text for n, text in enumerate(files)}
    return {**listed, PATH: f"{uses}{_HEAD}{calls}}}\n"}


RIGHT: Final[dict[str, Shape]] = {
    "kernels": _many("kernel k#(x:f32[n])->y:f32[n]{y[i]=x[i];}\n"),
    "kernels in one line": _many("kernel k#(x:f32[n])->y:f32[n]{y[i]=x[i];} "),
    "reductions in kernels": _many(
        "kernel k#(x:f32[m,n])->y:f32[m]{y[i]=sum[j]x[i,j];}\n"
    ),
    "matrix products": _many(f"kernel k#{_GEMM}"),
    "parameters": _many("a#: f32, ", "kernel k(", _X[1:]),
    "tensors": _many("a#: f32[n], ", "kernel k(", _X[1:]),
    "kernels of 60 parameters": _many(
        "kernel k#(" + "".join(f"a{n}: f32, " for n in range(60)) + _X[1:]
    ),
    "statements": _body("y[i] = x[i] * 2.0;\n"),
    "statements that differ": _body("y[i] = x[i] * #.0 + h;\n"),
    "updates": _body("z[i] += x[i];\n"),
    "lets": _body("let a#[i] = x[i] + 1.0;\n"),
    "a chain of lets": _body(
        "let a@[i] = a#[i] + 1.0;\n", f"{_HEAD}let a0[i] = x[i];\n"
    ),
    "hosts": _body("host h@ = h# * 2.0;\n", f"{_HEAD}host h0 = h;\n"),
    "branches": _body("y[i] = if x[i] < h { x[i] } else { h };\n"),
    "gathers": _body("y[i] = x[ids[i]];\n"),
    "offsets": _body("y[i] = x[i + #];\n"),
    "reductions": _body("y[i] += sum[j < 4] x[j];\n", f"{_HEAD}y[i] = 0.0;\n", "}\n"),
    "60 stages": _stages(60),
    "30 stages": _stages(30),
    "60 stages by rows": _rows(58),
    "30 stages by rows": _rows(28),
    "sums of 200 numbers": _body(f"y[i] = {'1.0 + ' * 200}h;\n"),
    "sums of 200 terms": _body(f"y[i] = {'x[i] + ' * 200}h;\n"),
    "products of 170 factors": _body(f"y[i] = {'x[i] * ' * 170}h;\n"),
    "conditions": _body(
        f"y[i] = if {'x[i] < h and ' * 80}true {{ h }} else {{ h }};\n"
    ),
    "nested parentheses": _nested("(", "x[i]", ")"),
    "nested signs": _nested("-", "x[i]", ""),
    "nested calls": _nested("exp(", "x[i]", ")"),
    "nested maxima": _nested("max(h, ", "x[i]", ")"),
    "nested sums": _nested("(h + ", "x[i]", ")"),
    "nested branches": _nested("if h < 1.0 { ", "x[i]", " } else { h }"),
    "nested else": _nested("if h < 1.0 { h } else ", "{ h }", ""),
    "nested gathers": _nested("x[" + "ids[" * 100, "i", "]" * 101, 1),
    "nested functions": _body(
        f"y[i] = {'f(' * 100}h{')' * 100};\n",
        "fn f(x: f32) -> f32 { x * 2.0 }\n" + _HEAD,
    ),
    "functions": _many("fn f#(x: f32) -> f32 { x * 2.0 }\n"),
    "a chain of functions": _many(
        "fn f@(x: f32) -> f32 { f#(x) + 1.0 }\n",
        "fn f0(x: f32) -> f32 { x }\n",
        f"{_HEAD}y[i] = f50(x[i]);\n}}\n",
    ),
    "a function of many lets": _many(
        "let a@ = a# * 2.0;\n",
        "fn f(x: f32) -> f32 { let a0 = x;\n",
        f"a9 }}\n{_HEAD}y[i] = f(x[i]);\n}}\n",
    ),
    "constants": _many("const A#: f32 = 1.0;\n"),
    "a chain of constants": _many(
        "const A@: f32 = A# + 1.0;\n", "const A0: f32 = 1.0;\n"
    ),
    "structs": _many("struct S# { a: f32, b: vec3f }\n"),
    "a struct": _many("a#: f32,\n", "struct S {\n", "}\n"),
    "a struct in a kernel": _many(
        "a#: f32,\n",
        "struct S {\n",
        "}\nkernel k(mut p: S[n], u: S) { p[i].a1 = u.a2; }\n",
    ),
    "members": _body("p[i].a7 = q[i].a8;\n", _IN_STRUCT, "}\n"),
    "kernels of a struct": _many(
        "kernel k#(p: S[n], u: S) -> y: f32[n] { y[i] = p[i].a1 + u.a1; }\n",
        f"struct S {{ {_FIELDS}}}\n",
    ),
    "copies of structs": _many(
        "kernel k#(p: S[n]) -> y: S[n] { y[i] = p[i]; }\n",
        f"struct S {{ {_FIELDS[:600].rpartition('a')[0]}}}\n",
    ),
    "copies of a large struct": _many(
        "p[i] = q[i];",
        _IN_STRUCT,
        "}\n",
    ),
    "structs in structs": _many(
        "struct S@ { a: S#, b: f32 }\n", "struct S0 { a: f32 }\n"
    ),
    "vectors": _body(
        "p[i] = p[i] * 2.0 + vec4f(h, h, h, h).wzyx;\n",
        "kernel k(mut p: vec4f[n], h: f32) {\n",
        "}\n",
    ),
    "matrices": _body(
        "p[i] = p[i] * transpose(p[i]);\n", "kernel k(mut p: mat4x4f[n]) {\n", "}\n"
    ),
    "indices": _body(
        f"y[{_INDICES}] = x[{_INDICES}];\n",
        f"kernel k(x: f32[{_AXES}]) -> y: f32[{_AXES}] {{\n",
        "}\n",
    ),
    "schedules": _many("schedule k when n == # { generic }\n", f"kernel k{_X}"),
    "schedules of a product": _many(
        "schedule k when n == # { gemm tile(64, 64, 16) }\n", f"kernel k{_GEMM}"
    ),
    "schedules of several": _many(
        "kernel k#(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }\n"
        "schedule k#, k when n == # { generic }\n",
        f"kernel k{_X}",
    ),
    "schedules of a pattern": _many(
        "schedule *k* when n == # { generic }\n", f"kernel k{_X}"
    ),
    "schedules of 30 stages": _many(
        "schedule k when n == # { generic }\n",
        _HEAD + "z[i] = sum[j] z[j];\n" * 30 + _END,
    ),
    "comments": _many("// a comment, number #\n"),
    "a comment": _of_length("//%a\n"),
    "empty lines": _of_length("%\n"),
    "docs of a file": _many("//! A line of text, number #.\n"),
    "docs of a kernel": _many("/// A line of text, number #.\n", end=_MAIN),
    "docs of kernels": _many(f"/// Doubles.\nkernel k#{_X}"),
    "comments in lines": _body("y[i] = // a\n x[i] // b\n * 2.0; // c\n"),
    "a long name": _of_length("kernel k(%a: f32[n]) -> y: f32[n] { y[i] = %a[i]; }\n"),
    "large numbers": _body(f"y[i] = x[i] + {'9' * 30}.0;\n"),
    "a chain of files": _chain,
    "a star of files": _star,
}
"""What is right, or was until a limit."""

WRONG: Final[dict[str, Shape]] = {
    "digits": _of_length("const A: f32 = %9.0;\n"),
    "digits of a whole number": _of_length("const A: i32 = %9;\n"),
    "hexadecimal digits": _of_length("const A: u32 = 0x%f;\n"),
    "digits after the point": _of_length("const A: f32 = 0.%1;\n"),
    "digits of an exponent": _of_length("const A: f32 = 1.0e%1;\n"),
    "a long sum": _many("x[i] + ", f"{_HEAD}y[i] = ", "h;\n}\n"),
    "stages": _body("z[i] = sum[j] z[j];\n"),
    "wrong types": _body("y[i] = x[i] * 1u;\n"),
    "wrong types in one line": _many("y[i] = x[i] * 1u; ", _HEAD.strip(), "}"),
    "wrong types in kernels": _many("kernel k#(x:f32[n])->y:f32[n]{y[i]=x[i]+1u;}\n"),
    "mixed types": _body("y[i] = x[i] + ids[i];\n"),
    "wrong subscripts": _body("y[i] = x[i, i];\n"),
    "wrong targets": _body("y[i + 1] = x[i];\n"),
    "unknown names": _body("y[i] = xx#;\n"),
    "unknown names among lets": _body(
        "y[i] = valux#[i];\n",
        _HEAD + "".join(f"let value{n}[i] = x[i];\n" for n in range(1000)),
    ),
    "unknown functions": _body("y[i] = sqqrt#(x[i]);\n"),
    "unknown functions among others": _many("fn value#(x: f32) -> f32 { valux#(x) }\n"),
    "unknown types": _many("struct S# { a: floatt }\n"),
    "unknown members": _body("p[i].bb# = 1.0;\n", _IN_STRUCT, "}\n"),
    "unknown kernels": _many("schedule kk# { generic }\n"),
    "unknown patterns": _many("schedule k#* { generic }\n", f"kernel x{_X}"),
    "too many matches": _many(f"kernel k#{_X}schedule k* when n == # {{ generic }}\n"),
    "stars": _many("k*", f"kernel {'k' * 5000}{_X}schedule ", "x { generic }\n"),
    "unknown stages": _many("schedule k.stage# { generic }\n", _MAIN),
    "schedules that don't fit": _many("schedule k { gemm }\n", _MAIN),
    "equal kernels": _many("kernel k(x:f32[n])->y:f32[n]{y[i]=x[i];}\n"),
    "equal lets": _body("let a[i] = x[i];\n"),
    "equal fields": _many("a: f32,\n", "struct S {\n", "}\n"),
    "equal parameters": _many("a: f32,\n", "kernel k(\n", _X[1:]),
    "circles of functions": _many("fn f#(x: f32) -> f32 { f#(x) }\n"),
    "circles of constants": _many("const A#: f32 = A#;\n"),
    "wrong statements": _body("y[i] = ;\n"),
    "wrong characters": _of_length("%#"),
    "wrong signs": _body("y[i] = $;\n"),
    "wrong items": _many("kernel "),
    "wrong heads": _many("kernel k#(x f32[n]) -> y: f32[n] { y[i] = x[i]; }\n"),
    "missing semicolons": _body("y[i] = x[i]\n"),
    "other languages": _body("for i in range(10): y[i] = x[i] ** 2\n"),
    "opening braces": _of_length("%{"),
    "closing braces": _of_length("%}"),
    "deep parentheses": _deep("(", "x[i]", ")"),
    "deep subscripts": _deep("ids[", "i", "]"),
    "deep calls": _deep("exp(", "x[i]", ")"),
    "deep branches": _deep("if h < 1.0 { ", "x[i]", " } else { h }"),
    "deep else": _deep("if h < 1.0 { h } else ", "{ h }", ""),
    "deep reductions": _deep("sum[j] ", "x[j]", ""),
    "deep signs": _deep("-", "x[i]", ""),
    "parentheses without end": _of_length("const A: f32 = %("),
    "brackets without end": _of_length("const A: f32 = x%["),
    "strings without end": _many('use "a\n'),
    "misplaced docs": _body("y[i] = x[i]; /// a\n"),
    "letters beyond ASCII": _body("y[i] = \N{GREEK SMALL LETTER ALPHA};\n"),
    "emoji": _of_length("%\N{GRINNING FACE}"),
    "missing files": _many('use "missing#.kern";\n'),
    "diamonds of files": _diamonds,
    "a circle of files": _circle,
    "circles of files": _circles,
}
"""What ends in diagnostics."""

SHAPES: Final = {**RIGHT, **WRONG}
