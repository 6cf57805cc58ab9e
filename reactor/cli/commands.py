"""The command lines: every command with its options and help. The work is done in the module named like the command.

These modules are imported when a command runs, so that `--help` is fast.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from reactor.cli.latency import broker_options

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_STORE = Path(".rematch/rematch.db")
STORE_IN_POD = (
    "a controller in the cluster has its store in its pod, and so you get a copy (docs/tune.md):\n"
    "  kubectl exec -n rematch deployment/rematch -- /opt/rematch/bin/rematch backup /tmp/copy.db --force"
    " --store /var/lib/rematch/rematch.db\n"
    "  kubectl exec -n rematch deployment/rematch -- cat /tmp/copy.db > rematch.db"
)
"""With the volumes of the chart: the root file system is read-only, /tmp is not."""
_STORE_VARIABLE = "REMATCH_STORE"
_SCHEMA_VARIABLE = "REMATCH_STORE_SCHEMA"


class StoreType(click.ParamType[Any]):
    """A file, a URL, or the file that a URL is in. What everybody on the machine can see in the list of processes is
    no place for a password."""

    name = "FILE|URL|@FILE"

    def __init__(self, *, exists: bool = False) -> None:
        self._exists = exists

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        from storage import StorageError
        from storage.place import DEFAULT_SCHEMA, PostgresqlSchema, locate

        source = ctx.get_parameter_source(param.name) if ctx and param and param.name else None
        in_file = isinstance(value, str) and value.startswith("@")
        try:
            where = Path(value[1:]).read_text().strip() if in_file else value
            place = locate(where, os.environ.get(_SCHEMA_VARIABLE) or DEFAULT_SCHEMA)
        except OSError as error:
            self.fail(f"the file with the URL, {value[1:]}, cannot be read: {error.strerror}", param, ctx)
        except StorageError as error:
            self.fail(str(error), param, ctx)
        if isinstance(place, PostgresqlSchema):
            if place.url.password and not in_file and source is click.core.ParameterSource.COMMANDLINE:
                self.fail(
                    f"a URL with a password is given by {_STORE_VARIABLE} or by @FILE, not as an argument", param, ctx
                )
        elif self._exists and not place.exists():
            self.fail(f"File '{place}' does not exist; {STORE_IN_POD}", param, ctx)
        return place


def _store_option_of(text: str, default: Path | None = None, *, exists: bool = False) -> Callable[[F], F]:
    return click.option(
        "--store",
        type=StoreType(exists=exists),
        default=default,
        show_default=default is not None,
        envvar=_STORE_VARIABLE,
        show_envvar=True,
        help=text,
    )


def _object_name(_context: click.Context, _parameter: click.Parameter, text: str | None) -> object:
    from reactor.cluster.kinds import ObjectName

    namespace, _, name = (text or "").partition("/")
    if text is not None and (not namespace or not name or "/" in name):
        raise click.BadParameter(f"{text!r} is not NAMESPACE/NAME")
    return None if text is None else ObjectName(namespace, name)


def _cluster_options(command: F) -> F:
    command = click.option("--context", help="Context of the kubeconfig.")(command)
    return click.option(
        "--kubeconfig", type=click.Path(), help="Default: service account, KUBECONFIG, ~/.kube/config."
    )(command)


def _process_options(command: F) -> F:
    """What settings may not name: files, credentials and code."""
    text = "package.module:function that the planner `function` calls."
    return _prometheus_options(click.option("--planner-function", help=text)(command))


def _log_options(command: F) -> F:
    levels, formats = click.Choice(["debug", "info", "warning", "error"]), click.Choice(["auto", "json", "console"])
    command = click.option("--log-format", type=formats, default="auto", show_default=True)(command)
    return click.option("--log-level", type=levels, default="info", show_default=True)(command)


def _prometheus_options(command: F) -> F:
    file = click.Path(path_type=Path, dir_okay=False)
    for name, kind, text in (
        ("--prometheus-ca-file", file, "Certificate authority of an https Prometheus."),
        ("--prometheus-token-host", str, "https://HOST[:PORT], the only server that gets the token."),
        ("--prometheus-token-file", file, "Bearer token for Prometheus, read for every query."),
    ):
        command = click.option(name, type=kind, help=text)(command)
    return command


def _output_option(*formats: str) -> Callable[[F], F]:
    return click.option("-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True)


_settings_option = click.option(
    "--settings", "settings_file", type=click.Path(path_type=Path), help="Settings file (see `rematch config`)."
)
_server_option = click.option(
    "--server",
    default="http://127.0.0.1:8080",
    show_default=True,
    envvar="REMATCH_SERVER",
    show_envvar=True,
    help="URL of a running controller. The variable REMATCH_TOKEN holds a bearer token, if it wants one.",
)


_configmap_option = click.option(
    "--configmap",
    callback=_object_name,
    help="NAMESPACE/NAME of the ConfigMap with the settings (key settings.yaml), watched.",
)


@click.command(short_help="Run the controller: in-cluster by service account, else by kubeconfig.")
@_settings_option
@_configmap_option
@_store_option_of(
    "Where happiness, plans, moves and usage are recorded: a file of SQLite, postgresql://USER@HOST/DATABASE, or @FILE"
    f" with such a URL in it. With PostgreSQL, the variable {_SCHEMA_VARIABLE} names the schema, by default rematch.",
    DEFAULT_STORE,
)
@click.option(
    "--models",
    type=click.Path(path_type=Path),
    help="Where trained models are kept: FOLDER/NAME, the beginning of their names. Default: beside the file of the"
    " store; with PostgreSQL .rematch/rematch.",
)
@click.option(
    "--namespace",
    default="",
    help="Namespace of journal, Lease and requests. Default: that of --configmap, else the pod's own, else rematch.",
)
@click.option("--lease-duration", type=float, default=15.0, show_default=True, help="Seconds: a dead leader's Lease.")
@click.option(
    "--lease-renew-deadline",
    type=float,
    default=10.0,
    show_default=True,
    help="Seconds after which a leader that cannot renew its Lease stops acting.",
)
@click.option("--lease-retry", type=float, default=2.0, show_default=True, help="Seconds between attempts.")
@click.option("--dry-run", is_flag=True, help="Only plan and record, whatever the settings say; write no Events.")
@click.option(
    "--bind",
    default="127.0.0.1",
    show_default=True,
    help="Address of dashboard and API. Where others reach it, they need a token of the cluster (--auth).",
)
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="0 takes a free port.")
@click.option(
    "--auth",
    type=click.Choice(["token", "none"]),
    help="token: a bearer token whose user may `get services/proxy` of the Service rematch. none: everybody who reaches"
    " the port, for a proxy that authenticates. Default: none on loopback, else token.",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    multiple=True,
    metavar="NAME",
    help="A name under which the dashboard is reached, beside localhost; may be repeated.",
)
@click.option("--probe-bind", default="127.0.0.1", show_default=True, help="Address of --probe-port.")
@click.option(
    "--probe-port",
    type=click.IntRange(0, 65535),
    help="/healthz, /readyz and /metrics on a port of their own, without token.",
)
@click.option("--extender-bind", default="127.0.0.1", show_default=True, help="Address of --extender-port.")
@click.option(
    "--extender-port",
    type=click.IntRange(0, 65535),
    help="Serve kube-scheduler's extender, too (see `rematch extender`). Default: not served.",
)
@click.option(
    "--external-metrics-port",
    type=click.IntRange(0, 65535),
    help="Serve external.metrics.k8s.io for HorizontalPodAutoscalers here, behind an APIService (docs/autoscaling.md).",
)
@click.option(
    "--external-metrics-certificate",
    type=click.Path(path_type=Path, dir_okay=False),
    default="/etc/rematch/external-metrics/tls.crt",
    show_default=True,
)
@click.option(
    "--external-metrics-key",
    type=click.Path(path_type=Path, dir_okay=False),
    default="/etc/rematch/external-metrics/tls.key",
    show_default=True,
)
@_log_options
@broker_options
@click.option("--broker-host", help="The only broker that gets the credentials and the certificate.")
@_process_options
@_cluster_options
def run(**options: Any) -> None:
    """Run the controller: it watches, decides and plans, and with `mode: act` it moves pods.

    Connects by the pod's service account inside a cluster, else by kubeconfig. The default mode is observe: it
    plans and records, and changes nothing until the settings say `mode: act`.
    """
    from reactor.cli.run import RunOptions, run_controller

    run_controller(RunOptions(**options))


@click.command(short_help="Serve kube-scheduler's extender: planned nodes, and BNIP's network score.")
@_settings_option
@_configmap_option
@click.option("--namespace", default="", help="Namespace of the Lease rematch-extender. Default: as for `rematch run`.")
@click.option("--bind", default="127.0.0.1", show_default=True, help="Address; beside kube-scheduler loopback will do.")
@click.option("--port", type=click.IntRange(0, 65535), default=8090, show_default=True, help="0 takes a free port.")
@click.option("--tls-cert-file", type=click.Path(path_type=Path, dir_okay=False), help="Serve HTTPS.")
@click.option("--tls-key-file", type=click.Path(path_type=Path, dir_okay=False), help="Key of --tls-cert-file.")
@_log_options
@_prometheus_options
@_cluster_options
def extender(**options: Any) -> None:
    """Serve the verbs `filter` and `prioritize` of kube-scheduler's HTTP extender.

    The replacement of a pod that Rematch moves scores highest on its planned node. Other pods get BNIP's score: 10
    where the network use of the nodes becomes most even. docs/extender.md has the KubeSchedulerConfiguration.
    """
    from reactor.cli.extender import ExtenderRun, run_extender

    run_extender(ExtenderRun(**options))


@click.command(short_help="Make one plan, from the live cluster or from files (-f).")
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    help="Output of `kubectl get ... -o json`, or a problem of `rematch history --problem`; `-` is stdin.",
)
@_settings_option
@click.option(
    "--configmap",
    callback=_object_name,
    help="NAMESPACE/NAME of the controller's settings. Default: rematch/rematch, if the cluster has it.",
)
@_output_option("table", "wide", "json", "yaml")
@click.option("--planner", help="Planner to use instead of the one in the settings.")
@click.option(
    "--set",
    "parameters",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the planner, such as overload=1.1 or weights.cpu=2; may be repeated.",
)
@click.option("--compare", is_flag=True, help="Compare all planners instead of showing one plan.")
@click.option(
    "--scope", type=click.Choice(["cluster", "affected", "unhappy"]), help="Instead of planner.scope of the settings."
)
@click.option("--scheduler-name", help="Plan as if we managed pods with this schedulerName (settings: schedulerName).")
@click.option("--now", help="RFC 3339 time to plan for; default: the newest timestamp in the files.")
@click.option("--needs", type=click.Choice(["metrics", "requests"]), help="Default: metrics where there are any.")
@click.option(
    "--apply",
    is_flag=True,
    help="Carry out the plan on the live cluster; asks first. Where a controller leads, it does it on request.",
)
@click.option("--yes", is_flag=True, help="With --apply: do not ask.")
@click.option("--force", is_flag=True, help="With --apply: also beside a controller in mode act that does not lead.")
@_store_option_of(
    "A controller's store: happiness and past moves are read from it. With --apply the plan and its moves are"
    f" recorded in it, by default in {DEFAULT_STORE}.",
)
@_process_options
@_cluster_options
def plan(**options: Any) -> None:
    """Make one plan: which pods should move to which nodes, and why.

    \b
    From files, before anything is installed:
      kubectl get nodes,pods,deployments,replicasets,statefulsets,daemonsets,jobs,pdb,hpa,quota,services,pv,pvc,csinodes,volumeattachments,namespaces,events -A -o json > dump.json
      kubectl get pods.metrics.k8s.io,nodes.metrics.k8s.io -A -o json > metrics.json
      rematch plan -f dump.json -f metrics.json

    \b
    Compare the planners:
      rematch plan -f dump.json -f metrics.json --compare
      rematch plan -f dump.json -f metrics.json --planner refine --set overload=1.1 -o wide

    \b
    Make a plan of the controller again:
      rematch history --store rematch.db --problem PLAN > problem.json
      rematch plan -f problem.json -o json

    \b
    On the live cluster with the controller's settings; with --apply after a confirmation:
      rematch plan
      rematch plan --apply
    """  # noqa: E501 (a command to copy)
    from reactor.cli.plan import plan_and_show
    from reactor.cli.planning import PlanRequest

    plan_and_show(PlanRequest(default_store=DEFAULT_STORE, **options))


@click.command(short_help="Explain a pod: its happiness, the evidence, and why it is on its node.")
@click.argument("pod")
@click.option("-n", "--namespace", help="Default: all namespaces, default first.")
@click.option("-f", "--filename", "files", multiple=True, help="Explain from a dump instead of a running controller.")
@_settings_option
@click.option("--scheduler-name", help="With -f: explain as if we managed pods with this schedulerName.")
@_output_option("text", "json")
@_server_option
def explain(pod: str, namespace: str | None, output: str, server: str, **options: Any) -> None:
    """Show a pod's happiness with the counts it comes from, the decision, and why this node and not the others.

    \b
    POD is a pod's name or its beginning, or the name of its workload:
      rematch explain shop/app-04-7d9c5b6f4-x2x7q
      rematch explain app-04
      rematch explain deploy/app-04 -n shop

    If several pods match, they are listed and the unhappiest is explained. A running controller also knows the old
    name of a pod that it moved.
    """
    from reactor.cli.explain import explain_from_files, explain_from_server, render, to_document, wanted_pods
    from reactor.cli.output import show, to_json

    wanted = wanted_pods(pod, namespace)
    found = explain_from_files(wanted, **options) if options["files"] else explain_from_server(wanted, server)
    if output == "json":
        for note in found.notes:
            click.echo(f"note: {note}", err=True)
    show(to_json(to_document(found)) if output == "json" else render(found))


@click.command(short_help="Show what happens now.")
@_output_option("table", "json")
@_server_option
def status(output: str, server: str) -> None:
    """Show the mode, the nodes with their usage, unhappy pods and problems."""
    from reactor.cli.output import show
    from reactor.cli.status import show_status

    show(show_status(server, output))


@click.command(short_help="Show usage, request, peak and happiness of pods or nodes, live.")
@click.argument("what", type=click.Choice(["pods", "nodes"]), default="pods")
@click.option("-n", "--namespace", default="", help="Only pods of this namespace. Default: all namespaces.")
@click.option("--node", default="", help="Only pods of this node, or only this node.")
@click.option("--search", default="", help="Only names with this part; of pods NAMESPACE/NAME.")
@click.option("--sort-by", type=click.Choice(["cpu", "memory", "happiness"]), default="cpu", show_default=True)
@click.option("--limit", type=click.IntRange(1, 500), default=50, show_default=True, help="How many at most.")
@click.option("-w", "--watch", is_flag=True, help="Again and again until Ctrl-C.")
@click.option("--interval", type=click.FloatRange(min=1), default=5, show_default=True, help="Seconds, with --watch.")
@_output_option("table", "json")
@_server_option
def top(what: str, watch: bool, interval: float, **options: Any) -> None:
    """Show what pods (or nodes) use now, beside what they request, the peak that plans count, and happiness."""
    from reactor.cli.top import TopRequest, repeat, top_nodes, top_pods

    request, text = TopRequest(**options), top_nodes if what == "nodes" else top_pods
    repeat(interval if watch else None, lambda: text(request))


@click.group(
    invoke_without_command=True, short_help="Show what happened: decisions, plans, moves, settings; and what was used."
)
@_store_option_of("Read this store, not a running controller.", exists=True)
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@click.option("--waits/--no-waits", default=False, help="Show decisions to wait, too.")
@click.option("--plan", "plan_id", metavar="ID", help="With --store: show this plan.")
@click.option("--problem", "problem_id", metavar="ID", help="With --store: write the problem of this plan as JSON.")
@_output_option("table", "json")
@_server_option
@click.pass_context
def history(context: click.Context, /, **options: Any) -> None:
    """Show decisions, plans and moves, newest first."""
    from reactor.cli.history import HistoryRequest, show_history
    from reactor.cli.output import show

    if context.invoked_subcommand is None:
        show(show_history(HistoryRequest(**options)))


@history.command(short_help="Show what a pod, workload or node used.")
@click.argument("name", metavar="POD|WORKLOAD|NODE")
@click.option("-n", "--namespace", default="", help="Default: all namespaces, default first.")
@click.option("--hours", type=click.IntRange(1, 90 * 24), default=24, show_default=True, help="How far back.")
@_store_option_of("Read this store, not a running controller.", exists=True)
@_output_option("plot", "csv", "json")
@_server_option
def usage(**options: Any) -> None:
    """Show CPU, memory, network, disk, throttling, probes and readiness over time: mean and maximum (dots).

    \b
      rematch history usage shop/app-04-7d9c5b6f4-x2x7q
      rematch history usage deploy/app-04 -n shop --hours 168
      rematch history usage node/worker-2 -o csv
    """
    from reactor.cli.history_usage import show_usage
    from reactor.cli.output import show

    show(show_usage(**options))


@click.command(short_help="Show what other settings would have done with the recorded history.")
@click.option("-f", "--filename", "files", multiple=True, help="The cluster from a dump (`kubectl get ... -o json`).")
@_store_option_of("The store with the history; a copy by `rematch backup` does, too.", DEFAULT_STORE, exists=True)
@_settings_option
@click.option("--configmap", callback=_object_name, help="NAMESPACE/NAME of the controller's settings, for --apply.")
@click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="PATH=VALUE,VALUE",
    help="Values to try, such as happiness.threshold=0.8,0.9; may be repeated, then all combinations. Default: 24.",
)
@click.option("--days", type=click.IntRange(1, 30), default=30, show_default=True, help="How far back.")
@click.option("--jobs", type=click.IntRange(1, 256), default=2, show_default=True, help="Replays at the same time.")
@_output_option("table", "json")
@click.option("--report", type=click.Path(path_type=Path, dir_okay=False), help="Also write FILE.html or FILE.svg.")
@click.option("--apply", is_flag=True, help="Write the recommended settings into the ConfigMap, after a question.")
@click.option("--yes", is_flag=True, help="With --apply: do not ask.")
@_cluster_options
def tune(**options: Any) -> None:
    """Show what other settings would have done with the recorded history, and how sure that is.

    Replays the recorded demand with the real decisions and plans. First it has to reproduce what was recorded with the
    settings in force; if it does not, nothing is recommended. The cluster is that of the kubeconfig, or a file's.

    \b
      rematch tune --store rematch.db
      rematch tune -f dump.json --store rematch.db --set happiness.threshold=0.8,0.9 --report tune.html
    """
    from reactor.cli.tune import TuneRequest, run_tune

    run_tune(TuneRequest(**options))


@click.command(short_help="Show what works in this cluster, what is missing, and how to mend it.")
@click.option("-n", "--namespace", default="rematch", show_default=True, help="Where the controller is installed.")
@click.option("--canary", is_flag=True, help="Try whether hints work: makes a ReplicaSet there, and removes it again.")
@_output_option("table", "json")
@_cluster_options
def doctor(namespace: str, canary: bool, output: str, kubeconfig: str | None, context: str | None) -> None:
    """Show what works in this cluster, what is missing, and the command that mends it.

    Looks at the API versions, rights, CRDs and policies, at the controller with its settings, Lease, store and journal,
    at the measurements, and at the pods that could be moved. Without --canary it changes nothing. It needs no running
    controller. The exit code is 1 if something failed.
    """
    from reactor.cli.doctor.command import examine_cluster
    from reactor.cli.doctor.findings import render
    from reactor.cli.output import show

    found = examine_cluster(namespace, kubeconfig, context, canary=canary)
    show(render(found, output))
    if not found.ok:
        raise click.exceptions.Exit(1)


def _request_options(command: F) -> F:
    command = _cluster_options(command)
    command = click.option("--reason", default="", help="For those who read it later.")(command)
    return click.option(
        "--controller-namespace",
        default="rematch",
        show_default=True,
        help="Namespace of the controller that is asked.",
    )(command)


@click.command(short_help="Stop moves; pods are still bound. The controller does it, by a Request.")
@click.option("--for", "duration", default="", help="How long, such as 30m or 2h. Default: until `rematch resume`.")
@_request_options
def pause(duration: str, reason: str, controller_namespace: str, **connection: str | None) -> None:
    """Stop moves: the emergency stop. Pending pods are still bound, and moves in flight are finished or undone.

    The pause survives restarts of the controller. It needs the right to create requests.rematch.io.
    """
    from reactor.cli import requests

    requests.pause(requests.Target(**connection, namespace=controller_namespace), duration, reason)


@click.command(short_help="End a pause, and release the brakes.")
@_request_options
def resume(reason: str, controller_namespace: str, **connection: str | None) -> None:
    """End a pause and release the brakes: moves may start again. What is still wrong brakes again."""
    from reactor.cli import requests

    requests.resume(requests.Target(**connection, namespace=controller_namespace), reason)


_dry_run_option = click.option("--dry-run", is_flag=True, help="Check and say what would happen; change nothing.")
_pods_namespace_option = click.option(
    "-n", "--namespace", default="", help="Of pods that are named without one. Default: all namespaces."
)


@click.command(short_help="Move one pod to a node, checked and carried out by the controller.")
@click.argument("pod")
@click.argument("node")
@_pods_namespace_option
@_dry_run_option
@_request_options
def move(
    pod: str, node: str, dry_run: bool, reason: str, namespace: str, controller_namespace: str, **connection: str | None
) -> None:
    """Have the controller move POD to NODE, as safely as a move of its own plans.

    POD is NAMESPACE/NAME, NAME with -n, or a name that only one pod has. The controller refuses, with the reason,
    what may not move or does not fit. It needs the right to create requests.rematch.io, and to delete those that no
    controller took.
    """
    from reactor.cli import requests
    from reactor.cluster.requests import RequestedMove

    target = requests.Target(**connection, namespace=controller_namespace)
    requests.move(target, RequestedMove(pod, node), reason, namespace=namespace, dry_run=dry_run)


@click.command("apply", short_help="Carry out a plan of anybody's making, by the controller.")
@click.argument("plan_file", metavar="PLAN", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@_pods_namespace_option
@_dry_run_option
@_request_options
def apply(
    plan_file: Path, dry_run: bool, reason: str, namespace: str, controller_namespace: str, **connection: str | None
) -> None:
    """Have the controller carry out the moves of PLAN.

    PLAN is the JSON of `rematch plan -o json` or of another program, or KSE's {"pod": "node"}. A pod is
    NAMESPACE/NAME, NAME with -n, or a name that only one pod has.
    """
    from reactor.cli import requests

    target = requests.Target(**connection, namespace=controller_namespace)
    requests.apply(target, plan_file, reason, namespace=namespace, dry_run=dry_run)


_store_option = _store_option_of("The controller's store, a file.", DEFAULT_STORE)
_force_option = click.option("--force", is_flag=True, help="Replace a file that exists.")


@click.command(short_help="Copy the store to a file, also while a controller uses it.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_store_option
@_force_option
def backup(file: Path, store: Path, force: bool) -> None:
    """Copy the store to FILE and check the copy. Moves in flight, pause and cooldowns are in the cluster, not in it."""
    from storage.backup import backup as copy

    click.echo(f"{copy(store, file, force=force)} rows in {file}")


@click.command(short_help="Make a store from a backup.")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@_store_option
@_force_option
def restore(file: Path, store: Path, force: bool) -> None:
    """Make the store from FILE, which `rematch backup` wrote. Not while a controller uses the store."""
    from storage.backup import restore as copy

    click.echo(f"{copy(file, store, force=force)} rows in {store}")


@click.command(short_help="Before an uninstallation: end the moves in flight and delete the journal.")
@click.option("--configmap", callback=_object_name, help="NAMESPACE/NAME of the controller's settings.")
@click.option(
    "--namespace", default="", help="Namespace of the controller. Default: that of --configmap, else rematch."
)
@click.option("--timeout", type=float, default=120.0, show_default=True, help="Seconds for moves in flight to end.")
@_cluster_options
def release(**options: Any) -> None:
    """End or take back the moves in flight, withdraw hints, and delete journal, state and requests.

    A controller that leads is paused and does it; without one this command does. Fails, and deletes nothing, when a
    move has not ended in time.
    """
    from reactor.cli.release import ReleaseOptions
    from reactor.cli.release import release as run

    run(ReleaseOptions(**options))
