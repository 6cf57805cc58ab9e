"""The commands that the lab adds to `rematch`; what they need is imported only when they run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
STATE = Path(".rematch/demo")


@click.command()
@click.option("--duration", help="Per arm, e.g. 120s. Default: until Ctrl-C, or 120s with --headless.")
@click.option("--headless", is_flag=True, help="Both arms (default placement left alone; rematch), no person needed.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--seed", type=int, default=1, show_default=True, help="Of the apps' work, the arrivals and the ties.")
@click.option("--threshold", type=click.FloatRange(0, 1), default=0.9, show_default=True, help="Happiness threshold.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="Of the dashboard.")
@click.option("--load", type=click.Choice(["auto", "builtin", "k6"]), default="auto", show_default=True,
              help="auto takes k6 when it is on the PATH.")  # fmt: skip
@click.option(
    "--state", type=click.Path(path_type=Path), default=STATE, show_default=True, help="Folder for its files."
)
@click.option("-v", "--verbose", is_flag=True, help="Print every decision, also waits and placements.")
def demo(**given: Any) -> None:
    """The main job on an embedded cluster: load overruns a weak node, probes fail, pods move."""
    from loadtests.demo.main import DemoOptions, main

    main(DemoOptions(**given))


@click.group(short_help="Clusters to try things on, their programs, experiments.")
def lab() -> None:
    """The lab: clusters to try things on, the programs they are made of, and comparisons over several seeds."""


@lab.command()
@click.option("--port", type=click.IntRange(0, 65535), default=0, show_default=True, help="Of the API server; 0: any.")
@click.option(
    "--state", type=click.Path(path_type=Path), default=STATE, show_default=True, help="Folder for its files."
)
@click.option("--seed", type=int, default=1, show_default=True)
def up(port: int, state: Path, seed: int) -> None:
    """An embedded cluster with the demo's nodes and apps, for kubectl, until Ctrl-C."""
    from loadtests.demo.main import up as start

    start(port, state, seed)


@lab.command()
@click.option("--seeds", type=click.IntRange(2, 50), default=5, show_default=True, help="How many.")
@click.option("--duration", default="60s", show_default=True, help="Per arm and seed.")
@click.option("--arm", type=click.Choice(["both", "default", "rematch"]), default="both", show_default=True)
@click.option("--busy", type=click.IntRange(0, 64), default=0, show_default=True,
              help="Processes that compute all the time beside it, to see what a busy machine does to it.")  # fmt: skip
