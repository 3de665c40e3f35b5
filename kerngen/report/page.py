"""The compiler's report for the playground: all about one text, as JSON."""

from __future__ import annotations

import json

from kerngen.compiler import Compiler
from kerngen.emit.targets import Target
from kerngen.report.findings import check_text
from kerngen.syntax.library import Library

NAME = "page.kern"


def compile_page(text: str) -> str:
    """Return what is found in a text and, if it has no errors, the files it becomes."""
    found = check_text(text, NAME)
    if any(each["severity"] == "error" for each in found):
        return json.dumps({"found": found, "files": {}, "kernels": []})
    library = Library.of_text(text, NAME)
    compiled = Compiler(library, formatted=False, targets=Target).compile(NAME)
    files = {path: data.decode() for path, data in compiled.files.items()}
    kernels = [kernel.name for kernel in compiled.module.kernels]
    return json.dumps({"found": found, "files": files, "kernels": kernels})
