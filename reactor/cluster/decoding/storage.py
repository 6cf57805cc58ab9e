"""PVCs, PVs, CSINodes and VolumeAttachments."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace

import msgspec
from msgspec import Raw, Struct

from matching.feasibility import ZONE_LABELS, rules_problem
from matching.problem import Requirement, Rules, Term, Volume
from reactor.cluster.decoding.common import WireMeta, WrongField, decode_strings, uid_of
from reactor.cluster.decoding.constraints import WireNodeSelector, node_terms
from reactor.cluster.records import CsiNode, PersistentVolume, PersistentVolumeClaim, VolumeAttachment


class _PvcSpec(Struct, rename="camel", gc=False):
    volume_name: str | None = None
    access_modes: list[str] | None = None


class _PvcStatus(Struct, gc=False):
    phase: str | None = None


class _Pvc(Struct, gc=False):
    metadata: WireMeta
    spec: _PvcSpec | None = None
    status: _PvcStatus | None = None


_PVC = msgspec.json.Decoder(_Pvc)
_MANY_NODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})
_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


def decode_pvc(text: bytes | Raw) -> PersistentVolumeClaim:
    wire = _PVC.decode(text)
    meta, spec = wire.metadata, wire.spec or _PvcSpec()
    return PersistentVolumeClaim(
        uid=uid_of(meta),
        namespace=sys.intern(meta.namespace),
        name=meta.name,
        resource_version=meta.resource_version,
        volume=spec.volume_name or "",
        bind_completed=_BIND_COMPLETED in decode_strings(bytes(meta.annotations) or b"null"),
        lost=wire.status is not None and wire.status.phase == "Lost",
        controller=next((owner.uid for owner in meta.owner_references or () if owner.controller), ""),
        exclusive="ReadWriteOncePod" in (spec.access_modes or ()),
        many_nodes=not _MANY_NODES.isdisjoint(spec.access_modes or ()),
        deleting=meta.deletion_timestamp is not None,
    )


class _PvAffinity(Struct, gc=False):
    required: WireNodeSelector | None = None


class _CsiSource(Struct, rename="camel", gc=False):
    driver: str = ""
    volume_handle: str = ""


class _InTreeSource(Struct, rename={"volume_id": "volumeID", "pd_name": "pdName", "disk_uri": "diskURI"}, gc=False):
    """Each in-tree source has one of these names for its volume."""

    volume_id: str = ""
    pd_name: str = ""
    disk_uri: str = ""


class _PvSpec(Struct, rename="camel", gc=False):
    node_affinity: _PvAffinity | None = None
    local: dict[str, Raw] | None = None
    host_path: dict[str, Raw] | None = None
    csi: _CsiSource | None = None
    aws_elastic_block_store: _InTreeSource | None = None
    azure_disk: _InTreeSource | None = None
    cinder: _InTreeSource | None = None
    gce_persistent_disk: _InTreeSource | None = None
    portworx_volume: _InTreeSource | None = None


class _Pv(Struct, gc=False):
    metadata: WireMeta
    spec: _PvSpec | None = None


_PV = msgspec.json.Decoder(_Pv)


_IN_TREE_DRIVERS = {
    "aws_elastic_block_store": "ebs.csi.aws.com",
    "azure_disk": "disk.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "gce_persistent_disk": "pd.csi.storage.gke.io",
    "portworx_volume": "pxd.portworx.com",
}
_TOPOLOGY_LABELS = {
    "aws_elastic_block_store": "topology.ebs.csi.aws.com/zone",
    "cinder": "topology.cinder.csi.openstack.org/zone",
    "gce_persistent_disk": "topology.gke.io/zone",
}
"""The node labels of the drivers that name zones in their own way."""
_ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


def decode_pv(text: bytes | Raw) -> PersistentVolume:
    wire = _PV.decode(text)
    meta, spec = wire.metadata, wire.spec or _PvSpec()
    affinity = spec.node_affinity.required if spec.node_affinity else None
    terms = None if affinity is None else _node_affinity(affinity)
    labels = decode_strings(bytes(meta.labels) or b"null")
    in_tree = next((name for name in _IN_TREE_DRIVERS if getattr(spec, name) is not None), "")
    return PersistentVolume(
        name=meta.name,
        uid=uid_of(meta),
        resource_version=meta.resource_version,
        node_affinity=terms,
        driver_affinity=_driver_affinity(_TOPOLOGY_LABELS.get(in_tree, ""), terms or (), labels),
        local=spec.local is not None or spec.host_path is not None,
        zones=_zones(labels),
        attachable=_attachable(spec, in_tree),
    )


def _attachable(spec: _PvSpec, in_tree: str) -> Volume | None:
    """In-tree volumes belong to the CSI drivers that have taken them over."""
    found = spec.csi or _CsiSource()
    if in_tree:
        source: _InTreeSource = getattr(spec, in_tree)
        found = _CsiSource(_IN_TREE_DRIVERS[in_tree], source.volume_id or source.pd_name or source.disk_uri)
    return Volume(sys.intern(found.driver), found.volume_handle) if found.driver and found.volume_handle else None


def _driver_affinity(label: str, terms: tuple[Term, ...], labels: Mapping[str, str]) -> tuple[Term, ...] | None:
    """As kube-scheduler translates it: zones in the affinity, else in the PV's label, by the driver's own label."""
    if not label:
        return None
    stated = {each.key for term in terms for each in term.expressions}
    zone = next((key for key in _ZONES if key in stated), next((key for key in _ZONES if key in labels), ""))
    if any(each.key == zone and each.values for term in terms for each in term.expressions):
        return tuple(replace(term, expressions=_renamed(term.expressions, zone, label)) for term in terms)
    zones = tuple(sorted({part.strip() for part in labels.get(zone, "").split("__")} - {""}))
    if not zones:
        return None
    in_zone = Requirement(label, "In", zones)
    return tuple(replace(term, expressions=(*term.expressions, in_zone)) for term in terms or (Term(),))


def _renamed(expressions: tuple[Requirement, ...], zone: str, label: str) -> tuple[Requirement, ...]:
    return tuple(replace(each, key=label) if each.key == zone else each for each in expressions)


def _node_affinity(wire: WireNodeSelector) -> tuple[Term, ...]:
    terms = node_terms(wire)
    problem = rules_problem(Rules(volumes=(terms,)))
    if problem:
        raise WrongField("spec.nodeAffinity", problem)
    return terms


def _zones(labels: Mapping[str, str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Several zones are one value, `a__b`; a value with an empty part is ignored."""
    found = ((key, tuple(part.strip() for part in labels[key].split("__"))) for key in ZONE_LABELS if key in labels)
    return tuple((key, values) for key, values in found if all(values))


