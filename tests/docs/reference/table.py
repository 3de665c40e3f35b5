"""Tables in Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; bars in its cells are escaped."""
    lines = [heads, ["---"] * len(heads)]
    lines += [list(map(_escaped, row)) for row in rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _escaped(cell: str) -> str:
    """Escape bars as GitHub and the site both understand: in code, neither knows all."""
    cell = re.sub(r"`([^`|]*\|[^`]*)`", r"<code>\1</code>", cell)
    return cell.replace("|", "&#124;")


def listed(names: Iterable[str]) -> str:
    """Return names as code, with commas between them."""
    return ", ".join(f"`{name}`" for name in names)
