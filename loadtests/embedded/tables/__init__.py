"""Tables: what `kubectl get` prints, column by column, as the real server would say it."""

from loadtests.embedded.tables.table import table_of

__all__ = ["table_of"]
