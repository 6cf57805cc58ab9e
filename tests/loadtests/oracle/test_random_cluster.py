"""The random clusters: the same for a seed, all features in them, and readable for us."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache

import pytest

from loadtests.oracle.ours import OurSide
from loadtests.oracle.random_cluster import RandomCluster, random_cluster
from loadtests.oracle.random_features import Feature

SEEDS = range(120)
MARKS = {
    Feature.TAINTS: '"tolerations"',
    Feature.NODE_AFFINITY: '"matchFields"',
    Feature.ODD_NUMBERS: '"values": ["1_0"]',
    Feature.HOST_PORTS: '"hostPort"',
    Feature.SPREAD: '"minDomains"',
    Feature.POD_AFFINITY: '"podAntiAffinity"',
    Feature.NAMESPACE_SELECTOR: '"namespaceSelector"',
    Feature.BOUND_VOLUMES: "bind-completed",
    Feature.UNBOUND_CLAIMS: '"phase": "Pending"',
    Feature.EPHEMERAL_VOLUMES: '"volumeClaimTemplate"',
    Feature.VOLUME_LIMITS: '"CSINode"',
    Feature.RESIZE: "PodResizePending",
    Feature.NOMINATED: '"nominatedNodeName"',
    Feature.POD_RESOURCES: '"resources": {"requests": {"cpu": "6"',
    Feature.INIT_CONTAINERS: '"overhead"',
    Feature.EXTENDED_RESOURCES: "hugepages-2Mi",
    Feature.HUGE_NODES: "6Ti",
    Feature.FULL_NODES: "1073741825",
    Feature.CORDONED: '"unschedulable": true',
    Feature.TERMINATING: "deletionGracePeriodSeconds",
    Feature.DECLARED_FEATURES: "restartPolicyRules",
    Feature.OTHER_VOLUMES: "gcePersistentDisk",
}


@cache
def clusters() -> tuple[RandomCluster, ...]:
    return tuple(random_cluster(seed) for seed in SEEDS)


def test_a_seed_always_makes_the_same_cluster() -> None:
    first, again, other = random_cluster(7), random_cluster(7), random_cluster(8)
    assert json.dumps(first.items) == json.dumps(again.items)
    assert json.dumps(first.items) != json.dumps(other.items)


def test_no_two_objects_of_a_kind_have_one_name() -> None:
    for cluster in clusters():
        names = Counter(
            (item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in cluster.items
        )
        assert names.most_common(1)[0][1] == 1, f"seed {cluster.seed}: {names.most_common(1)}"


@pytest.mark.parametrize("feature", Feature)
def test_every_feature_is_in_some_cluster(feature: Feature) -> None:
    found = [cluster for cluster in clusters() if feature in cluster.features]
    assert len(found) > len(SEEDS) / 10
    if feature is Feature.NO_POD_COUNT:
        nodes = (item for cluster in found for item in cluster.items if item["kind"] == "Node")
        assert any("pods" not in node["status"]["allocatable"] for node in nodes)
    else:
        assert any(MARKS[feature] in json.dumps(cluster.items) for cluster in found)


@pytest.mark.parametrize("seed", range(5))
def test_we_read_them_and_have_pairs_to_judge(seed: int) -> None:
    ours = OurSide(random_cluster(seed).items)
    pairs = ours.pairs()
    pods = ours.snapshot.cluster.pods
    assert pairs
    assert all(pods[pair.uid].node != pair.node and not pods[pair.uid].finished for pair in pairs)
