"""Rows in a database, and nothing else: no Kubernetes, no numbers crunched, no settings, nothing of ours imported.

Others use `storage.store.Store` and the frozen values of `storage.rows`. This package imports nothing by itself, so
that a command that needs no database does not pay for one.
"""
