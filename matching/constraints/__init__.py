"""Hard constraints, as kube-scheduler means them.

`readiness`, `taints`, `node_selector` and `node_affinity` look at a pod's rules and a node only; each has a
`veto(rules, node)` that returns the reason in a few words, or "" when it has nothing against the pair.
`classes` asks them once per class of alike pods and alike nodes. `requests`, `pod_count` and `peaks` depend on
what is on the node already and work on arrays of all nodes at once.
"""
