"""`kerngen explain`: print the page of a diagnostic's code, with examples."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from kerngen.cli.arguments import options
from kerngen.cli.console import console_for, report_console

if TYPE_CHECKING:
    from kerngen.explain.pages import Page


def _complete_code(
    _ctx: click.Context, _argument: click.Parameter, begun: str
) -> list[str]:
    from kerngen.explain.pages import grouped

    codes = (page.code for pages in grouped().values() for page in pages)
    return [code for code in codes if code.startswith(begun.upper())]


@click.command(epilog=options.examples("kerngen explain KG0404", "kerngen explain"))
@click.argument("codes", nargs=-1, metavar="[CODE]...", shell_complete=_complete_code)
@options.as_json("a JSON list of pages")
def explain(codes: tuple[str, ...], as_json: bool) -> None:
    """Explain the CODE of an error: its rule, and how to follow it.

    Without a CODE, list all of them.
    """
    if codes:
        _explain([_page(code) for code in codes], as_json=as_json)
    else:
        _list(as_json=as_json)


def _page(code: str) -> Page:
    """Return the page of a code, in upper or lower case; refuse an unknown one."""
    from kerngen.explain.pages import nearest, page

    try:
        return page(code.upper())
    except KeyError:
        close = " or ".join(f"'{each}'" for each in nearest(code))
        hint = f"Did you mean {close}? " if close else ""
        raise click.UsageError(
            f"There is no error with the code '{code}'. {hint}"
            "'kerngen explain' lists all codes."
        ) from None


def _explain(pages: Sequence[Page], *, as_json: bool) -> None:
    if as_json:
        _print_json([{**_summary(page), "text": page.text} for page in pages])
        return
    console = report_console()
    if not console.is_terminal:
        click.echo("\n".join(page.text for page in pages), nl=False)
        return
    from kerngen.cli.explain_text import print_page

    for page in pages:
        print_page(console, page.text)


def _list(*, as_json: bool) -> None:
    from kerngen.explain.pages import grouped

    groups = grouped()
    if as_json:
        _print_json([_summary(page) for pages in groups.values() for page in pages])
        return
    console = console_for(sys.stdout)
    for about, pages in groups.items():
        console.print(about, style="bold")
        for page in pages:
            console.print(f"  {page.code}  {page.rule}")


def _summary(page: Page) -> dict[str, str]:
    return {"code": page.code, "rule": page.rule}


def _print_json(objects: Sequence[dict[str, str]]) -> None:
    click.echo(json.dumps(objects, indent=2))
