"""Which file needs which: against a search that is written anew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kerngen.source.diagnostic import CompileError
from kerngen.syntax.faults_uses import MissingFile, UseCycle, UsedTwice
from kerngen.syntax.library import Library
from tests.compile import library_of

COUNT = 6
graphs = st.lists(
    st.lists(st.integers(0, COUNT - 1), max_size=3, unique=True),
    min_size=COUNT,
    max_size=COUNT,
)


def of_graph(graph: list[list[int]]) -> Library:
    """Return a library of files that use each other as the numbers say."""
    return library_of(
        {
            f"{n}.kern": "".join(f'use "{used}.kern";\n' for used in uses if used != n)
            for n, uses in enumerate(graph)
        }
    )


def reached(graph: list[list[int]], start: int) -> set[int]:
    """Every file that one leads to, by one step or more."""
    found: set[int] = set()
    todo = [used for used in graph[start] if used != start]
    while todo:
        each = todo.pop()
        if each not in found:
            found.add(each)
            todo += [used for used in graph[each] if used != each]
    return found


@given(graphs)
def test_a_closure_is_in_order_or_there_is_a_circle(graph: list[list[int]]) -> None:
    files = of_graph(graph)
    for start in range(COUNT):
        needed = {start, *reached(graph, start)}
        if any(each in reached(graph, each) for each in needed):
            with pytest.raises(CompileError) as caught:
                files.closure(f"{start}.kern")
            assert {type(d) for d in caught.value.diagnostics} == {UseCycle}
            continue
        closure = files.closure(f"{start}.kern")
        assert sorted(closure) == sorted(f"{each}.kern" for each in needed)
        assert closure[-1] == f"{start}.kern"
        for each in needed:
            for used in set(graph[each]) - {each}:
                assert closure.index(f"{used}.kern") < closure.index(f"{each}.kern")


@given(st.permutations(range(4)))
def test_a_circle_is_one_fault_wherever_it_is_entered(order: list[int]) -> None:
    files = of_graph([[1], [2], [3], [0], [], []])
    found: set[str] = set()
    for n in order:
        with pytest.raises(CompileError) as caught:
            files.closure(f"{n}.kern")
        (fault,) = caught.value.diagnostics
        found.add(fault.message)
        assert fault.span.source.path == "0.kern"
    assert len(found) == 1


def test_the_digest_of_a_lone_file_is_that_of_its_text() -> None:
    # By coreutils: printf 'fn f(x: f32) -> f32 { x }' | sha256sum
    known = "838acad4e98d6fd776e6456de26946595e6b7cd7cbfdb38c3c9a6e9decebfff7"
    assert library_of({"a.kern": "fn f(x: f32) -> f32 { x }"}).digest("a.kern") == known


TEXTS = {
    "a.kern": 'use "b.kern";\nkernel a(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }',
    "b.kern": "fn b(x: f32) -> f32 { x }",
    "user.kern": 'use "a.kern";\nkernel u(x: f32[n]) -> y: f32[n] { y[i] = x[i]; }',
    "tuned.kern": 'use "a.kern";\nuse "c.kern";\nschedule a when n > C { map }',
    "c.kern": "const C: i32 = 5;",
    "family.kern": 'use "a.kern";\nschedule x*, a* when n > 4 { map }',
    "others.kern": 'use "a.kern";\nschedule b*, c.a, *d { map }',
    "alone.kern": "",
}
USERS = {"user.kern", "tuned.kern", "family.kern", "others.kern"}


@pytest.mark.parametrize(
    ("changed", "concerned"),
    [
        ("a.kern", {"a.kern", *USERS}),
        ("b.kern", {"a.kern", "b.kern", *USERS}),
        ("user.kern", {"user.kern"}),
        ("tuned.kern", {"a.kern", "tuned.kern"}),
        ("c.kern", {"a.kern", "c.kern", "tuned.kern"}),
        ("family.kern", {"a.kern", "family.kern"}),
        ("others.kern", {"others.kern"}),
        ("alone.kern", {"alone.kern"}),
    ],
)
def test_a_digest_changes_with_what_the_output_is_made_from(
    changed: str, concerned: set[str]
) -> None:
    before = library_of(TEXTS)
    after = library_of({**TEXTS, changed: TEXTS[changed] + "// changed"})
    assert {
        name for name in TEXTS if before.digest(name) != after.digest(name)
    } == concerned


def test_what_a_name_may_be() -> None:
    texts = {"top/a.kern": "", "top/sub/b.kern": "", "other/c.kern": ""}

    def used(path: str, root: str | None = None) -> list[str]:
        user = {**texts, "top/sub/user.kern": f'use "{path}";'}
        return [use.name for use in library_of(user, root).uses("top/sub/user.kern")]

    assert used("b.kern") == ["top/sub/b.kern"]
    assert used("../a.kern", "top") == ["top/a.kern"]
    assert used(".././sub//b.kern", ".") == ["top/sub/b.kern"]
    assert used("../../other/c.kern") == ["other/c.kern"]
    for path, root in [("../../other/c.kern", "top"), ("../../../x.kern", ".")]:
        with pytest.raises(CompileError) as caught:
            used(path, root)
        assert "outside of the source folder" in caught.value.diagnostics[0].message


def test_all_paths_of_a_file_are_looked_at() -> None:
    files = library_of(
        {"a.kern": 'use "x.kern"; use "b.kern"; use "b.kern";', "b.kern": ""}
    )
    with pytest.raises(CompileError) as caught:
        files.closure("a.kern")
    assert [type(d) for d in caught.value.diagnostics] == [MissingFile, UsedTwice]
