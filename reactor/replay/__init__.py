"""Replays the recorded history with other settings: what was given, how probes respond to load, and the real decisions.

`recorded` reads the store, `given` makes demand and the life of pods of it, `fitting` fits the response, `replaying`
runs decide and plan in steps of a minute, `answer` says how good the model is and what it found.
"""
