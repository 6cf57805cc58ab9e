"""Pure: a problem in, a plan out. Nothing here uses the Kubernetes API, a clock, a file or a socket.

Public modules: `problem` and `plan` (the values), `registry` (`load_planner(name).plan(problem)`), `explain`,
`feasibility`, `selectors`, `compilation` (`warm_up`), the certificate, and the JSON form. The packages below are
internal:

- `constraints/`: what a node or other pods forbid, by their Kubernetes names
- `preferences.py`: how pods order nodes and nodes rank pods
- `planners/`: one module or package per planner, with its own helpers
- `planning/`: what all planners share: arrays, room, budgets, the order of the moves, writing the plan
- `reasons/`: the reasons in a plan
- `compiled/`: the inner loops for numba
"""
