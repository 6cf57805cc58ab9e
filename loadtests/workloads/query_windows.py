"""The controller's queries for a lab that is faster than life."""

from __future__ import annotations

import re

from reactor.settings.model import Queries

_WINDOW = re.compile(r"\[\d+[smh]\]")


def queries_over(seconds: int) -> dict[str, str]:
    """The default queries by their names in the settings, with windows of so many seconds: a lab's kubelets look every
    second or two, where cAdvisor needs minutes."""
    defaults: dict[str, str] = Queries().model_dump(by_alias=True)
    return {name: _WINDOW.sub(f"[{seconds}s]", query) for name, query in defaults.items()}
