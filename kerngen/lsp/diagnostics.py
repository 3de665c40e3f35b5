"""Diagnostics in the form of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from lsprotocol import types

from kerngen.explain.pages import FOLDER, codes
from kerngen.lsp.columns import range_of
from kerngen.lsp.files import uri_of
from kerngen.report.findings import Found, Hint
from kerngen.source.diagnostic import Diagnostic
from kerngen.source.text import Source, Span

SOURCE: Final = "kerngen"
_SEVERITIES: Final[Mapping[str, types.DiagnosticSeverity]] = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "hint": types.DiagnosticSeverity.Hint,
}
_NOWHERE: Final = types.Range(types.Position(0, 0), types.Position(0, 0))


def to_protocol(
    found: Found, uri_of_source: Callable[[Source], str], encoding: str
) -> types.Diagnostic:
    """Return an error, warning or hint; its code links to its page."""
    severity = _SEVERITIES[found.severity]
    if isinstance(found, Hint):
        place = range_of(found.span, encoding) if found.span else _NOWHERE
        tags = [types.DiagnosticTag.Unnecessary] if found.is_unused else None
        return types.Diagnostic(place, found.text, severity, source=SOURCE, tags=tags)

    def place_of(span: Span) -> types.Location:
        return types.Location(uri_of_source(span.source), range_of(span, encoding))

    return types.Diagnostic(
        range=range_of(found.span, encoding),
        message=message_of(found),
        severity=severity,
        code=found.code,
        code_description=_page(found.code),
        source=SOURCE,
        related_information=[
            types.DiagnosticRelatedInformation(place_of(each.span), each.label)
            for each in found.related
        ],
    )


def message_of(found: Diagnostic) -> str:
    """Return a diagnostic's message, with its hint below."""
    hint = f"\nhint: {found.help}" if found.help else ""
    label = f"\n{found.label}" if found.label else ""
    return f"{found.message}{label}{hint}"


@cache
def _page(code: str) -> types.CodeDescription | None:
    """Return the link to a code's page, a file of this installation."""
    if code not in codes():
        return None
    return types.CodeDescription(uri_of(Path(FOLDER, f"{code}.md").resolve()))
