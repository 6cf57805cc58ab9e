"""`genetic`: a genetic algorithm over whole placements, with a check dictionary that keeps them permitted.

An individual has one gene per movable pod: the index of its node (the source has a matrix of pods x nodes instead). Not
in the source, so our choice: single-point crossover, population size and rates, elites that survive unchanged, and the
current placement as one of the first individuals.
"""

from matching.planners.genetic.planner import GeneticPlanner

__all__ = ["GeneticPlanner"]
