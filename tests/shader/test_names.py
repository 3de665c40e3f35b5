"""Names of users' values in WGSL."""

from __future__ import annotations

from kerngen.shader.names import (
    BUILTIN_FUNCTIONS,
    KEYWORDS,
    PREDECLARED_TYPES,
    RESERVED_WORDS,
    member_names,
    unlike_enumerants,
    value_namer,
)


def test_a_free_name_stays() -> None:
    assert value_namer().claim("alpha") == "alpha"


def test_a_taken_name_is_told_apart() -> None:
    namer = value_namer()
    assert namer.claim("x_2") == "x_2"
    names = [namer.claim("x") for _ in range(4)]
    assert names == ["x", "x_", "x_3", "x_4"]


def test_what_wgsl_reserves_or_predeclares_is_renamed() -> None:
    taken = KEYWORDS | RESERVED_WORDS | PREDECLARED_TYPES | BUILTIN_FUNCTIONS
    for name in sorted(taken):
        assert value_namer().claim(name) == f"{name}_"


def test_members_may_be_called_like_functions_but_not_like_keywords() -> None:
    assert member_names(["step", "loop", "loop_"]) == {
        "step": "step",
        "loop": "loop_",
        "loop_": "loop__",
    }


def test_no_name_begins_with_an_underscore() -> None:
    assert value_namer().claim("__x") == "x"
    assert value_namer().claim("_") == "value"


def test_a_users_name_hides_no_address_space() -> None:
    assert unlike_enumerants("workgroup") == "workgroup_"
    assert unlike_enumerants("workgroups") == "workgroups"
