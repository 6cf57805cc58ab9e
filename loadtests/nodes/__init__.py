"""Real nodes on one machine (root): kubelets with containerd in namespaces of their own, CPU by control groups.

    async with real_nodes(LabOptions((LabNodeSpec("node1", 600), LabNodeSpec("node2", 250)))) as lab:
        lab.plane.kubeconfig, lab.prometheus.url       # for kubectl, for a controller
        lab.nodes["node2"].kill()                      # a power cut; `await lab.start_node("node2")` brings it back

Nothing leaves the machine. What a killed lab leaves behind is removed by the next start, or `rematch lab nodes down`.
"""

from loadtests.nodes.lab import Lab, LabOptions, real_nodes
from loadtests.nodes.node_files import KubeletPace
from loadtests.nodes.spec import LabNodeSpec, parse_nodes

__all__ = ["KubeletPace", "Lab", "LabNodeSpec", "LabOptions", "parse_nodes", "real_nodes"]