@click.option("-o", "--output", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@click.option(
    "--state", type=click.Path(path_type=Path), default=STATE, show_default=True, help="Folder for its files."
)
def compare(seeds: int, duration: str, arm: str, busy: int, output: str, state: Path) -> None:
    """The demo's two arms over several seeds, with the interval of the paired difference."""
    from loadtests.demo.compare import ARMS, Comparison, main
    from loadtests.demo.main import seconds

    arms = tuple(ARMS) if arm == "both" else (arm,)
    main(Comparison(seeds, seconds(duration, 60.0), arms, busy), output, state)


@lab.command()
@click.argument("group", type=click.Choice(["all", "cluster", "nodes", "load"]), default="all")
@click.option("--list", "only_list", is_flag=True, help="List what is here; build and install nothing.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def tools(group: str, only_list: bool, output: str) -> None:
    """Get the real programs: Kubernetes, etcd, k6, Vegeta and more; a suitable one on the PATH is kept."""
    from loadtests.tools.programs import main

    main(group, only_list=only_list, output=output)


@lab.command("control-plane")
@click.option("--state", type=click.Path(path_type=Path), default=Path(".rematch/control-plane"), show_default=True,
              help="Folder for its data, credentials and logs: new, empty, or of an earlier run.")  # fmt: skip
def control_plane(state: Path) -> None:
    """A real control plane (etcd, API server, controller manager, scheduler), for kubectl, until Ctrl-C."""
    from loadtests.controlplane.plane import main

    main(state)


@lab.group()
def nodes() -> None:
    """Real nodes on this machine (root): kubelets with containerd, CPU by control groups, Prometheus."""


@nodes.command("up")
@click.option("--node", "specs", multiple=True, default=("600m", "250m", "400m"), show_default=True,
              help="MILLICORESm or MILLICORESm/MEBIBYTESMi, at least 20m/384Mi; once per node.")  # fmt: skip
@click.option("--controller", is_flag=True, help="Also run the controller, as a pod on one more node.")
def nodes_up(specs: tuple[str, ...], controller: bool) -> None:
    """Control plane and nodes, for kubectl, until Ctrl-C."""
    from loadtests.nodes.command import up

    up(specs, controller=controller)


@nodes.command("down")
def nodes_down() -> None:
    """End what `up` runs and remove what killed labs left behind."""
    from loadtests.nodes.command import down

    down()


def _enough_seeds(_context: click.Context, _option: click.Parameter, seeds: int) -> int:
    """Says why, unlike an IntRange."""
    from loadtests.experiments.stable.design import LEAST_SEEDS, MOST_SEEDS

    if not LEAST_SEEDS <= seeds <= MOST_SEEDS:
        why = f"an interval that can be judged by needs at least {LEAST_SEEDS} seeds"
        raise click.BadParameter(f"{seeds} is not in {LEAST_SEEDS} to {MOST_SEEDS}: {why}")
    return seeds


def _kept_in(folder: str) -> Callable[[F], F]:
    """The options that every experiment has."""
    options = (
        click.option("--resume", is_flag=True, help="Go on with what an earlier run has measured."),
        click.option("--state", type=click.Path(path_type=Path), default=Path(folder), show_default=True,
                     help="Folder for the data and the report."),
        click.option("--copy-to", type=click.Path(path_type=Path),
                     help="Also put the finished report into this folder."),
    )  # fmt: skip

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@lab.group()
def experiment() -> None:
    """The experiments of the sources, each with one HTML report."""


@experiment.command("stable")
@click.option("--real/--no-real", default=None, help="On real nodes; by default when this is root.")
@click.option("--simulated/--no-simulated", default=True, show_default=True, help="In simulated time: a minute.")
@click.option(
    "--steps",
    type=click.Choice(["short", "minute", "full"]),
    help="1.5 to 11 s; 60 s; 5 minutes as in the paper. Default: minute in simulated time, short on real nodes.",
)
@click.option(
    "--full",
    "steps",
    flag_value="full",
    help="The same as --steps full: a day and a half on real nodes, simulated an hour.",
)
@click.option(
    "--raw-units",
    is_flag=True,
    help="Also run stable-paper with distances in the paper's cores and GB, not in shares of capacity.",
)
@click.option("--tool", type=click.Choice(["vegeta", "k6"]), default="vegeta", show_default=True)
@click.option("--seeds", type=int, default=3, show_default=True, callback=_enough_seeds,
              help="How many: 3 to 50; the verdicts' intervals need 3.")  # fmt: skip
@click.option("--against", default="", metavar="REVISION",
              help="On real nodes, also run the controller of this git revision, paired by seed.")  # fmt: skip
@click.option("--predictive", is_flag=True, help="Also run ours with decision.trigger: predictive. It needs steps of"
              " a minute or longer: a trend is that of four minutes.")  # fmt: skip
@_kept_in(".rematch/experiment-stable")
def experiment_stable(real: bool | None, **given: Any) -> None:
    """STABLE's experiment: rising load on three unequal nodes, placements compared, one HTML report."""
    import os

    from loadtests.experiments.stable.main import ExperimentOptions, main

    on_nodes = os.geteuid() == 0 if real is None else real
    if not on_nodes and not given["simulated"]:
        raise click.UsageError("--no-simulated without real nodes (--real, as root) leaves nothing to run")
    main(ExperimentOptions(real=on_nodes, **given))


@experiment.command("bnip")
@click.option("--repeats", type=click.IntRange(1, 100), default=5, show_default=True, help="Runs of each arm.")
@click.option("--live", is_flag=True, help="Also on real nodes (root): updates and moves under load, many concurrent"
              " users; about 15 minutes per repeat.")  # fmt: skip
@_kept_in(".rematch/experiment-bnip")
def experiment_bnip(**given: Any) -> None:
    """BNIP's tests: nine pods by the real kube-scheduler with and without the extender (5 minutes); with --live also
    requests lost to updates and moves, and many concurrent users."""
    from loadtests.experiments.bnip.main import BnipOptions, main

    main(BnipOptions(**given))


@experiment.command("hpa")
@click.option("--repeats", type=click.IntRange(1, 100), default=12, show_default=True, help="Bursts of load.")
@click.option("--seconds", type=click.FloatRange(30, 3600), default=300.0, show_default=True, help="Of a burst.")
@click.option(
    "--pause", type=click.FloatRange(0, 3600), default=30.0, show_default=True, help="Seconds between bursts."
)
@click.option("--resume", is_flag=True, help="Go on with what an earlier run has measured, in a session of its own.")
@click.option("--state", type=click.Path(path_type=Path), default=Path(".rematch/experiment-hpa"), show_default=True,
              help="Folder for the data and the report.")  # fmt: skip
@click.option("--copy-to", type=click.Path(path_type=Path), help="Also put the finished report into this folder.")
def experiment_hpa(**given: Any) -> None:
    """BNIP's autoscaling test on real nodes (root): bursts, by metrics.k8s.io, Prometheus and forecast (70 minutes)."""
    from loadtests.experiments.hpa.main import HpaOptions, main

    main(HpaOptions(**given))


@experiment.command("genetic")
@click.option(
    "--seeds", type=click.IntRange(1, 50), default=5, show_default=True, help="How many; each has another workload."
)
@_kept_in(".rematch/experiment-genetic")
def experiment_genetic(**given: Any) -> None:
    """GENETIC's figures: check dictionary, loads against the real kube-scheduler's, weights (half a minute)."""
    from loadtests.experiments.genetic.main import GeneticOptions, main

    main(GeneticOptions(**given))


@experiment.command("kse")
@click.option(
    "--repeats", type=click.IntRange(1, 100), default=10, show_default=True, help="Of every scenario and arm."
)
@click.option("--jobs", type=click.IntRange(1, 256), default=2, show_default=True, help="Runs at the same time.")
@click.option("--only", multiple=True, metavar="WORD",
              help="Only scenarios with this word in their name, such as memory; once per word.")  # fmt: skip
@click.option("--real", is_flag=True, help="Also four of the scenarios on real nodes (root): 30 minutes per repeat.")
@click.option("--real-repeats", type=click.IntRange(1, 100), default=2, show_default=True,
              help="Of every scenario and arm on real nodes; the rule needs 2.")  # fmt: skip
@_kept_in(".rematch/experiment-kse")
def experiment_kse(**given: Any) -> None:
    """KSE's experiment: 64 scenarios on four small workers in simulated time, with --real some on real nodes, its
    balancers and ours, one report."""
    from loadtests.experiments.kse.main import KseOptions, main

    main(KseOptions(**given))


@experiment.command("latency")
@click.option("--seeds", type=click.IntRange(1, 50), default=3, show_default=True,
              help="How many; each has other names for the workers.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1, 16), default=2, show_default=True,
              help="Labs at the same time; each has a control plane of its own.")  # fmt: skip
@click.option("--pace", type=click.FloatRange(0.1, 1.0), default=1.0, show_default=True,
              help="Factor on delays and waiting times; 1 is the thesis'.")  # fmt: skip
@click.option("--only-first", is_flag=True, help="One run of test 1, to see that everything works.")
@click.option("--resume", is_flag=True, help="Go on with what an earlier run has measured.")
@click.option("--state", type=click.Path(path_type=Path), default=Path(".rematch/experiment-latency"),
              show_default=True, help="Folder for the data and the report.")  # fmt: skip
@click.option("--copy-to", type=click.Path(path_type=Path), help="Also put the finished report into this folder.")
def experiment_latency(**given: Any) -> None:
    """LATENCY's tests: eight workers at 100 to 800 ms, the meter, a broker and the controller on a real control plane,
    targets that move to the nearest workers, one HTML report. Needs root or user namespaces."""
    from loadtests.experiments.latency.main import LatencyOptions, main

    main(LatencyOptions(**given))


@lab.command()
@click.option("--docs", type=click.Path(path_type=Path), default=Path("docs"), show_default=True,
              help="Folder with the result files; evidence.md is written there.")  # fmt: skip
def evidence(docs: Path) -> None:
    """docs/evidence.md: every figure and table of the five sources, ours beside it, and where it was shown."""
    from loadtests.evidence.main import main

    main(docs)


@lab.command("zero-loss")
@click.option("--moves", type=click.IntRange(1, 1000), default=20, show_default=True,
              help="Of each pod, by Rematch with its default strategies.")  # fmt: skip
@click.option("--moves-beside", type=click.IntRange(1, 1000), default=5, show_default=True,
              help="Of each pod, in each of the other ways.")  # fmt: skip
@click.option("--rate", type=click.FloatRange(1, 200), default=10.0, show_default=True,
              help="Requests per second to each app, from each of four load tools.")  # fmt: skip
@click.option("--way", "ways", multiple=True, help="Only this way of moving; once per way. Default: all.",
              type=click.Choice(
                  ["chosen", "releaseSurge", "scaleSurge", "evict", "plain eviction", "descheduler"]))  # fmt: skip
@click.option("--resume", is_flag=True, help="Go on with what an earlier run has measured.")
@click.option("--state", type=click.Path(path_type=Path), default=Path(".rematch/zero-loss"), show_default=True,
              help="Folder for table, CSV, JSON, plot and logs.")  # fmt: skip
@click.option("--copy-to", type=click.Path(path_type=Path), help="Also put them into this folder.")
def zero_loss(**given: Any) -> None:
    """Requests lost while pods are moved: k6 and Vegeta through kube-proxy on real nodes (root)."""
    from loadtests.zero_loss.main import ZeroLossOptions, main

    main(ZeroLossOptions(**given))


@lab.command()
@click.option("--scenarios", multiple=True, metavar="NAME|FILE", help="Only these; once per scenario. Default: all.")
@click.option("--policies", multiple=True, metavar="NAME|FILE",
              help="Only these, or Rematch with the settings of a file; once per policy. Default: all.")  # fmt: skip
@click.option("--seeds", default="choose", show_default=True, metavar="choose|report|A-B|A,B",
              help="Which: choose are 1 to 30, to tune by; report are 5001 to 5030, for figures.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1, 256), default=2, show_default=True, help="Games at the same time.")
@click.option("--resume", is_flag=True, help="Go on with what an earlier tournament has played.")
@click.option("--state", type=click.Path(path_type=Path), default=Path(".rematch/tournament"), show_default=True,
              help="Folder for the results and the report.")  # fmt: skip
def tournament(**given: Any) -> None:
    """Policies against each other in simulated time: availability, moves, and whether they helped."""
    from loadtests.tournament.main import TournamentOptions, main

    main(TournamentOptions(**given))
