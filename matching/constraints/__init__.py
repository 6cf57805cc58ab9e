"""Hard and soft constraints, as kube-scheduler (1.36) applies them. One module per constraint:

| constraint | module | form |
|---|---|---|
| taints, cordoned and not-ready nodes | `taints` | veto |
| nodeSelector, node affinity | `node_affinity` | veto |
| node affinity and zones of PVs | `volumes` | veto |
| features that the node declares | `features` | veto |
| requests, pod count, peaks | `resources` | arrays of all nodes |
| pod affinity and anti-affinity | `pod_affinity` | inter-pod check |
| topology spread | `topology_spread` | inter-pod check |
| host ports | `host_ports` | inter-pod check |
| limits of attached volumes | `volume_limits` | counted by `inter_pod` |
| soft constraints (preferred..., ScheduleAnyway, PreferNoSchedule) | `soft` | a cost, never a veto |
| spread of replicas without constraints of their own | `default_spread` | a cost, never a veto |

A *veto* is a function of a pod's rules and one node. It returns the reason as a short text, or "" when it accepts the
pair. `node_rules` calls all of them (`VETOES`), once per class of pods with equal rules and group of equal nodes.

An *inter-pod check* (`inter_pod_checks`) reads counts of pods per topology domain (`pod_counts`). `inter_pod` builds
the checks and holds the counts while a planner tries placements. A problem without inter-pod constraints skips it all.

`validation` rejects rules that the API server would refuse.

To add a constraint: list a veto in `node_rules.VETOES`, or an inter-pod check in `inter_pod.inter_pod_constraints`; and
write it a second time, independently, in `matching/verify`.
"""
