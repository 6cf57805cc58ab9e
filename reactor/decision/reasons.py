"""Why nothing is done about an unhappy pod now: the codes of Wait(reason), in Events, metrics and `rematch explain`."""

from __future__ import annotations

from enum import StrEnum


class Reason(StrEnum):
    PROTECTED = "protected"
    OTHER_SCHEDULER = "otherScheduler"
    UNJUDGED = "unjudgedConstraint"
    TOO_LITTLE_EVIDENCE = "tooLittleEvidence"
    COOLDOWN = "cooldown"
    SETTLING = "settling"
    """Its node was just relieved of a pod; the measurements do not show yet what that did."""
    MOVE_IN_FLIGHT = "moveInFlight"
    HALTED = "halted"
    NO_FRESH_METRICS = "noFreshMetrics"
    MOVE_CANNOT_HELP = "moveCannotHelp"
    NO_BETTER_PLACE = "noBetterPlace"
    OBSERVED = "observed"
    """A plan was made and recorded; mode observe does not carry it out."""
    PDB = "disruptionBudget"
    EVICTION_FAILED = "evictionFailed"
