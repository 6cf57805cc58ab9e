"""The inner loops of serial choice, compiled by numba where it is installed.

Nothing here decides anything of its own: `matching.planners.serial_choice` and `matching.tastes` say the same in numpy
and give the same answer bit for bit. `loading` says which of the two is used; only `kernels` imports numba.
"""
