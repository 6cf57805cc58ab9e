"""The real programs that the lab runs: found on the PATH, in the cache, or built and installed there.

    programs = await ensure(["etcd", "kube-apiserver"])      # {"etcd": Path(...), ...}; progress goes to stderr
    programs = await ensure(names(Group.CLUSTER))

`catalogue.py` is the pinned list. A program on the PATH in a suitable version is kept; else it comes from the cache
(`$REMATCH_TOOLS`, or `$XDG_CACHE_HOME/rematch/tools`), where a missing one is built. `ToolMissing` says in one line
what to install.
"""

from loadtests.tools.catalogue import Group, Program, ToolMissing, names
from loadtests.tools.programs import Found, Missing, ensure, survey

__all__ = ["Found", "Group", "Missing", "Program", "ToolMissing", "ensure", "names", "survey"]
