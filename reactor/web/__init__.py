"""The dashboard and its read-only HTTP API. Knows values (view.py) only: nothing here touches the cluster."""
