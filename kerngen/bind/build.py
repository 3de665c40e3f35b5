"""From a WGSL file to its generated files."""

from __future__ import annotations

from hashlib import sha256

from kerngen.bind.emit import emit_module
from kerngen.bind.resolve import read
from kerngen.emit.module_name import module_name
from kerngen.output.files import Generated
from kerngen.source.text import Source


def bind(source: Source, data: bytes) -> Generated:
    """Return the generated module, with a copy of the shader.

    Raises `CompileError` if the file can't be read.
    """
    digest = sha256(data).hexdigest()
    name = module_name(source.name)
    text = emit_module(read(source), digest)
    files = {f"{name}.py": text.encode(), f"wgsl/{name}/{name}.wgsl": data}
    return Generated(source.name, digest, files)
