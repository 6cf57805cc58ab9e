"""GENETIC: a genetic algorithm over whole placements, with a check dictionary that keeps them permitted.

An individual has one gene per pod that may move: the index of its node (the one in its row of the source's pods x
nodes matrix). Ours, since the source does not say: single-point crossover, population size and rates, elites that
survive unchanged, and the placement as it is as one of the first individuals.
"""

from matching.planners.genetic.planner import GeneticPlanner

__all__ = ["GeneticPlanner"]