class _Allocatable(Struct, gc=False):
    count: int | None = None


class _Driver(Struct, gc=False):
    name: str
    allocatable: _Allocatable | None = None


class _CsiNodeSpec(Struct, gc=False):
    drivers: list[_Driver] | None = None


class _CsiNode(Struct, gc=False):
    metadata: WireMeta
    spec: _CsiNodeSpec | None = None


_CSI_NODE = msgspec.json.Decoder(_CsiNode)


def decode_csi_node(text: bytes | Raw) -> CsiNode:
    wire = _CSI_NODE.decode(text)
    meta, drivers = wire.metadata, (wire.spec.drivers if wire.spec else None) or ()
    limits = {
        sys.intern(driver.name): driver.allocatable.count
        for driver in drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }
    return CsiNode(sys.intern(meta.name), uid_of(meta), meta.resource_version, limits)


class _AttachmentSource(Struct, rename="camel", gc=False):
    persistent_volume_name: str | None = None


class _AttachmentSpec(Struct, rename="camel", gc=False):
    node_name: str = ""
    attacher: str = ""
    source: _AttachmentSource | None = None


class _Attachment(Struct, gc=False):
    metadata: WireMeta
    spec: _AttachmentSpec | None = None


_ATTACHMENT = msgspec.json.Decoder(_Attachment)


def decode_volume_attachment(text: bytes | Raw) -> VolumeAttachment:
    wire = _ATTACHMENT.decode(text)
    meta, spec = wire.metadata, wire.spec or _AttachmentSpec()
    return VolumeAttachment(
        meta.name,
        uid_of(meta),
        meta.resource_version,
        node=sys.intern(spec.node_name),
        driver=sys.intern(spec.attacher),
        pv=(spec.source.persistent_volume_name if spec.source else None) or "",
    )
