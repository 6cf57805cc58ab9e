"""Large per-pod queries in parts: `$namespaces` in a query stands for a matcher on the label `namespace`."""

from __future__ import annotations

import re
from collections.abc import Mapping

PLACEHOLDER = "$namespaces"
_EVERY = 'namespace!=""'
_LONGEST = 3000
"""Characters of names in one matcher: a query travels in the URL, and proxies refuse long ones."""


def matchers(pods: Mapping[str, int], limit: int) -> list[str]:
    """As few matchers as keep each below `limit` pods; a namespace with more is asked for alone."""
    if sum(pods.values()) <= limit:
        return [_EVERY]
    parts: list[list[str]] = []
    room, length = 0, 0
    for name, number in sorted(pods.items(), key=lambda item: -item[1]):
        if not parts or number > room or length + len(name) > _LONGEST:
            parts.append([])
            room, length = limit, 0
        parts[-1].append(name)
        room -= number
        length += len(name) + 1
    return [f'namespace=~"{"|".join(map(_literal, part))}"' for part in parts]


def parts_of(query: str, every: list[str]) -> list[str]:
    """The queries to ask: one without the placeholder is asked once as it stands."""
    if PLACEHOLDER not in query:
        return [query]
    return [query.replace(PLACEHOLDER, matcher) for matcher in every]


def _literal(name: str) -> str:
    """Kubernetes allows only letters, digits and dashes; anything else is quoted for regex and string both."""
    return re.sub(r"[^A-Za-z0-9-]", lambda found: "\\\\" + found[0] if found[0] != '"' else '\\"', name)
