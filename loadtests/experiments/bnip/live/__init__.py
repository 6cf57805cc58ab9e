"""BNIP's tests with requests, on real nodes: updates and moves under load, and many concurrent users."""
