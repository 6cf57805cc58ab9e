"""docs/evidence.md: every result figure and table of the five sources, ours beside it, and where it was shown."""
