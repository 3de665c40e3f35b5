"""Attention, written in several ways: none of their gradients stores a score.

What the maximum gets is 0 in each: the result is the same whatever is subtracted.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from kerngen.ir.nodes import Reduce, Role
from kerngen.ir.walk import walk
from tests.budget import sampled
from tests.compile import checked
from tests.gradient.costs import dispatches
from tests.gradient.differences import Case, program

CLOSE = 1e-6

_SCORES = """
    kernel f(q: f32[s, d], k: f32[t, d], v: f32[t, c]) -> y: f32[s, c] {
        let score[i, j] = 0.5 * sum[p] q[i, p] * k[j, p];
        let top[i] = max[j] score[i, j];
"""
_HEADS = """
    kernel f(q: f32[b, h, s, d], k: f32[b, h, t, d], v: f32[b, h, t, c])
        -> y: f32[b, h, s, c]
    {
        let score[n, g, i, j] = 0.5 * sum[p] q[n, g, i, p] * k[n, g, j, p];
        let top[n, g, i] = max[j] score[n, g, i, j];
        let e[n, g, i, j] = exp(score[n, g, i, j] - top[n, g, i]);
        y[n, g, i, p] =
            (sum[j] e[n, g, i, j] * v[n, g, j, p]) / (sum[j] e[n, g, i, j]);
    }
"""
FORMS = {
    "divided behind the sum": f"""{_SCORES}
        let e[i, j] = exp(score[i, j] - top[i]);
        y[i, p] = (sum[j] e[i, j] * v[j, p]) / (sum[j] e[i, j]);
    }}""",
    "divided by a let": f"""{_SCORES}
        let e[i, j] = exp(score[i, j] - top[i]);
        let total[i] = sum[j] e[i, j];
        y[i, p] = (sum[j] e[i, j] * v[j, p]) / total[i];
    }}""",
    "divided in the sum": f"""{_SCORES}
        let e[i, j] = exp(score[i, j] - top[i]);
        let total[i] = sum[j] e[i, j];
        y[i, p] = sum[j] (e[i, j] / total[i] * v[j, p]);
    }}""",
    "without lets": f"""{_SCORES}
        y[i, p] = (sum[j] exp(score[i, j] - top[i]) * v[j, p])
            / (sum[j] exp(score[i, j] - top[i]));
    }}""",
    "causal": """
    kernel f(q: f32[s, d], k: f32[s, d], v: f32[s, c]) -> y: f32[s, c] {
        let score[i, j] = 0.5 * sum[p] q[i, p] * k[j, p];
        let top[i] = max[j when j <= i] score[i, j];
        let e[i, j] = exp(score[i, j] - top[i]);
        y[i, p] = (sum[j when j <= i] e[i, j] * v[j, p]) / (sum[j when j <= i] e[i, j]);
    }""",
    "heads": _HEADS,
    "scores under a cap": f"""{_SCORES.replace("top[i] = max[j] score[i, j]",
        "capped[i, j] = 5.0 * tanh(score[i, j] / 5.0);"
        " let top[i] = max[j] capped[i, j]")}
        let e[i, j] = exp(capped[i, j] - top[i]);
        y[i, p] = (sum[j] e[i, j] * v[j, p]) / (sum[j] e[i, j]);
    }}""",
}


def _case(text: str) -> Case:
    module = checked(text)
    return Case(module, module.kernels[0], ("q", "k", "v"))


@pytest.mark.parametrize("form", sampled(FORMS, 4))
def test_gradients_make_their_tiles_again(form: str) -> None:
    case = _case(FORMS[form])
    derived = case.derived()
    assert not any("ties" in s.target.name for s in derived.body)
    strategies = [name for name, *_ in dispatches(program(case.module, derived))]
    assert strategies == ["flash"]


@pytest.mark.parametrize("form", ["causal"])
def test_gradients_are_what_differences_give(form: str) -> None:
    assert _case(FORMS[form]).worst() < CLOSE


@pytest.mark.nightly
@pytest.mark.parametrize("form", FORMS)
def test_all_gradients_are_what_differences_give(form: str) -> None:
    assert _case(FORMS[form]).worst() < CLOSE


@pytest.mark.parametrize("form", ["divided by a let", "divided in the sum"])
def test_what_is_kept_is_not_made_again(form: str) -> None:
    """Sums over keys are those of the outputs; the products are of tiles."""
    text = FORMS[form].replace("* v[j, p]", "* 3.0 * v[j, p]")
    case = replace(_case(text), given=("y", "top", "total"))
    over_keys = [
        s.target.role
        for s in case.derived().body
        for node in walk(s.value)
        if isinstance(node, Reduce) and node.indices[0].extent == "t"
    ]
    assert over_keys == [Role.OUTPUT]
    by_output = replace(case, given=("y",))
    derived = by_output.derived()
    assert [name for name, *_ in dispatches(program(case.module, derived))] == ["flash"]
    assert by_output.worst(derived) < CLOSE
