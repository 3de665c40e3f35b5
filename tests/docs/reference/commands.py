"""The page of commands: what each says of itself."""

from __future__ import annotations

from typing import Final

import click
from click.testing import CliRunner

from kerngen.cli import main
from tests.docs.reference.table import table

_INTRODUCTION: Final = """\
# Commands

Made from what the commands say of themselves.

Settings come from `pyproject.toml`, as of ruff, black or pytest: the nearest one above the working directory that is there.

```toml
[tool.kerngen]
source = "kernels"       # a folder of .kern files
out = "src/my_kernels"   # the folder of generated files, a Python package
```

`source` may be one file, too. `out` may lie anywhere, but not be the project's own folder; its name is the package's, so it is refused where Python could not import it, or where it would hide NumPy or a module of the standard library. A pyproject.toml without `[tool.kerngen]` is passed over; one that can't be read is an error, named with its line.

Exit status: 0 done, 1 your input or a check failed, 2 wrong usage, 130 Ctrl-C. A terminal gets colours and progress, a pipe plain text. `--json` is for scripts, `-` is stdin, and `--quiet` leaves errors and changes only. `kerngen` is `python -m kerngen`, too.

A kernel is named by `kernel`, by `file.kernel` where two files have one of that name, or by `FILE.kern:kernel`.

Shells complete commands, options, paths and codes: `eval "$(_KERNGEN_COMPLETE=bash_source kerngen)"` in `~/.bashrc`, the same with `zsh_source` in `~/.zshrc`, or `_KERNGEN_COMPLETE=fish_source kerngen | source` in fish's `config.fish`.
"""


BESIDE: Final = {
    "new": ("`cargo new`", "a project", ""),
    "build": ("`cargo build`, `futhark`", "the generated package", ""),
    "check": ("`cargo check`, `ruff check`", "with `--fix`, the sources", ""),
    "fmt": ("`cargo fmt`, `black`", "the sources, formatted", ""),
    "show": ("Compiler Explorer", "", ""),
    "layout": ("`pahole`", "", ""),
    "explain": ("`rustc --explain`, `ruff rule`", "", ""),
    "verify": ("a test suite by hypothesis, made for you", "", "yes"),
    "watch": ("`cargo watch`", "what `build` writes, at each save", ""),
    "doctor": ("`brew doctor`", "", "tests all it finds"),
    "bind": ("`wgsl_to_wgpu`, `bindgen`", "typed Python for WGSL", ""),
    "lsp": ("`ruff server`, `slangd`", "", ""),
    "bench": ("`futhark bench`, pytest-benchmark", "with `--out`, `--plot`", "yes"),
    "tune": ("`futhark autotune`", "with `--out`, a file of schedules", "yes"),
}
"""What a command is like elsewhere, what it writes, and whether it runs kernels."""


def page() -> str:
    """Return the page in Markdown."""
    parts = [_INTRODUCTION, _overview()]
    for name in main.commands:
        parts.append(f"## kerngen {name}\n")
        parts.append(f"```console\n$ kerngen {name} --help\n{_help(name)}```\n")
    return "\n".join(parts)


def _overview() -> str:
    rows = [
        (f"[`kerngen {name}`](#kerngen-{name})", _summary(command), *BESIDE[name])
        for name, command in main.commands.items()
    ]
    return table(
        ("command", "what it does", "is like", "writes", "needs an adapter"), rows
    )


def _summary(command: click.Command) -> str:
    """The first paragraph of its help, in one line."""
    assert command.help is not None
    return " ".join(command.help.partition("\n\n")[0].split())


def _help(name: str) -> str:
    return CliRunner().invoke(main, [name, "--help"], prog_name="kerngen").output
