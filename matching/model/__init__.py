"""The problem as arrays, the nodes that each pod may use, and the room on the nodes."""
