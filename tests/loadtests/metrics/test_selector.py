from __future__ import annotations

import pytest

from loadtests.metrics.selector import Matcher, QueryError, Selector, parse_selector


@pytest.mark.parametrize(
    ("query", "selector"),
    [
        ("up", Selector("up")),
        (" up{} ", Selector("up")),
        ('up{a="b"}', Selector("up", (Matcher("a", "=", "b"),))),
        ("up{a!='b', c=~\"d|e\",}", Selector("up", (Matcher("a", "!=", "b"), Matcher("c", "=~", "d|e")))),
        (r'up{a="say \"hi\", {you}"}', Selector("up", (Matcher("a", "=", 'say "hi", {you}'),))),
        (r'up{a!~"web-\\d+"}', Selector("up", (Matcher("a", "!~", r"web-\d+"),))),
    ],
)
def test_selectors(query: str, selector: Selector) -> None:
    assert parse_selector(query) == selector


@pytest.mark.parametrize(
    "query",
    [
        "",
        "rate(up[5m])",
        "up[5m]",
        "sum(up)",
        "sum by (pod) (up)",
        "up + up",
        "up offset 5m",
        'up{a="b"',
        "up{a}",
        'up{a="b" c="d"}',
        "1",
        '{a="b"}',
    ],
)
def test_everything_else_is_refused_with_what_is_supported(query: str) -> None:
    with pytest.raises(QueryError, match="only instant vector selectors are supported"):
        parse_selector(query)


def test_a_wrong_pattern_is_named() -> None:
    with pytest.raises(QueryError, match="label a: '\\(' is not a regular expression"):
        parse_selector('up{a=~"("}')


@pytest.mark.parametrize(
    ("matcher", "hit"),
    [
        (Matcher("pod", "=", "web"), True),
        (Matcher("pod", "=~", "we"), False),
        (Matcher("pod", "=~", "we."), True),
        (Matcher("pod", "!~", "api|db"), True),
        (Matcher("pod", "!=", "web"), False),
        (Matcher("missing", "=", ""), True),
        (Matcher("missing", "!=", ""), False),
        (Matcher("missing", "=~", ".*"), True),
    ],
)
def test_matching_follows_prometheus(matcher: Matcher, hit: bool) -> None:
    assert matcher.matches({"pod": "web"}) is hit
