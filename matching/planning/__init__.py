"""What all planners share. A planner calls `prepared.prepare(problem)`, finds an `outcome.Outcome` and hands it to
`write_plan.write_plan`, which adds the order of the moves, reasons, measures and the certificate."""
