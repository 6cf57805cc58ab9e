"""What is valid in settings, and yet hardly meant: in most clusters nothing moves with it."""

from __future__ import annotations

from collections.abc import Iterator

from reactor.errors import FieldError
from reactor.settings.model import Mode, Settings

_NEVER_MANAGED = "kube-system"


def warnings_of(settings: Settings) -> Iterator[FieldError]:
    managed = settings.managed
    if not settings.model_fields_set:
        yield FieldError("", "empty: all defaults, mode observe")
    if settings.mode is Mode.ACT and not managed.any_scheduler_namespaces:
        text = (
            f"empty: only pods with `schedulerName: {settings.scheduler_name}` move; name the namespaces in which pods"
            " of other schedulers may move, too"
        )
        yield FieldError("managed.anySchedulerNamespaces", text)
    for path, names in (
        ("managed.namespaces", managed.namespaces),
        ("managed.anySchedulerNamespaces", managed.any_scheduler_namespaces),
    ):
        if _NEVER_MANAGED in names:
            yield FieldError(path, f"{_NEVER_MANAGED} is always excluded")
    if not settings.execution.strategies:
        yield FieldError("execution.strategies", "empty: no running pod can be moved")
