"""Chaos: faults from one seed against controllers on a real control plane, judged by the API server's audit log.

    make chaos                       at least 1,000 faults, report in docs/chaos.md
    make chaos SEED=17 ROUNDS=1      one round again
    make chaos SEED=17 ONLY=lost-answer,kill-passed

A round draws its faults from its seed (`faults`), carries them out while pods are moved all the time (`injection`,
`proxy`), lets the cluster settle, and checks what must hold whatever happened (`invariants`).
"""
