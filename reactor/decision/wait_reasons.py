"""Why nothing is done about an unhappy pod now: the codes of Wait(reason) in Events, metrics and `rematch explain`."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    PROTECTED = "protected"
    OTHER_SCHEDULER = "otherScheduler"
    NO_STEERING = "noSteering"
    """Nothing here can send its replacement to the planned node."""
    UNSUPPORTED = "unjudgedConstraint"
    """A hard constraint of the pod is not supported."""
    TOO_LITTLE_EVIDENCE = "tooLittleEvidence"
    UNCORROBORATED = "uncorroborated"
    """Only Events say that it fails, and anyone may have written them."""
    OTHERS_FIRST = "othersFirst"
    """Only an annotation makes it unhappy; a rematch for other pods comes first."""
    COOLDOWN = "cooldown"
    SETTLING = "settling"
    """A pod just left its node; the measurements do not show the effect yet."""
    MOVE_IN_FLIGHT = "moveInFlight"
    HALTED = "halted"
    NO_FRESH_METRICS = "noFreshMetrics"
    MOVE_CANNOT_HELP = "moveCannotHelp"
    NO_BETTER_NODE = "noBetterPlace"
    OBSERVED = "observed"
    """A plan was made and recorded; mode observe does not carry it out."""
    PDB = "disruptionBudget"
    OWNER_BUSY = "ownerBusy"
    """Somebody else is changing its owner: a rollout, a change of the replicas. Or the owner is paused."""
    LAST_REPLICA = "lastReplica"
    """Its eviction would leave too few Ready replicas, and no surge is possible."""
    NO_STRATEGY = "noStrategy"
    """None of the strategies that the settings allow is possible."""
    EVICTION_FAILED = "evictionFailed"
