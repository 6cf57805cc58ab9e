"""How long things take in a run. A machine that is too busy to renew a Lease of four seconds needs a longer one."""

from __future__ import annotations

import os

_USUAL_LEASE = 4.0
LEASE_SECONDS = float(os.environ.get("REMATCH_CHAOS_LEASE", _USUAL_LEASE))
_SLOWNESS = LEASE_SECONDS / _USUAL_LEASE

BINDING_SECONDS = LEASE_SECONDS + 5.0
"""Within this a pod of ours has a node."""
LATE_SECONDS = 1.5 * LEASE_SECONDS
"""So long a request is held back: until after the end of its sender's Lease."""
STALE = 2.0 * _SLOWNESS
"""Seconds that a watch may lag behind: nobody can act on newer news."""
ROUND_SECONDS = 75.0 * _SLOWNESS
"""In which the faults of a round happen: between two of them there must be time to lead and to move."""
SETTLE_SECONDS = 60.0 * _SLOWNESS
