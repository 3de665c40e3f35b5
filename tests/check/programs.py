"""Right programs, and how they are taken apart to spoil them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PROGRAMS = [
    text
    for folder in (ROOT / "tests" / "cases" / "accept", ROOT / "dsl")
    for file in sorted(folder.glob("*.kern"))
    # Those that use no other file.
    if not (text := file.read_text("utf-8")).count("\nuse ")
]
TOKEN = re.compile(
    r"//[^\n]*|\d+(?:\.\d+)?(?:e-?\d+)?|\w+|\s+|<<|>>|->|[-+*/=!<>]=|.", re.DOTALL
)
