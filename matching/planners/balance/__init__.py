"""`balance`: even node loads on several axes at once, with few moves, and none that the noise does not justify."""

from matching.planners.balance.planner import BalancePlanner

__all__ = ["BalancePlanner"]
