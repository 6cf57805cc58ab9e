"""How often a move in flight is looked at."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reactor.execution.look_times import LONGEST, LONGEST_REFUSED, SHORTEST, LookTimes


def looks(cycles: list[tuple[float, int]], *, refused: bool = False) -> list[float]:
    """The times of the looks, for cycles at times with what is shown then."""
    times, taken = LookTimes(), []
    for now, shown in cycles:
        if times.is_due("move", shown, now):
            times.looked("move", shown, now, refused=refused)
            taken.append(now)
    return taken


def every_50_ms(seconds: float, changing: bool) -> list[tuple[float, int]]:
    return [(number / 20, number if changing else 0) for number in range(int(seconds * 20) + 1)]


def test_a_move_that_changes_all_the_time_is_looked_at_four_times_a_second() -> None:
    assert looks(every_50_ms(1, changing=True)) == [0, 0.25, 0.5, 0.75, 1]


def test_other_pods_changes_do_not_count() -> None:
    assert looks(every_50_ms(4, changing=False)) == [0, 0.25, 0.75, 1.75, 2.75, 3.75]


def test_a_change_is_looked_at_at_once_after_a_quiet_time() -> None:
    assert looks([(0, 0), (0.25, 0), (0.75, 0), (1.75, 0), (2.1, 1)])[-1] == 2.1


def test_a_refused_call_is_repeated_more_and_more_seldom_whatever_changes() -> None:
    taken = looks(every_50_ms(400, changing=True), refused=True)
    assert taken == [0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363]


def test_a_granted_right_ends_the_long_pauses() -> None:
    times = LookTimes()
    for now in (0, 1, 3, 7):
        times.looked("move", 0, now, refused=True)
    times.looked("move", 1, 15, refused=False)
    assert times.next_at(["move", "other"]) == 15 + SHORTEST


def test_a_skipped_change_is_due_soon() -> None:
    times = LookTimes()
    times.looked("move", 0, 0, refused=False)
    times.looked("move", 0, 1, refused=False)
    assert times.next_at(["move"]) == 1.5
    assert not times.is_due("move", 1, 1.1)
    assert times.next_at(["move"]) == 1.25
    times.forget("move")
    assert times.next_at(["move"]) is None
    assert times.is_due("move", 1, 1.1)


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 3), st.booleans()), max_size=60))
def test_looks_are_never_too_near_nor_too_far(cycles: list[tuple[float, int, bool]]) -> None:
    times, now, last = LookTimes(), 0.0, None
    for pause, shown, refused in cycles:
        now += pause
        if times.is_due("move", shown, now):
            assert last is None or now - last >= SHORTEST - 1e-9
            times.looked("move", shown, now, refused=refused)
            last = now
        due = times.next_at(["move"])
        assert due is not None
        assert last is not None
        assert SHORTEST - 1e-9 <= due - last <= LONGEST_REFUSED
    assert LONGEST < LONGEST_REFUSED
