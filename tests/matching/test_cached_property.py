"""A cached property is computed once per object, and no object waits for another one."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from matching.plan import BlockingPairs, Certificate


def test_the_pairs_of_a_plan_are_counted_once() -> None:
    counted: list[BlockingPairs] = []

    def count() -> BlockingPairs:
        counted.append(BlockingPairs(unnamed=3))
        return counted[-1]

    certificate = Certificate(True, (), count)
    assert certificate.pairs is certificate.pairs
    assert len(counted) == 1


def test_the_pairs_of_one_plan_are_read_while_those_of_another_one_are_counted() -> None:
    began, end = Event(), Event()

    def count() -> BlockingPairs:
        began.set()
        assert end.wait(10)
        return BlockingPairs(unnamed=1)

    slow, quick = Certificate(True, (), count), Certificate(True, (), BlockingPairs)
    with ThreadPoolExecutor(2) as threads:
        counting = threads.submit(lambda: slow.blocking_pairs)
        try:
            assert began.wait(10)
            assert threads.submit(lambda: quick.blocking_pairs).result(timeout=5) == 0
        finally:
            end.set()
        assert counting.result(timeout=5) == 1


def test_all_threads_get_the_value_that_was_there_first() -> None:
    values = iter((BlockingPairs(unnamed=1), BlockingPairs(unnamed=2)))
    inner: list[BlockingPairs] = []

    def count() -> BlockingPairs:
        value = next(values)
        if value.unnamed == 1:  # another thread begins and ends meanwhile
            inner.append(certificate.pairs)
        return value

    certificate = Certificate(True, (), count)
    assert certificate.pairs is inner[0]
