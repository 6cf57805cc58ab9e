"""`functools.cached_property` without its lock.

Up to Python 3.11 that lock is one for all objects of a class: to read the property of one object, the event loop waits
until a thread has computed that of another one, which for the blocking pairs of a plan takes most of a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 - as in functools
    """Threads that read it at the same time may compute it twice; all get the same object."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> cached_property[T] | T:
        """Called once per object: what is in its `__dict__` comes first."""
        if instance is None:
            return self
        return cast("T", instance.__dict__.setdefault(self._name, self._compute(instance)))
