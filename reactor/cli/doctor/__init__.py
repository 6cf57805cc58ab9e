"""`rematch doctor`: what works in this cluster, what is missing, and the command that mends it."""
