"""Why a plan is as it is, in plain short words: per move, per pod that stays, per pod that got no node."""
