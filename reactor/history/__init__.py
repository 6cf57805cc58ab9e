"""The usage history: what pods, workloads and nodes used, minute by minute, rolled up, in few bytes.

Values in, values out, and reads of the store. `reactor.background.usage_recording` writes it.
"""
