"""The names under which a source's output is found."""

from __future__ import annotations

import keyword
import re
import unicodedata
from pathlib import PurePosixPath


def module_name(source: str) -> str:
    """
    Return the name of the Python module that a source file becomes.

    Characters that a name can't hold become `_`; a keyword gets a trailing one.

    >>> module_name("dsl/my-kernels.kern"), module_name("2d.kern"), module_name("if.kern")
    ('my_kernels', '_2d', 'if_')
    """
    stem = unicodedata.normalize("NFKC", PurePosixPath(source).stem)
    name = re.sub(r"\W", "_", stem)
    if keyword.iskeyword(name):
        return f"{name}_"
    return name if name.isidentifier() else f"_{name}"
