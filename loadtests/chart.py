"""`deploy/rematch.yaml` from the Helm chart (`make manifests`), and whether it is up to date."""

from __future__ import annotations

import asyncio
import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from loadtests.tools.catalogue import program
from loadtests.tools.processes import run
from loadtests.tools.programs import ensure
from reactor.cluster.rights import RULES, Rule, Scope

DEPLOY = Path(__file__).parents[1] / "deploy"
CHART = DEPLOY / "chart"
RENDERED = DEPLOY / "rematch.yaml"
RIGHTS = CHART / "files" / "rights.yaml"
NAMESPACE = "rematch"
_SECONDS = 60.0
_HEADER = """\
# Made by `make manifests` from deploy/chart: change that, not this. Install: kubectl apply -f deploy/rematch.yaml
# It starts in `mode: observe`: it plans, records and writes Events, and moves nothing until the settings say `act`.
"""
_DIGEST = "# digest of the chart: "


async def main() -> None:
    RIGHTS.write_text(rights_file())
    RENDERED.write_text(await rendered())


async def rendered() -> str:
    """Without Helm's hooks, which kubectl would create at once."""
    objects = await template("--no-hooks", "--set", "namespace.create=true,policies.hints=true")
    return f"{_HEADER}{_DIGEST}{digest()}\n{objects}"


async def template(*options: str) -> str:
    """As text: the settings in the ConfigMap keep their layout."""
    where = ("--namespace", NAMESPACE, "--kube-version", program("kube-apiserver").version)
    return await helm("template", "rematch", str(CHART), *where, *options)


async def helm(*arguments: str, deadline: float = _SECONDS) -> str:
    path = (await ensure(["helm"]))["helm"]
    return await run([str(path), *arguments], deadline=deadline)


def recorded_digest() -> str:
    lines = RENDERED.read_text().splitlines()
    return next((line.removeprefix(_DIGEST) for line in lines if line.startswith(_DIGEST)), "")


def digest() -> str:
    """Of every file of the chart, so that a stale rendering is noticed without Helm."""
    content = hashlib.sha256()
    for path in sorted(path for path in CHART.rglob("*") if path.is_file()):
        content.update(str(path.relative_to(CHART)).encode() + b"\0" + path.read_bytes() + b"\0")
    return content.hexdigest()


def rights_file() -> str:
    rules = {scope.value: [_as_yaml(rule) for rule in RULES if rule.scope is scope] for scope in Scope}
    header = "# Made by `make manifests` from reactor/cluster/rights.py: change that, not this.\n"
    return header + yaml.safe_dump(rules, sort_keys=False, width=150)


def _as_yaml(rule: Rule) -> dict[str, str | Sequence[str]]:
    names = {"names": list(rule.names)} if rule.names else {}
    return {
        "why": rule.why,
        "group": rule.group,
        "resources": list(rule.resources),
        **names,
        "verbs": list(rule.verbs),
    }


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
