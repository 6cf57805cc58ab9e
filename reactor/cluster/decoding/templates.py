"""The rules in an owner's pod template: what its next pod asks for, whatever a hint added to the pods that it has."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw, Struct

from matching.problem import Rules
from reactor.cluster.decoding.common import WrongField, decode_strings, inside, is_given
from reactor.cluster.decoding.constraints import ConstraintsDecoder
from reactor.cluster.decoding.pod_json import WirePodSpec

OWNERS_OF_MOVED_PODS = ("ReplicaSet", "StatefulSet")


class _Meta(Struct, gc=False):
    labels: Raw = Raw(b"null")


class _Spec(Struct, rename="camel", gc=False):
    """Without the containers: reading those of every template takes longer than all the rest of a workload."""

    tolerations: Raw = Raw(b"")
    node_selector: Raw = Raw(b"")
    affinity: Raw = Raw(b"")
    topology_spread_constraints: Raw = Raw(b"")


class _Template(Struct, gc=False):
    metadata: _Meta | None = None
    spec: _Spec | None = None


_TEMPLATE = msgspec.json.Decoder(_Template)


class TemplateDecoder:
    """Shares equal rules, so use one for all workloads of a cluster."""

    def __init__(self) -> None:
        self._constraints = ConstraintsDecoder()

    def rules(self, template: Raw) -> Rules | None:
        """Without host ports and features, which are those of its pods. None without a template."""
        if not is_given(template):
            return None
        try:
            wire = _TEMPLATE.decode(template)
            if wire.spec is None:
                return None
            found = WirePodSpec(**msgspec.structs.asdict(wire.spec))
            return self._constraints.rules(found, self._labels(wire)).rules
        except (WrongField, msgspec.ValidationError) as error:
            raise inside("spec.template", error) from error

    def _labels(self, wire: _Template) -> Mapping[str, str]:
        """Only where the rules refer to them."""
        spec = wire.spec or _Spec()
        if b"LabelKeys" not in bytes(spec.affinity) and b"LabelKeys" not in bytes(spec.topology_spread_constraints):
            return {}
        return decode_strings(bytes((wire.metadata or _Meta()).labels))
