"""Checks `rematch tune` on the lab: what it says other settings would have done, against what they did."""
