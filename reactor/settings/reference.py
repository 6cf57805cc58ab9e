"""The reference of all settings (docs/settings.md), generated from the schema."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pydantic import BaseModel

from reactor.settings.model import Settings

_HEAD = """\
# Settings

One schema for the file (`rematch run --settings FILE`) and the ConfigMap (`--configmap NAMESPACE/NAME`, key
`settings.yaml`). A change is in force within 2 seconds, without a restart; an invalid revision is refused as a whole,
with every error and its path, and the last good one stays. Durations are written as `30s`, `5m`, `1h30m`. This page is
made by `rematch config reference`.

Annotations: `rematch.io/threshold: "0.95"` on a pod or a namespace sets its threshold; `rematch.io/do-not-move: "true"`
on a pod keeps it where it is.
"""


def reference() -> str:
    rows = "\n".join(f"| `{path}` | `{default}` | {about} |" for path, default, about in _rows(Settings, ""))
    return f"{_HEAD}\n| setting | default | what it does |\n|---|---|---|\n{rows}\n"


def _rows(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, str, str]]:
    defaults = model().model_dump(mode="json", by_alias=True)
    for field in model.model_fields.values():
        path = f"{prefix}{field.alias}"
        section = field.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            yield from _rows(section, f"{path}.")
        else:
            yield path, _shown(defaults[field.alias or ""]), _one_line(field.description)


def _shown(default: object) -> str:
    if default is None:
        return "unset"
    text = default if isinstance(default, str) and default else json.dumps(default)
    return text.replace("|", "\\|")


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")
