"""Other threads run while a kernel does: counting the blocking pairs of a large cluster takes seconds."""

from __future__ import annotations

from types import ModuleType

import pytest

entry: ModuleType = pytest.importorskip("matching.compiled.entry", exc_type=ImportError)
counting: ModuleType = pytest.importorskip("matching.verify.compiled", exc_type=ImportError)


def test_every_kernel_lets_other_threads_run() -> None:
    found = [getattr(entry, name) for name in entry.__all__] + [counting.count_blocking]
    kernels = [each for each in found if callable(each)]
    assert kernels
    assert all(kernel.targetoptions.get("nogil") for kernel in kernels)
