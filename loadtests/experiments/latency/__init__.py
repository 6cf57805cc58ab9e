"""LATENCY's three tests: eight workers at 100 to 800 ms, the whole chain on a real control plane."""
