"""The names of generated modules, by the paths of their sources."""

from __future__ import annotations

import posixpath
from pathlib import PurePosixPath

from kerngen.source.words import python_word


def module_name(source: str) -> str:
    """
    Return the name of the Python module that a source file becomes.

    >>> module_name("dsl/my-kernels.kern"), module_name("2d.kern"), module_name("if.kern")
    ('my_kernels', '_2d', 'if_')
    """
    return python_word(PurePosixPath(source).stem)


def module_path(source: str, to: str) -> str:
    """Return the path of the module of another source, `to`, relative to this one's folder.

    >>> module_path("dsl/a/scene.kern", "dsl/lights.kern")
    '../lights.py'
    """
    here, there = posixpath.dirname(source), posixpath.dirname(to)
    folders = posixpath.relpath(there or ".", here or ".").split("/")
    named = (f if f in {".", ".."} else python_word(f) for f in folders)
    return posixpath.normpath(f"{'/'.join(named)}/{module_name(to)}.py")


def relative_module(source: str, to: str) -> str:
    """Return the name by which this source's module imports that of another source, `to`.

    >>> relative_module("dsl/a/scene.kern", "dsl/lights.kern")
    '..lights'
    """
    *folders, file = module_path(source, to).split("/")
    up = [folder for folder in folders if folder == ".."]
    return "." * (1 + len(up)) + ".".join([*folders[len(up) :], file[: -len(".py")]])
