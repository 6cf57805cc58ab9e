"""The experiment in simulated time: nodes and kubelets as a model, the reactor's own state, decision and planner."""
