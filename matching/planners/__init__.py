"""Planners, each a plug-in of the entry-point group `rematch.planners` (see `matching.plan.Planner`)."""
