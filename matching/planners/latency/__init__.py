"""`latency` and `latency-published`: applications go step by step to the nodes with the shortest round trip.

The source deletes the probe that a target replaces, and a Deployment creates a new one. Here the probe makes way by a
move of its own: to an unvisited node, else to the node that the target left. Without room on either, or with a budget
of one move, it stays with the target. So no pod loses its node.
"""

from matching.planners.latency.planner import LatencyPlanner, LatencyPublishedPlanner
from matching.planners.latency.round import after_moves, current_round, with_measurement

__all__ = ["LatencyPlanner", "LatencyPublishedPlanner", "after_moves", "current_round", "with_measurement"]
