"""The inner loops of serial choice, of preference ranks and of the move order, compiled by numba where it is installed.

They decide nothing of their own: `matching.planners.stable.serial_choice`, `matching.preferences` and
`matching.planning.move_order` do the same in numpy, with bit-identical results. `loading` says which of the two is
used.
"""
