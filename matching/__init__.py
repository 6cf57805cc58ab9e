"""Pure: a problem in, a plan out. Nothing here knows Kubernetes' API, a clock, a file or a socket.

`problem` and `plan` are the border; `registry.load_planner(name).plan(problem)` is the way in. A planner opens a
`case` (arrays, candidates, preferences), finds an `outcome` and has it written up by `writing`. `explain.explain`
tells of one pod why it is where it is, without a plan.
"""
