"""Detection of files with another tool's extensions of WGSL, such as '#import'."""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Tool(NamedTuple):
    """A tool with its own dialect of WGSL, and the text that shows it."""

    name: str
    found: str


_QUOTED: Final = r"""(?:[^{};'"\n]|'[^'\n]*'|"[^"\n]*")*"""
_TOOLS: Final = (
    (
        r"#(?:import\s+\"?[\w.]+::|define_import_path|\{)[^\n]*",
        "naga_oil, as Bevy has it",
    ),
    (
        r"#(?:import|ifdef|ifndef|else|endif|if|elif|enable|define|undef|include)\b[^\n]*",
        "a preprocessor, such as naga_oil (Bevy) or vello_shaders (Vello)",
    ),
    (
        rf"\{{\{{\s*\w{_QUOTED}\}}\}}|\{{[%$#][^\n]*|\$\$[^\n]*",
        "Jinja, as pygfx and wgpu-py have it",
    ),
    (rf"\$\{{{_QUOTED}\}}|`", "JavaScript, whose template string it is"),
    (r"::\w+", "WESL or naga_oil, which import by paths"),
    (r"\{[A-Za-z_]\w*\}|[#$][A-Za-z]\w*|\$", "a preprocessor of its project"),
)
"""Patterns of other tools' text, and the tool of each; the first that matches counts."""


def foreign_tool(text: str) -> Tool | None:
    """Return the tool whose dialect a text begins with, or None."""
    for pattern, name in _TOOLS:
        if found := re.match(pattern, text):
            return Tool(name, found[0].rstrip())
    return None


NAGA: Final = "naga"
NATIVE: Final = {
    **dict.fromkeys(("u16", "i16"), NAGA),
    **dict.fromkeys(("binding_array", "acceleration_structure", "ray_query"), NAGA),
    **dict.fromkeys(("texture_1d_array", "texture_storage_1d_array"), NAGA),
    **dict.fromkeys(("ray_intersection", "RayDesc", "RayIntersection"), NAGA),
    **dict.fromkeys(("coop_mat8x8", "coop_mat16x16"), NAGA),
    "texture_external": "browsers, which import videos by it",
}
"""Types beyond WGSL, with the tool that defines each."""
