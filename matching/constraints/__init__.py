"""Constraints, as kube-scheduler (1.36) means them.

One pod, one node: `readiness`, `taints`, `node_selector`, `node_affinity` and `volumes` have a veto(rules, node) that
returns the reason in a few words, or "" when it has nothing against the pair. `classes` asks them once per class of
alike pods and alike nodes (`node_groups`).

Room: `requests`, `pod_count` and `peaks` work on arrays of all nodes at once.

Between pods (affinity, anti-affinity, topology spread, host ports): `who` is meant, `pod_kinds` are alike, `tallies`
count them per place, `checks` are kube-scheduler's questions to the tallies, `duties` what a pod that moves owes to
those that stay; `compiling` makes tallies, checks and duties of the rules, `neighbours` keeps them, and `between_pods`
holds the state while a planner tries placements. `Ledger` asks it; a problem without such rules pays nothing.

Soft ones are `wishes`: a price, no veto. `pod_rules` names rules that nobody can mean.
"""
