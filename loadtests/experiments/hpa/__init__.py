"""BNIP's autoscaling test: bursts of load, and what autoscalers make of them by their source of metrics."""
