"""What the compiler makes of all programs here, for two Pythons: `parity.py ROOT FILE`.

It imports what the playground's archive has, and nothing else.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from kerngen.compiler import Compiler
from kerngen.emit.targets import Target
from kerngen.output.errors import OutputError
from kerngen.source.diagnostic import CompileError
from kerngen.source.reading import read_source
from kerngen.source.render import to_json
from kerngen.syntax.library import Library

MAIN = "main.kern"


def programs(root: Path) -> Iterator[tuple[str, Library, str]]:
    """Yield each program's path, its library, and its name in there."""
    standard = sorted((root / "dsl").glob("*.kern"))
    names = [f"dsl/{file.name}" for file in standard]
    kernels = Library(lambda name: read_source(root / name, name), names)
    yield from ((name, kernels, name) for name in names)
    for kind in "accept", "reject":
        folder = root / "tests" / "cases" / kind
        for case in sorted([*folder.glob("*.kern"), *folder.glob(f"*/{MAIN}")]):
            path = case.relative_to(root).as_posix()
            yield path, *_alone(case)


def _alone(case: Path) -> tuple[Library, str]:
    is_lone = case.name != MAIN
    origin = case.parent if is_lone else case.parent.parent
    files = [case] if is_lone else sorted(case.parent.rglob("*.kern"))
    names = [each.relative_to(origin).as_posix() for each in files if each.is_file()]
    library = Library(
        lambda name: read_source(origin / name, name),
        names,
        None if is_lone else case.parent.name,
    )
    return library, case.relative_to(origin).as_posix()


def outcome(compiler: Compiler, name: str) -> object:
    """Return what a program becomes, as a digest, or what is wrong with it."""
    try:
        compiled = compiler.compile(name)
    except CompileError as error:
        return to_json(error.diagnostics)
    except OutputError as error:
        return str(error)
    digest = sha256()
    for path, data in sorted(compiled.files.items()):
        digest.update(f"{path} {len(data)}\n".encode() + data)
    return [digest.hexdigest(), to_json(compiled.module.warnings)]


def main(root: str, out: str) -> None:
    """Write the outcome of each program."""
    compilers: dict[Library, Compiler] = {}
    found: dict[str, object] = {}
    for path, library, name in programs(Path(root)):
        if library not in compilers:
            compilers.clear()
            compilers[library] = Compiler(library, formatted=False, targets=Target)
        found[path] = outcome(compilers[library], name)
    Path(out).write_text(json.dumps(found), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
