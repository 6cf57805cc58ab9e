"""Signals: what the controller learns about pods and nodes besides their specs.

Liveness probes (`probes`, `container_probes`, `kubelet_events`), usage (`usage`, `measurements`) and where they come
from (`prometheus`, `metrics_api`). Forbidden here: decisions, and imports of the packages above (state, decision,
planning, execution). `prometheus` is the only importer of the Prometheus client.
"""
