"""For people who bring their own algorithm: read nodes and pods, compute {"pod": "node"}, set the allocation plan.

The objects and their methods are those of KSE, the Kubernetes Scheduling Extension (docs/framework.md).
"""

from reactor.framework.cluster import AllocationResult, Cluster, Node, Pod

__all__ = ["AllocationResult", "Cluster", "Node", "Pod"]
