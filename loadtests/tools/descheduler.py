"""How the descheduler program is run beside us: one pass with one plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml


def one_pass(program: Path, kubeconfig: Path, policy: Path, content: dict[str, Any]) -> tuple[str, ...]:
    """The command. `content` is written to the file `policy`."""
    policy.write_text(yaml.safe_dump(content))
    return (
        str(program),
        f"--kubeconfig={kubeconfig}",
        f"--policy-config-file={policy}",
        "--secure-port=0",
        "--disable-metrics",
        "--v=1",
    )


def policy_with(plugin: str, arguments: dict[str, Any], extension_point: str) -> dict[str, Any]:
    """A DeschedulerPolicy."""
    profile = {
        "name": "lab",
        "pluginConfig": [{"name": "DefaultEvictor", "args": {}}, {"name": plugin, "args": arguments}],
        "plugins": {extension_point: {"enabled": [plugin]}},
    }
    return {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": [profile]}
