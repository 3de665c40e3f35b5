"""The reports for the playground, as JSON."""

from __future__ import annotations

import json

from kerngen.compiler import Compiler
from kerngen.emit.targets import Target
from kerngen.report.findings import check_text
from kerngen.report.layout_data import hints, subjects
from kerngen.report.layout_text import as_text
from kerngen.syntax.library import Library

NAME = "page.kern"


def check_page(text: str) -> str:
    """Return the findings in a text, as JSON."""
    return json.dumps(check_text(text, NAME))


def compile_page(text: str) -> str:
    """Return the generated files and reports of a text without errors, as JSON.

    - `files`: the text of each file that a build would write, by path
    - `twin`: the Python module's NumPy references
    - `layout`: the lines that `kerngen layout` prints, as lists of texts with a style each
    """
    library = Library.of_text(text, NAME)
    compiled = Compiler(library, formatted=False, targets=Target).compile(NAME)
    module = compiled.module
    chosen = subjects(module)
    return json.dumps(
        {
            "files": {path: data.decode() for path, data in compiled.files.items()},
            "twin": _twins(compiled.binding),
            "layout": [*as_text(chosen, hints(module))] if chosen else [],
        }
    )


def _twins(binding: str) -> str:
    """Return the NumPy references in the text of a Python module.

    Their decorator is `@kernel_function`; that of a kernel's own function is
    `@_SOFTMAX.function`.
    """
    items = binding.split("\n\n\n")
    return "\n\n\n".join(x for x in items if x.startswith("@kernel_function\ndef "))
