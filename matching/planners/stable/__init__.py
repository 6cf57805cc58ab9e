"""`stable`: the many-to-one stable matching of sized pods to nodes with quotas."""

from matching.planners.stable.planner import StablePlanner

__all__ = ["StablePlanner"]
