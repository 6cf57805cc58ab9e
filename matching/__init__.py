"""Pure: a problem in, a plan out. Nothing here uses the Kubernetes API, a clock, a file or a socket.

Public modules: `problem` and `plan` (the values), `registry` (`load_planner(name).plan(problem)`), `verify`
(`certify`), `explain`, `feasibility`, `selectors`, `serialization` (JSON), `missing_text`, `failure_curve`,
`compilation` (`warm_up`) and `testing` (for planner authors). Internal, from the bottom up:

- `constraints/`: what a node or other pods forbid, by their Kubernetes names
- `model/`: the problem as arrays, the nodes that a pod may use, the room on the nodes
- `preferences.py`: how pods order nodes and nodes rank pods
- `compiled/`: the inner loops for numba
- `planning/`: what all planners share: budgets, the order of the moves, reasons, writing the plan
- `planners/`: one module or package per planner, with its own helpers
"""
