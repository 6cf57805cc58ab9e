"""The Kubernetes API: connection, reads, watches, the mirror and its views, writes, and clusters from files (dumps).

`connection` is the only importer of the Kubernetes client. Objects are decoded once, in `decoding`, into the frozen
records of `records`. Forbidden here: decisions, clocks other than the injected one, and imports of signals and the
packages above it.
"""
