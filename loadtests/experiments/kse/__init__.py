"""KSE's experiment in simulated time: 2 x 32 scenarios on four small workers, doing nothing, its balancers, ours."""
