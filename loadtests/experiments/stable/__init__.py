"""STABLE's experiment: the same design in simulated time and on real nodes, its data, statistics and report.

`design` says what is run, a `driver` runs it, `runner` walks through it, `records` keeps what was measured,
`statistics` and `goal` judge it, `report` shows it.
"""
