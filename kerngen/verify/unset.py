"""Shaders whose workgroup memory is filled with a pattern before they run.

WGSL promises zeros there, but wgpu-native does not set them: on a GPU a shader finds what
other ones left, and on a software adapter mostly zeros, where tests would find no fault.

    var<workgroup> part: array<f32, 256>;
    ...
    fn main(@builtin(local_invocation_index) lane: u32, ...) {
        var unset_word = 2143363840u;                          // these lines are added
        for (var p = lane; p < 256; p += 64) {
            part[p] = f32(bitcast<f32>(unset_word));
        }
        workgroupBarrier();
        ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_VARIABLE: Final = re.compile(r"^var<workgroup> (\w+): (.+);$", re.MULTILINE)
_SIZE: Final = re.compile(r"@workgroup_size\((\w+)\)")
_BODY: Final = re.compile(
    r"\(local_invocation_index\) (\w+): u32,\n(?: +@builtin.*\n)*\) \{\n"
)
"""The end of the entry point's head: the name of the lane's number, up to the brace."""
_ARRAY: Final = re.compile(r"array<(.+), (\w+)>")
_MATRIX: Final = re.compile(r"mat([234])x[234]f")
_WORD: Final = "unset_word"


def with_unset_memory(code: str, word: int) -> str:
    """Return the text of a shader that fills its workgroup memory with a word first.

    `code` is what kerngen generates for one entry point.
    """
    variables = _VARIABLE.findall(code)
    if not variables:
        return code
    size, body = _SIZE.search(code), _BODY.search(code)
    assert size is not None, "a shader that kerngen generates has a size"
    assert body is not None, "a shader that kerngen generates numbers its lanes"
    lane = body[1]
    fill = [f"var {_WORD} = {word}u;"]
    for name, type_ in variables:
        if found := _ARRAY.fullmatch(type_):
            inner = _filled(f"{name}[p]", found[1], "p")
            head = f"for (var p = {lane}; p < {found[2]}; p += {size[1]})"
            fill += [f"{head} {{", *inner, "}"]
        else:
            fill += [f"if ({lane} == 0u) {{", *_filled(name, type_, "p"), "}"]
    fill += ["workgroupBarrier();", ""]
    return code[: body.end()] + "\n".join(fill) + code[body.end() :]


def _filled(place: str, type_: str, before: str) -> Iterator[str]:
    """Yield the statements that fill a place of a type, of arrays and matrices by loops.

    `before` is the index of the loop around; those inside are `pp`, `ppp`.
    """
    if found := _ARRAY.fullmatch(type_) or _MATRIX.fullmatch(type_):
        element, length = (
            found.groups() if found.re is _ARRAY else (f"vec{type_[-2]}f", found[1])
        )
        at = before + "p"
        yield f"for (var {at} = 0u; {at} < {length}; {at} += 1u) {{"
        yield from _filled(f"{place}[{at}]", element, at)
        yield "}"
    elif type_.startswith("atomic"):
        yield f"atomicStore(&{place}, {_WORD});"
    else:
        scalar = {"f": "f32", "i": "i32", "u": "u32"}[type_.lstrip("vec234")[0]]
        yield f"{place} = {type_}(bitcast<{scalar}>({_WORD}));"
