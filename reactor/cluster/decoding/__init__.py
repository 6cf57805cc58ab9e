"""Decoding of the API's JSON into records. Only this package knows the JSON of Kubernetes; it does no I/O.

This is the hot path of the first list of 150,000 pods: msgspec structs, and equal parts are decoded once.
"""
