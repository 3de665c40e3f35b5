"""Right programs, and how they are taken apart to spoil them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PROGRAMS = [
    file.read_text("utf-8")
    for folder in (ROOT / "tests" / "cases" / "accept", ROOT / "dsl")
    for file in sorted(folder.glob("*.kern"))
]
TOKEN = re.compile(
    r"//[^\n]*|\d+(?:\.\d+)?(?:e-?\d+)?|\w+|\s+|<<|>>|->|[-+*/=!<>]=|.", re.DOTALL
)
