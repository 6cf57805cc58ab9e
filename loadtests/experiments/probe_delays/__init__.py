"""How soon a starved pod moves, and how often a healthy one does without need: the table behind the defaults."""
