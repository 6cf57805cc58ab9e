from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from matching.problem import Requirement
from matching.selectors import matches
from reactor.settings.selector import parse_selector


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ()),
        ("  ", ()),
        ("app=web", (Requirement("app", "In", ("web",)),)),
        ("app == web", (Requirement("app", "In", ("web",)),)),
        ("app!=web", (Requirement("app", "NotIn", ("web",)),)),
        ("app=", (Requirement("app", "In", ("",)),)),
        ("tier in (b, a,b)", (Requirement("tier", "In", ("a", "b")),)),
        ("tier notin (a)", (Requirement("tier", "NotIn", ("a",)),)),
        ("tier in ()", (Requirement("tier", "In", ("",)),)),
        ("canary", (Requirement("canary", "Exists"),)),
        ("! canary", (Requirement("canary", "DoesNotExist"),)),
        ("cpus>4,cpus<16", (Requirement("cpus", "Gt", ("4",)), Requirement("cpus", "Lt", ("16",)))),
        (
            "app.kubernetes.io/name=web,in in (in),!x",
            (
                Requirement("app.kubernetes.io/name", "In", ("web",)),
                Requirement("in", "In", ("in",)),
                Requirement("x", "DoesNotExist"),
            ),
        ),
    ],
)
def test_kubectl_syntax_is_read(text: str, expected: tuple[Requirement, ...]) -> None:
    assert parse_selector(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("app=web,", "expected a label key but found the end"),
        (",app", "expected a label key but found ','"),
        ("app in", r"expected '\(' but found the end"),
        ("app in (a", r"expected '\)' but found the end"),
        ("app=a b", "expected ',' but found 'b'"),
        ("app is web", "found 'is'"),
        ("=web", "expected a label key but found '='"),
        ("-app=web", "'-app' is no label key"),
        ("Upper.Case/app", "is no label key"),
        ("/app", "is no label key"),
        ("app=-web", "'-web' is no label value"),
        (f"app={'a' * 64}", "is no label value"),
        ("cpus>many", "needs a whole number, not 'many'"),
        ("!", "found the end"),
        ("!a=b", "expected ',' but found '='"),
    ],
)
def test_what_kubectl_would_not_take_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_selector(text)


@pytest.mark.parametrize(
    ("text", "selected"),
    [
        ("", True),
        ("app=web", True),
        ("app=api", False),
        ("app!=api,other!=x", True),
        ("other=x", False),
        ("other=", False),
        ("app in (api,web),!canary", True),
        ("app notin (web)", False),
        ("canary", False),
        ("cpus>7,cpus<9", True),
        ("cpus>8", False),
        ("app>1", False),
        ("missing<1", False),
    ],
)
def test_selectors_match_as_in_kubernetes(text: str, selected: bool) -> None:
    assert matches(parse_selector(text), {"app": "web", "cpus": "8"}) is selected


def test_an_operator_that_does_not_exist_is_an_error_not_a_match() -> None:
    with pytest.raises(ValueError, match="unknown operator 'Near'"):
        matches((Requirement("app", "Near"),), {"app": "web"})


@given(st.text(alphabet="ab/=!<>(), inot.", max_size=20))
def test_any_text_is_read_or_refused_with_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert matches(parse_selector(text), {}) in (True, False)
