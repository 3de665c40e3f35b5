"""Checking files together with those that they use: from texts to typed modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

from kerngen.check.files.checked_file import CheckedFile, UsedModule
from kerngen.check.files.linking import link
from kerngen.check.files.module import check_file
from kerngen.check.items.gradients import Derive, no_gradients
from kerngen.check.model import Model
from kerngen.check.schedules.options import with_given
from kerngen.ir.module import Module
from kerngen.source.diagnostic import CompileError, Faults
from kerngen.syntax import ast
from kerngen.syntax.library import Library
from kerngen.syntax.parser import read


@final
class Checker:
    """Checks the files of a library, each only once.

    `derive` makes the kernels of gradient items. `programs` and `models` have the
    syntax trees and models of all files checked so far, faulty ones included.
    """

    def __init__(self, library: Library, derive: Derive = no_gradients) -> None:
        self._library = library
        self._derive = derive
        self._checked: dict[str, CheckedFile] = {}
        self.programs: dict[str, ast.Program] = {}
        self.models: dict[str, Model] = {}

    @property
    def right(self) -> Mapping[str, CheckedFile]:
        """The files that were checked and have no faults."""
        return self._checked

    def adopt(self, files: Mapping[str, CheckedFile]) -> None:
        """Take over files that were checked before, and have not changed since."""
        self._checked |= files

    def module(self, name: str) -> Module:
        """Return a file's typed module with its kernels' schedules, for the build.

        Raises `CompileError` with every fault of the file, of those that it uses, and
        of those that schedule its kernels.
        """
        tuners = self._library.tuners(name)
        faults = Faults()
        for each in (name, *tuners):
            with faults.collect():
                self._check(self._needed(each))
        faults.raise_if_any()
        givers = tuple(self._checked[tuner] for tuner in tuners)
        # Functions and constants of other files, callees before callers.
        return with_given(link(self._checked[name]), givers)

    def _needed(self, name: str) -> tuple[str, ...]:
        """Return a file and all that it uses; a fault there hides none of syntax."""
        try:
            return self._library.closure(name)
        except CompileError as error:
            of_syntax = self._read(name).faults
            raise CompileError((*error.diagnostics, *of_syntax)) from None

    def _check(self, names: tuple[str, ...]) -> None:
        """Check files, each of which comes after those that it uses.

        One that uses a faulty file is not checked: what it could not know is no fault.
        """
        faults = Faults()
        for name in names:
            if name not in self._checked:
                with faults.collect():
                    self._check_one(name)
        faults.raise_if_any()

    def _check_one(self, name: str) -> None:
        source = self._library.source(name)
        # Text to syntax tree, as far as it can be read.
        program = self._read(name)
        used = self._library.uses(name)
        if all(use.name in self._checked for use in used):
            uses = tuple(UsedModule(self._checked[use.name], use.span) for use in used)
            # Syntax tree to typed kernels; a fault of either stage ends here.
            model = self.models[name] = Model()
            self._checked[name] = check_file(program, source, uses, self._derive, model)
        else:
            raise CompileError(program.faults)

    def _read(self, name: str) -> ast.Program:
        self.programs[name] = read(self._library.source(name))
        return self.programs[name]
