"""Why a plan is as it is: per move, per pod that stays, per pod without a node. `write_plan` puts it into the plan."""
