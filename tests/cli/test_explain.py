"""`kerngen explain`: pages for people and scripts, and codes that do not exist."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from kerngen.explain.pages import GROUPS, codes, page
from kerngen.explain.site import documents
from tests.cli.sample import WRONG, Run, edit
from tests.cli.terminal import on_a_terminal
from tests.project.tree import ROOT

CENTRE = """\
kernel centre(x: f32[n]) -> y: f32[n] {
    y[i] = x[i] - mean;
    let mean = (sum[i] x[i]) / f32(n);
}
"""

pytestmark = pytest.mark.usefixtures("project")


def test_a_page_in_a_pipe_is_its_markdown(kerngen: Run) -> None:
    assert kerngen("explain", "KG0108").stdout == page("KG0108").text


def test_several_codes_in_any_case(kerngen: Run) -> None:
    both = f"{page('KG0122').text}\n{page('KG0108').text}"
    assert kerngen("explain", "kg0122", "Kg0108").stdout == both


def test_without_a_code_all_are_listed(kerngen: Run) -> None:
    lines = kerngen("explain").stdout.splitlines()
    listed = [line.split()[0] for line in lines if line.startswith(" ")]
    assert listed == codes()
    assert "  KG0108  Comparisons are not chained." in lines
    assert "Syntax" in lines


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("108", "Did you mean 'KG0108'? "),
        ("KG0108x", "Did you mean 'KG0108'? "),
        ("E0310", "Did you mean 'KG0311' or 'KG0312' or 'KG0313'? "),
        ("KG9999", ""),
        ("mut", ""),
        ("../pages/KG", ""),
        ("", ""),
    ],
)
def test_an_unknown_code_is_wrong_usage(kerngen: Run, wrong: str, meant: str) -> None:
    result = kerngen("explain", "KG0108", wrong, code=2)
    assert result.stderr.endswith(
        f"Error: There is no error with the code '{wrong}'. {meant}"
        "'kerngen explain' lists all codes.\n"
    )
    assert result.stdout == ""


def test_pages_as_json(kerngen: Run) -> None:
    (one,) = json.loads(kerngen("explain", "KG0108", "--json").stdout)
    rule = "Comparisons are not chained."
    assert one == {"code": "KG0108", "rule": rule, "text": page("KG0108").text}
    listed = json.loads(kerngen("explain", "--json").stdout)
    assert [each["code"] for each in listed] == codes()
    assert {"code": "KG0108", "rule": rule} in listed


def test_a_terminal_gets_no_markdown() -> None:
    shown = on_a_terminal(sys.executable, "-m", "kerngen.cli", "explain", "KG0108")
    assert "\x1b[" in shown
    assert "Comparisons are not chained." in shown
    assert "\x1b[1;31merror[KG0108]\x1b[0m" in shown
    assert "\x1b[34;49mkernel\x1b[0m" in shown
    assert "\x1b[36;49mf32\x1b[0m" in shown
    assert "```" not in shown
    assert "## Wrong" not in shown
    assert not re.search(r"\x1b\[[\d;]*\b4[0-7]\b", shown), "a painted background"


def test_the_documentation_has_a_document_for_each_page() -> None:
    pages = documents()
    index = pages.pop("errors/index.md")
    assert sorted(pages) == [f"errors/{code}.md" for code in codes()]
    assert pages["errors/KG0108.md"] == page("KG0108").text
    assert "| [KG0108](KG0108.md) | Comparisons are not chained. |" in index
    assert "| [KG0106](KG0106.md) | A `//!` comment is" in index
    assert all(f"]({code}.md)" in index for code in codes())


def test_the_documentation_tells_what_check_prints(kerngen: Run) -> None:
    docs = (ROOT / "docs" / "explain.md").read_text("utf-8")
    shown = docs.split("$ kerngen check centre.kern\n")[1].split("```")[0]
    edit(Path("centre.kern"), CENTRE)
    assert kerngen("check", "centre.kern", code=1).stdout == shown


def test_the_documentation_lists_all_groups() -> None:
    docs = (ROOT / "docs" / "explain.md").read_text("utf-8")
    rows = re.findall(r"^\| (KG\d\d)xx \| (.*) \|$", docs, re.MULTILINE)
    assert dict(rows) == {start: about.lower() for start, about in GROUPS.items()}


def test_several_errors_name_the_first_one(kerngen: Run) -> None:
    edit(Path("two.kern"), f"{CENTRE}\n{WRONG}")
    assert kerngen("check", "two.kern", code=1).stdout.endswith(
        "\n2 errors\nFor more about an error, try 'kerngen explain KG0211'.\n"
    )
