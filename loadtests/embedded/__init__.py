"""An embedded Kubernetes API server: real HTTP on loopback, one process, asyncio, no root.

It speaks the part of the Kubernetes API that Rematch, the lab kubelets and kubectl use. It may do less than the
real server, never something else; `tests/contracts` is what both have to pass.

    async with EmbeddedCluster(ClusterOptions(seed=7)) as cluster:
        cluster.url                                   # http://127.0.0.1:PORT
        cluster.kubeconfig(Path("kubeconfig"))        # for kubectl and for the reactor
        cluster.api.create(NODES, {"metadata": {"name": "node1"}, "status": {...}})
        cluster.api.create(DEPLOYMENTS, {...})        # its pods appear within milliseconds

In process there are two doors, both synchronous:

* `cluster.api` (`ObjectApi`) has the verbs of the API with all its rules (defaults, validation, preconditions):
  `create`, `get`, `update`, `update_status`, and beside it `delete(api, ...)`, `bind(api, ...)`, `evict(api, ...)`;
  they raise `ApiError`.
* `cluster.store` (`ObjectStore`) holds the objects: `find`, `all`, and `observe(callback)` for every change.

kubectl sends no token over plain HTTP: leave `ClusterOptions.token` empty where kubectl is to be used.

Objects are plain dicts in their JSON shape and are shared, never copied: treat what you read as frozen, and hand in
a new dict to change something (`changed(obj, status=...)` helps). One that still carries the resourceVersion it was
read under is a compare-and-swap, as over HTTP: 409 when somebody else was faster.

Of the reactor only the clock and the parsers of quantities and label selectors are imported here.
"""

from loadtests.embedded.api_errors import ApiError
from loadtests.embedded.binding import bind
from loadtests.embedded.default_scheduler import choose_node
from loadtests.embedded.deletion import DeleteOptions, delete
from loadtests.embedded.eviction import evict
from loadtests.embedded.metrics_api import MetricsProvider, NodeMetrics, PodMetrics
from loadtests.embedded.object_api import ObjectApi
from loadtests.embedded.objects import changed
from loadtests.embedded.server import ClusterOptions, EmbeddedCluster
from loadtests.embedded.store import Change, ChangeType, ObjectStore, Stored

__all__ = [
    "ApiError",
    "Change",
    "ChangeType",
    "ClusterOptions",
    "DeleteOptions",
    "EmbeddedCluster",
    "MetricsProvider",
    "NodeMetrics",
    "ObjectApi",
    "ObjectStore",
    "PodMetrics",
    "Stored",
    "bind",
    "changed",
    "choose_node",
    "delete",
    "evict",
]
