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

    `files` are those that a build would write.  `twin` has the NumPy twins of the Python
    module.  `layout` has lines of pieces, each a text with its style, as `kerngen layout`
    prints them.
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
    """Return the functions of a binding that compute in NumPy."""
    items = binding.split("\n\n\n")
    return "\n\n\n".join(x for x in items if x.startswith("@kernel_function\ndef "))
