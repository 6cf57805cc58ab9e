"""Serial choice as the paper has the quotas: who fits nowhere with the full headroom is left without a node.

The plain serial choice gives such a pod a node with less headroom. Here it is dumped, or stays pending, and takes no
room from those who choose after it.
"""

from __future__ import annotations

import numpy as np

from matching.arrays import NOWHERE, Ints, Mask
from matching.case import Case
from matching.ledger import Ledger
from matching.outcome import Choice
from matching.standing import Standing


def choice_with_dumping(case: Case, choosers: Mask, at: Ints) -> Choice:
    """The others stay as `at` says. A chooser that no node can take by requests and peaks ends NOWHERE."""
    at = np.where(choosers, NOWHERE, at)
    ledger, standing = Ledger(case.arrays, at), Standing(case.arrays)
    headroom = case.arrays.options.headroom
    for pod in case.ranking[choosers[case.ranking]].tolist():
        roomy = case.candidates.of(pod) & ledger.fits(pod) & ledger.fits_peak(pod, headroom)
        if roomy.any():
            node = case.preferences.choose(pod, roomy, standing)
            at[pod] = node
            ledger.put(pod, node)
            standing.went(pod, node)
        else:
            ledger.between.take_out(pod)
            standing.left(pod)
    return Choice(at, choosers, {})
