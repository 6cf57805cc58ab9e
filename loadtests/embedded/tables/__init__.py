"""Tables: what `kubectl get` prints, with the real server's columns."""

from loadtests.embedded.tables.table import table_of

__all__ = ["table_of"]
