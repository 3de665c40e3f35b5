"""The order in which each thing follows those that it needs, and cycles among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence


def needed_first(
    names: Iterable[str], needs: Callable[[str], Iterable[str]]
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return names and all that they need, each after what it needs; and the cycles.

    Without recursion, so that a long chain can't exhaust Python's stack: `path` holds
    the names being visited, each with those it needs that are still ahead.

    >>> needed_first(["a"], {"a": "bc", "b": "c", "c": "b"}.__getitem__)
    (['c', 'b', 'a'], [('b', 'c')])
    """
    ordered: dict[str, None] = {}
    cycles: list[tuple[str, ...]] = []
    for name in names:
        path = {} if name in ordered else {name: iter(needs(name))}
        while path:
            last = next(reversed(path))
            needed = next(path[last], None)
            if needed is None:
                del path[last]
                ordered.setdefault(last)
            elif needed in path:
                visited = (*path,)
                cycles.append(visited[visited.index(needed) :])
            elif needed not in ordered:
                path[needed] = iter(needs(needed))
    return [*ordered], cycles


def around(cycle: Sequence[str], first: str) -> tuple[str, ...]:
    """Return a cycle from one of its names around to that name again.

    >>> around(["a", "b", "c"], "b")
    ('b', 'c', 'a', 'b')
    """
    at = cycle.index(first)
    return (*cycle[at:], *cycle[:at], first)
