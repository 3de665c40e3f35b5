"""Names that Python can import, made of any text."""

from __future__ import annotations

import keyword
import re
import unicodedata


def python_word(text: str) -> str:
    """
    Return the nearest name that Python takes.

    Characters that a name can't hold become `_`; a keyword gets a trailing one.

    >>> python_word("my-kernels"), python_word("2d"), python_word("if")
    ('my_kernels', '_2d', 'if_')
    """
    name = re.sub(r"\W", "_", unicodedata.normalize("NFKC", text))
    if keyword.iskeyword(name):
        return f"{name}_"
    return name if name.isidentifier() else f"_{name}"
