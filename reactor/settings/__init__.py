"""Settings: the schema, how they are read and checked, and which revision is in force.

`model` is the schema, `load` reads text into it, `planner` checks the planner and its parameters, `source` follows a
file or a ConfigMap. Forbidden here: I/O other than settings files, and imports of the cluster and everything above it.
"""
