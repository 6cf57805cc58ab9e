"""The rules in an owner's pod template: what its next pod asks for, whatever a hint added to the pods that it has."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from matching.problem import Rules
from reactor.cluster.decoding.common import WrongField, decode_strings, inside, is_given
from reactor.cluster.decoding.constraints import ConstraintsDecoder
from reactor.cluster.decoding.pod_json import WirePodSpec

OWNERS_OF_MOVED_PODS = ("ReplicaSet", "StatefulSet")


class _Meta(Struct, gc=False):
    labels: Raw = Raw(b"null")


class _Template(Struct, gc=False):
    metadata: _Meta | None = None
    spec: WirePodSpec | None = None


_TEMPLATE = msgspec.json.Decoder(_Template)


class TemplateDecoder:
    """Shares equal rules, so use one for all workloads of a cluster."""

    def __init__(self) -> None:
        self._constraints = ConstraintsDecoder()

    def rules(self, template: Raw) -> Rules | None:
        """None without a template."""
        if not is_given(template):
            return None
        try:
            wire = _TEMPLATE.decode(template)
            labels = decode_strings(bytes((wire.metadata or _Meta()).labels))
            return None if wire.spec is None else self._constraints.rules(wire.spec, labels).rules
        except (WrongField, msgspec.ValidationError) as error:
            raise inside("spec.template", error) from error
