"""A real control plane on this machine: etcd, kube-apiserver, kube-controller-manager, kube-scheduler; no root.

    options = ControlPlaneOptions(folder=Path("work"))       # address, users, flags, clients' limits: see its fields
    async with control_plane(options) as plane:
        plane.url, plane.ca, plane.kubeconfig               # admin's
        plane.client(clock)                                 # a LabApi as admin, for lab kubelets and set-up; close it
        token = await plane.token("rematch", "rematch")     # a bound token of a service account
        plane.write_kubeconfig(path, token="..." or token_file=Path(...))
        await plane.restart(Component.SCHEDULER)
        await plane.forget_history()                        # etcd is compacted: old versions get 410
        async with serve_metrics(plane, provider): ...      # metrics.k8s.io behind an APIService

Ports are free ones, credentials are made for the run, logs stay in `folder/log`. The processes end with the block, and
with this process even when it is killed; what an earlier run left in the same folder is removed at the start.
"""

from loadtests.controlplane.custom_resources import forget_journal, install_crds, prepare_journal
from loadtests.controlplane.metrics_service import serve_metrics
from loadtests.controlplane.options import Component, ControlPlaneOptions, User
from loadtests.controlplane.plane import ControlPlane, control_plane

__all__ = [
    "Component",
    "ControlPlane",
    "ControlPlaneOptions",
    "User",
    "control_plane",
    "forget_journal",
    "install_crds",
    "prepare_journal",
    "serve_metrics",
]
