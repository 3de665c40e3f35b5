"""The page of strategies and their options, made of the compiler's table."""

from __future__ import annotations

from typing import Final

from kerngen.ir.strategies import OPTIONS, OptionRule
from tests.docs.reference.table import table

_INTRODUCTION: Final = """\
# Strategies and their options

Made from the table in `kerngen/ir/strategies.py`, which the compiler and `kerngen tune` read, too. [Schedules](../schedules.md) explains each strategy with a picture; [the language](../language.md#stages-and-schedules) has the defaults.

```rust
kernel product(a: f32[m, k], b: f32[k, n]) -> c: f32[m, n] {
    c[i, j] = sum[p] a[i, p] * b[p, j];
}

schedule product when m <= 4 { gemv rows(4) }
schedule product when adapter.workgroup_bytes >= 32768 {
    gemm tile(128, 128, 16) micro(8, 16)
}
```

A guard compares dims and integer scalars, with arithmetic, `and`, `or` and `not`. It may ask the adapter: `adapter.workgroup_bytes`, `adapter.invocations`, `adapter.tensor_bytes`, `adapter.subgroups` and `adapter.f16`.
"""


def page() -> str:
    """Return the page in Markdown."""
    parts = [_INTRODUCTION]
    for name, options in OPTIONS.items():
        parts.append(f"## {name}\n")
        rows = [_row(rule) for rule in options.values()]
        heads = ("option", "each number is", "`kerngen tune` tries")
        parts.append(table(heads, rows) if rows else "It has no options.\n")
    return "\n".join(parts)


def _row(rule: OptionRule) -> tuple[str, ...]:
    tried = [", ".join(map(str, values)) for values in rule.tried]
    shown = "; ".join(tried) if rule.count > 1 else ", ".join(tried)
    return f"`{rule.usage}`", rule.accepted, shown
