"""What every input must end in: output that others accept, or diagnostics; soon."""

from __future__ import annotations

import re
import time
import traceback
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, final

from kerngen.compiler import compile_text
from kerngen.source.diagnostic import CompileError, Diagnostic
from kerngen.source.reading import decode_source
from kerngen.source.render import render, to_json

Judge: TypeAlias = Callable[[str], str]

SECONDS: Final = 5.0
"""The longest that an input may take, of a slow processor's time; it is 0.2 as a rule."""

PER_BYTE: Final = 2e-5
"""What each byte of output may take on top: a few kernels become many shaders."""

PATH: Final = "fuzz.kern"
_UNSEEN: Final = {"Cc", "Cf", "Cs", "Zl", "Zp"}


class FoundError(AssertionError):
    """An input that the compiler gets wrong; `key` is the same for the same fault."""

    def __init__(self, key: str, text: str) -> None:
        super().__init__(text)
        self.key = key


@final
@dataclass
class Oracle:
    """Examines inputs; `judges` are asked about every `share`-th shader of those new."""

    judges: Mapping[str, Judge] = field(default_factory=dict[str, Judge])
    share: int = 1
    _seen: set[int] = field(default_factory=set[int])

    def examine(self, data: bytes) -> str:
        """Return how an input ends: 'output', or 'diagnostics'.

        Raises FoundError where it ends otherwise, or too late.
        """
        start = time.process_time()
        try:
            files = _compiled(data)
        except Exception as error:
            raise FoundError(_key(error), traceback.format_exc()) from error
        seconds = time.process_time() - start
        most = SECONDS + PER_BYTE * sum(map(len, files.values()))
        if seconds > most:
            raise FoundError(f"slow: {sorted(files)[:3]}", f"It takes {seconds:.1f} s.")
        for path, content in files.items():
            if path.endswith(".wgsl"):
                self._judge(content.decode())
        return "output" if files else "diagnostics"

    def _judge(self, shader: str) -> None:
        """Ask the judges about a shader, comments left out: the same one but once."""
        bare = re.sub(r" *//[^\n]*", "", shader)
        if hash(bare) % self.share or hash(bare) in self._seen:
            return
        self._seen.add(hash(bare))
        for name, judge in self.judges.items():
            if message := judge(bare):
                key = re.sub(r"\d+|'[^']*'|`[^`]*`", "_", message)[:120]
                raise FoundError(f"{name}: {key}", f"{message}\n{shader}")


def _compiled(data: bytes) -> Mapping[str, bytes]:
    """Return the files that an input becomes; none if it is wrong, which is shown."""
    try:
        text = decode_source(data, PATH).text
        compiled = compile_text(text, PATH, formatted=False)
    except CompileError as error:
        _check_diagnostics(error.diagnostics)
        return {}
    compile(compiled.binding, "binding.py", "exec", dont_inherit=True)
    return compiled.files


def _check_diagnostics(diagnostics: tuple[Diagnostic, ...]) -> None:
    """Check that they can be shown, on any terminal and to any script."""
    assert diagnostics
    shown = render(diagnostics)
    assert shown.count("error[KG") >= len(diagnostics)
    assert not {c for c in set(shown) - {"\n"} if unicodedata.category(c) in _UNSEEN}
    shown.encode()
    assert len(to_json(diagnostics)) == len(diagnostics)
    for diagnostic in diagnostics:
        text = diagnostic.span.source.text
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)


def _key(error: BaseException) -> str:
    """Name a fault by its kind and the place of the compiler where it happened."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "kerngen/" in f.filename] or frames
    last = ours[-1]
    place = last.filename.rpartition("kerngen/")[2]
    return f"{type(error).__name__} in {place}:{last.name}:{last.lineno}"
