"""A model of a cluster in steps of fixed length: nodes that share their CPU, kubelets that probe, owners of pods.

`queues` has the requests. Where nothing waits and nothing changes, the model goes in one step to the next change.
"""

from __future__ import annotations

import math
import random

import numpy as np

from loadtests.simulation.clock import VirtualClock
from loadtests.simulation.pod import CALIBRATED, PROBE_TIMEOUT
from loadtests.tournament.default_scheduler import Landing
from loadtests.tournament.instance import Instance
from loadtests.tournament.queues import Flags, Floats, Ints, serve
from loadtests.tournament.slots import Slots
from loadtests.tournament.state import AppState, FluidPod, Listener, MoveRecord, NodeState, NoListener, Sample

STEP = 0.5
"""Seconds."""
TIMEOUT = 2.0
"""Of a request."""
SAMPLE = 5.0
"""Seconds between two samples for the measures."""
RECENT_PROBES = 8
"""Half-life of the probes by which a pod counts as unhappy in the measures, as for its happiness in the product."""
UNHAPPY = 0.9
TIGHT = 0.95
"""From this share of a node's memory on, it reports MemoryPressure, and its pods get slower."""
RECLAIM = 3.0
"""How much slower a pod is when the memory of its node is used up."""
FULL = 1.0 - 1e-9
_LIVENESS, _READINESS = 0, 1
_QUEUE_COLUMNS = round(TIMEOUT / STEP) + 1


class FluidCluster:
    def __init__(self, instance: Instance, *, binds: bool = True) -> None:
        """`binds`: kube-scheduler's scores place pending pods; else the policy does."""
        self.instance, self.clock = instance, VirtualClock()
        self.listener: Listener = NoListener()
        self.pods: dict[str, FluidPod] = {}
        self.nodes = {each.name: NodeState(each, index) for index, each in enumerate(instance.nodes)}
        self.apps = {each.name: AppState(each, index, each.replicas) for index, each in enumerate(instance.apps)}
        self.moves: list[MoveRecord] = []
        self._open: list[MoveRecord] = []
        self.samples: list[Sample] = []
        self.first_failure = float("inf")
        self.restarts = 0
        self.slots = Slots(_QUEUE_COLUMNS)
        self.lineages = sum(app.replicas for app in instance.apps if not app.pinned)
        self._binds = binds
        self._random = random.Random(f"model/{instance.scenario.name}/{instance.seed}")
        self._landing = Landing(instance.nodes, self._random)
        self._by_slot: dict[int, FluidPod] = {}
        self._cores = np.array([node.spec.cores for node in instance.nodes])
        self._reachable_cores = self._cores.copy()
        self._lost_nodes = 0
        self._memory = np.array([float(node.spec.memory_bytes) for node in instance.nodes])
        self._slower = np.ones(len(instance.nodes))
        self._names = [node.name for node in instance.nodes]
        self._sent, self._answered, self._lost = (np.zeros(len(instance.apps)) for _ in range(3))
        self._sampled = 0.0
        self.bursts: dict[int, float] = {}
        """By the index of a node: the share of probes that fail there for a while."""
        self._factors_at = -1.0
        self._factors = instance.load.at(0.0)
        self._routes_stale = True
        self._endpoints = np.zeros(len(instance.apps))
        self._pending = False
        self._start()
        self._sample()

    # What policies do.

    def evict(self, uid: str, *, by_policy: bool = True) -> bool:
        """The pod ends, its owner makes a new one. False when it is gone already."""
        pod = self.pods.get(uid)
        if pod is None or pod.deleting:
            return False
        state = self.apps[pod.app.name]
        move = None
        if by_policy:
            self._sample()
            move = MoveRecord(int(self.slots.lineage[pod.slot]), pod.app.name, pod.node or "", self.clock.time)
            self.moves.append(move)
            self._open.append(move)
            pod.moved = True
        self._delete(pod)
        self._reconcile(state)
        return True

    def bind(self, uid: str, node: str) -> bool:
        pod = self.pods.get(uid)
        if pod is None or pod.deleting or pod.node is not None:
            return False
        pod.node = node
        self.slots.node[pod.slot] = self.nodes[node].index
        self.clock.after(pod.app.start_seconds, lambda: self._boot(pod, 0))
        self.listener.pod_changed(pod)
        return True

    def scale(self, app: str, replicas: int) -> None:
        """One more for a surge; what is too many ends by ReplicaSet's order, the lowest deletion cost first."""
        state = self.apps[app]
        state.replicas = replicas
        state.generation += 1
        self._reconcile(state)
        self.listener.owner_changed(state)

    def set_cost(self, uid: str, cost: int) -> bool:
        pod = self.pods.get(uid)
        if pod is None:
            return False
        pod.cost = cost
        self.listener.pod_changed(pod)
        return True

    def surge_move(self, uid: str, node: str) -> bool:
        """A move as a controller makes it by a scale surge, for policies that are no controller."""
        pod = self.pods.get(uid)
        if pod is None or pod.deleting or pod.node == node:
            return False
        state = self.apps[pod.app.name]
        if len(self.active(state)) != state.replicas:
            return False
        state.replicas += 1
        new = self.create(state)
        self.bind(new.uid, node)

        def retire() -> None:
            if self.slots.ready[new.slot] or new.deleting:
                pod.cost = -1
                self.scale(pod.app.name, state.replicas - 1)
            else:
                self.clock.after(STEP, retire)

        self.clock.after(pod.app.start_seconds + 2 * STEP, retire)
        return True

    # What policies and measures read.

    def active(self, state: AppState) -> list[FluidPod]:
        return [pod for pod in self.pods.values() if pod.app.name == state.model.name and not pod.deleting]

    def running(self) -> list[FluidPod]:
        """Pods on a node that are not on their way out, those of neighbours left out."""
        return [pod for pod in self.pods.values() if pod.node is not None and not pod.deleting and not pod.app.pinned]

    def pods_on(self, node: NodeState) -> list[FluidPod]:
        return [pod for pod in self.pods.values() if pod.node == node.model.name and not pod.deleting]

    def ready(self, pod: FluidPod) -> bool:
        return bool(self.slots.ready[pod.slot])

    def usable(self, node: NodeState) -> bool:
        return node.ready and not node.pressure

    def memory_of(self, pod: FluidPod) -> float:
        slots, slot = self.slots, pod.slot
        age = self.clock.time - slots.started[slot] if slots.listens[slot] else 0.0
        return float(slots.memory[slot] + slots.leak[slot] * age)

    # Time.

    def advance(self, until: float) -> None:
        """One step: of STEP seconds, or to the next change where nothing can happen before."""
        self._place_pending()
        self._route()
        begin = self.clock.time
        seconds = self._length(until)
        self._serve(seconds)
        while self.clock.step(begin + seconds):
            pass
        self._probe(seconds)
        self._use_memory()
        if self.clock.time - self._sampled >= SAMPLE - 1e-9 or self.clock.time >= self.instance.seconds:
            self._sampled = self.clock.time
            self._sample()

    def _length(self, until: float) -> float:
        """Every step ends at a multiple of STEP, so that what a policy waits for does not change the model."""
        now = self.clock.time
        limit = max(until - now, 1e-9)
        if not self._steady():
            return min(STEP, limit)
        next_change = min(self.instance.load.next_change(now), self.clock.next_due, until)
        if self.slots.leak.any():
            next_change = min(next_change, now + SAMPLE)
        if self._noisy:
            probed = self.slots.next_noise[self.slots.probed]
            next_change = min(next_change, float(probed.min()) if len(probed) else next_change)
        steps = max(1.0, math.ceil((next_change - now) / STEP - 1e-9))
        return min(steps * STEP, limit)

    @property
    def _noisy(self) -> bool:
        return self.instance.noise.share > 0

    def _steady(self) -> bool:
        """Nothing waits anywhere, every node has room for what its pods want, and every pod runs."""
        slots = self.slots
        if self.bursts or self._pending or slots.bug.any() or self._lost_nodes:
            return False
        here = slots.node >= 0
        if (
            not np.array_equal(slots.ready, here)
            or slots.queue.any()
            or slots.live_failed.any()
            or (slots.live_timeout < np.inf).any()
        ):
            return False
        wanted = slots.rate * slots.work * self._slower[slots.node] + slots.idle
        fits = np.all(np.bincount(slots.node[here], wanted[here], len(self._cores)) <= self._cores * FULL)
        leaks = bool(slots.leak.any()) and not self._use_room()
        return bool(fits) and not leaks and bool(np.all(wanted[here] <= slots.limit[here]))

    def _use_room(self) -> bool:
        """Whether all leaks together leave every node below TIGHT for the next sample."""
        return bool(np.all(self._memory_used(SAMPLE * 3) < TIGHT * self._memory))

    def _serve(self, seconds: float) -> None:
        slots = self.slots
        pods, outcome = slots.pods(), slots.outcome()
        serve(pods, self._slower, self._reachable_cores, seconds, outcome)
        answered = outcome.answered * (1.0 - slots.bug)
        self._answered += np.bincount(slots.app, answered, len(self._sent))
        self._count_sent(seconds)

    def _count_sent(self, seconds: float) -> None:
        """Requests are sent also where no pod is Ready. While a move has left a gap, they are lost to it."""
        rates = self._rates
        self._sent += rates * seconds
        for index in {self.apps[move.app].index for move in self._open}:
            if self._endpoints[index] == 0:
                self._lost[index] += rates[index] * seconds

    @property
    def _rates(self) -> Floats:
        base = np.array([0.0 if app.pinned else app.rate for app in self.instance.apps])
        rates: Floats = base * self._factors
        return rates

    def _route(self) -> None:
        """Requests of an app go to its Ready pods in equal parts."""
        now, slots = self.clock.time, self.slots
        if self.instance.load.next_change(self._factors_at) <= now or self._factors_at < 0:
            self._factors, self._factors_at = self.instance.load.at(now), now
            self._routes_stale = True
        if not self._routes_stale:
            return
        self._routes_stale = False
        routed = slots.routed & slots.listens
        self._endpoints = np.bincount(slots.app[slots.routed], minlength=len(self.apps)).astype(np.float64)
        rates = self._rates / np.maximum(self._endpoints, 1)
        slots.rate = np.where(routed, rates[slots.app], 0.0)
        for state in self.apps.values():
            if state.model.pinned:
                cores = state.model.rate * self._factors[state.index]
                for pod in self.active(state):
                    slots.idle[pod.slot] = cores

    def _place_pending(self) -> None:
        waiting = [pod for pod in self.pods.values() if pod.node is None and not pod.deleting] if self._pending else []
        self._pending = bool(waiting)
        if not waiting or not self._binds:
            return
        unusable = frozenset(name for name, node in self.nodes.items() if not self.usable(node))
        placed = ((pod.app, pod.node) for pod in self.pods.values() if pod.node is not None)
        self._landing.reset(placed, unusable)
        for pod in waiting:
            node = self._landing.place(pod.app)
            if node is not None:
                self.bind(pod.uid, node)

    # Containers and probes.

    def _boot(self, pod: FluidPod, life: int) -> None:
        if pod.deleting or pod.life != life or pod.uid not in self.pods:
            return
        slots, slot, now = self.slots, pod.slot, self.clock.time
        period = self.instance.scenario.probes.period
        slots.listens[slot] = True
        slots.queue[slot] = 0.0
        slots.started[slot] = max(now, 1e-9)
        slots.live_failed[slot] = slots.ready_failed[slot] = 0
        slots.wait[slot] = slots.refused[slot] = 0.0
        slots.probed[slot] = not pod.app.pinned
        slots.next_live[slot] = now + period * self._random.uniform(0.5, 1.0)
        slots.next_ready[slot] = now
        slots.next_noise[slot] = now + self._noise()
        pod.started = self.clock.now()
        if pod.app.pinned:
            slots.ready[slot] = True
        self.listener.pod_changed(pod)

    def _noise(self) -> float:
        share = self.instance.noise.share
        period = self.instance.scenario.probes.period
        return self._random.expovariate(share / period) if share > 0 else float("inf")

    def _probe(self, seconds: float) -> None:
        slots, now = self.slots, self.clock.time
        decay = 0.5 ** (seconds / (RECENT_PROBES * self.instance.scenario.probes.period))
        slots.recent_successes *= decay
        slots.recent_failures *= decay
        probing = slots.listens & slots.probed
        if self._lost_nodes:
            probing &= (self._reachable_cores > 0)[slots.node]
        for slot in np.flatnonzero(slots.live_timeout <= now).tolist():
            self._failed(self._by_slot[slot])
        for slot in np.flatnonzero(slots.ready_timeout <= now).tolist():
            self._failed_readiness(self._by_slot[slot])
        self._probe_liveness(np.flatnonzero(probing & slots.listens & (slots.next_live <= now)), now)
        self._probe_readiness(np.flatnonzero(probing & slots.listens & (slots.next_ready <= now)), now)

    def _probe_liveness(self, at: Ints, now: float) -> None:
        """A probe that gets no answer has failed when its timeout is over."""
        if not len(at):
            return
        slots, period = self.slots, self.instance.scenario.probes.period
        times = np.floor((now - slots.next_live[at]) / period) + 1
        slots.next_live[at] += times * period
        by_chance = slots.next_noise[at] <= now
        failed = self._fails(at, _LIVENESS) | by_chance
        for slot in at[by_chance].tolist():
            slots.next_noise[slot] = now + self._noise()
        slots.successes[at] += times - failed
        slots.recent_successes[at] += self._recent(times, (now - slots.next_live[at]) / period + 1) - failed
        slots.live_failed[at[~failed]] = 0
        slots.live_timeout[at[failed]] = now + PROBE_TIMEOUT

    @staticmethod
    def _recent(times: Floats, age: Floats) -> Floats:
        """What so many probes count for now, the last of which was `age` periods ago: however long the step was."""
        each = 0.5 ** (1 / RECENT_PROBES)
        recent: Floats = each**age * (1 - each**times) / (1 - each)
        return recent

    def _failed(self, pod: FluidPod) -> None:
        slots, slot = self.slots, pod.slot
        slots.live_timeout[slot] = np.inf
        slots.failures[slot] += 1
        slots.recent_failures[slot] += 1
        slots.live_failed[slot] += 1
        self.first_failure = min(self.first_failure, self.clock.time)
        self.listener.probe_failed(pod)
        if slots.live_failed[slot] >= self.instance.scenario.probes.failure_threshold:
            self._kill(pod)

    def _probe_readiness(self, at: Ints, now: float) -> None:
        if not len(at):
            return
        slots, period = self.slots, self.instance.scenario.probes.readiness_period
        slots.next_ready[at] += (np.floor((now - slots.next_ready[at]) / period) + 1) * period
        failed = self._fails(at, _READINESS)
        good = at[~failed]
        slots.ready_failed[good] = 0
        slots.ready_timeout[at[failed]] = now + PROBE_TIMEOUT
        for slot in good[~slots.ready[good]].tolist():
            self.set_ready(self._by_slot[slot], ready=True)

    def _failed_readiness(self, pod: FluidPod) -> None:
        slots, slot = self.slots, pod.slot
        slots.ready_timeout[slot] = np.inf
        slots.ready_failed[slot] += 1
        if slots.ready[slot] and slots.ready_failed[slot] >= self.instance.scenario.probes.failure_threshold:
            self.set_ready(pod, ready=False)

    def _fails(self, at: Ints, probe: int) -> Flags:
        """Chance depends on the seed, the time, the probe and the lineage alone: it is the same for every policy."""
        slots = self.slots
        burst = np.array([self.bursts.get(int(node), 0.0) for node in slots.node[at]]) if self.bursts else 0.0
        share = 1 - (1 - slots.refused[at]) * (1 - slots.bug[at]) * (1 - burst)
        failed: Flags = slots.wait[at] > PROBE_TIMEOUT
        if share.any():
            draws = np.random.default_rng((self.instance.seed, probe, round(self.clock.time / STEP)))
            failed |= draws.random(self.lineages + 1)[slots.lineage[at]] < share
        return failed

    def set_ready(self, pod: FluidPod, *, ready: bool) -> None:
        self.slots.ready[pod.slot] = ready
        self.slots.routed[pod.slot] = ready and not pod.deleting and not pod.app.pinned
        self._routes_stale = True
        if ready:
            pod.ready_since = self.clock.now()
            self._landed(pod)
        self.listener.pod_changed(pod)

    def _landed(self, pod: FluidPod) -> None:
        lineage = int(self.slots.lineage[pod.slot])
        for move in [each for each in self._open if each.lineage == lineage]:
            move.target, move.ended = pod.node or "", self.clock.time
            self._open.remove(move)

    def _kill(self, pod: FluidPod) -> None:
        """The kubelet kills the container; the first new one comes at once, later ones after a pause."""
        self.restarts += 1
        self.listener.container_killed(pod)
        self._stop(pod)
        pause = CALIBRATED.back_off[min(pod.restarts, len(CALIBRATED.back_off) - 1)] + CALIBRATED.stop_seconds
        pod.restarts += 1
        pod.terminated = self.clock.now()
        life = pod.life
        self.clock.after(pause, lambda: self._boot(pod, life))
        self.listener.pod_changed(pod)

    def _stop(self, pod: FluidPod) -> None:
        slots, slot = self.slots, pod.slot
        slots.listens[slot] = slots.ready[slot] = slots.routed[slot] = False
        slots.queue[slot] = 0.0
        slots.live_failed[slot] = 0
        slots.live_timeout[slot] = slots.ready_timeout[slot] = np.inf
        pod.life += 1
        self._routes_stale = True

    # Pods and their owners.

    def _start(self) -> None:
        lineage = 0
        for app in self.instance.apps:
            state = self.apps[app.name]
            for node in self.instance.placement[app.name]:
                pod = self.create(state)
                if not app.pinned:
                    self.slots.lineage[pod.slot] = lineage
                    lineage += 1
                pod.node = node
                self.slots.node[pod.slot] = self.nodes[node].index
                self._boot(pod, 0)
                self.set_ready(pod, ready=True)
                self.slots.next_live[pod.slot] = self._random.uniform(0, self.instance.scenario.probes.period)
                self.slots.next_ready[pod.slot] = self._random.uniform(
                    0, self.instance.scenario.probes.readiness_period
                )
        self._pending = False

    def create(self, state: AppState) -> FluidPod:
        app, slots = state.model, self.slots
        state.number += 1
        slot = slots.take()
        pod = FluidPod(f"{app.name}-{state.revision}-{state.number}", app, slot, self.clock.now(), state.revision)
        slots.weight[slot] = max(app.cpu_request, 0.002)
        slots.limit[slot] = app.limit
        slots.work[slot] = app.work * self._revision_factor(state)
        slots.workers[slot], slots.backlog[slot] = app.workers, app.backlog
        probes = self.instance.scenario.probes
        slots.idle[slot] = CALIBRATED.probe_work_ms / 1000 * (1 / probes.period + 1 / probes.readiness_period)
        slots.memory[slot], slots.leak[slot] = app.memory, app.leak
        slots.app[slot] = state.index
        slots.bug[slot] = self._bugs.get(app.name, 0.0)
        self.pods[pod.uid], self._by_slot[slot] = pod, pod
        self._pending = True
        if state.vacated:
            slots.lineage[slot] = state.vacated.popleft()
        elif self.clock.time > 0:
            pod.surge = self.clock.time
            self._sample()
        self.listener.pod_changed(pod)
        return pod

    @property
    def _bugs(self) -> dict[str, float]:
        now = self.clock.time
        return {each.app: each.failing for each in self.instance.broken if each.at <= now and now > 0}

    def _revision_factor(self, state: AppState) -> float:
        factors = [each.factor for each in self.instance.rollouts if each.app == state.model.name]
        return float(np.prod(factors[: state.revision - 1])) if state.revision > 1 else 1.0

    def _delete(self, pod: FluidPod) -> None:
        """No new requests; what is in it is served for a little longer."""
        slots, slot = self.slots, pod.slot
        pod.deleting = True
        slots.ready[slot] = slots.routed[slot] = slots.probed[slot] = False
        slots.live_timeout[slot] = slots.ready_timeout[slot] = np.inf
        self._routes_stale = True
        lineage = int(slots.lineage[slot])
        slots.lineage[slot] = -1
        if lineage >= 0:
            self.apps[pod.app.name].vacated.append(lineage)
        self.listener.pod_changed(pod)
        self.clock.after(CALIBRATED.stop_seconds, lambda: self._gone(pod))

    def _gone(self, pod: FluidPod) -> None:
        """A kubelet that cannot be reached ends nothing."""
        node = self.nodes.get(pod.node or "")
        if node is not None and not node.reachable:
            self.clock.after(STEP * 4, lambda: self._gone(pod))
            return
        slots, slot = self.slots, pod.slot
        if pod.moved:
            self._lost[slots.app[slot]] += float(slots.queue[slot, 1:].sum())
        self._stop(pod)
        self.pods.pop(pod.uid)
        self._by_slot.pop(slot)
        slots.give_back(slot)
        self.listener.pod_gone(pod)

    def _reconcile(self, state: AppState) -> None:
        """As a ReplicaSet: as many pods as wanted. A lineage without a pod goes to a pod without a lineage."""
        pods = self.active(state)
        for _ in range(state.replicas - len(pods)):
            self.create(state)
        too_many = len(pods) - state.replicas
        for pod in sorted(pods, key=self._deletion_rank)[: max(too_many, 0)]:
            self.retire(pod)

    def retire(self, pod: FluidPod) -> None:
        """End a pod that is one too many; another one takes its place."""
        self._delete(pod)
        self._hand_over(self.apps[pod.app.name], pod)

    def set_reachable(self, node: NodeState, *, reachable: bool) -> None:
        """A node that cannot be reached serves nothing and probes nothing."""
        node.reachable = reachable
        self._reachable_cores[node.index] = node.model.spec.cores if reachable else 0.0
        self._lost_nodes = sum(not each.reachable for each in self.nodes.values())
        if reachable:
            self.slots.queue[self.slots.node == node.index] = 0.0

    def _hand_over(self, state: AppState, old: FluidPod) -> None:
        """The pod that came by a surge takes the place of the one that ends: the pod has moved."""
        heirs = [pod for pod in self.active(state) if self.slots.lineage[pod.slot] < 0]
        if not heirs or not state.vacated:
            return
        new, lineage = heirs[0], state.vacated.pop()
        self.slots.lineage[new.slot] = lineage
        if new.surge is not None and new.revision == old.revision:
            moved = MoveRecord(lineage, state.model.name, old.node or "", new.surge)
            moved.target, moved.ended = new.node or "", self.clock.time
            old.moved = True
            self.moves.append(moved)
        new.surge = None

    def _deletion_rank(self, pod: FluidPod) -> tuple[bool, bool, int, float]:
        return (pod.node is not None, self.ready(pod), pod.cost, -pod.created)

    def _memory_used(self, ahead: float = 0.0) -> Floats:
        slots = self.slots
        here = slots.node >= 0
        age = np.where(slots.listens, self.clock.time + ahead - slots.started, 0.0)
        amounts = slots.memory + slots.leak * age
        used: Floats = np.bincount(slots.node[here], amounts[here], len(self._names)).astype(np.float64)
        return used

    def _use_memory(self) -> None:
        """Short of memory a node reports it and gets slower; out of memory its kubelet ends the pod that is furthest
        above its request."""
        if not self.slots.leak.any():
            return
        share = self._memory_used() / self._memory
        self._slower = 1 + (RECLAIM - 1) * np.clip((share - TIGHT) / (1 - TIGHT), 0.0, 1.0)
        for node in self.nodes.values():
            tight = bool(share[node.index] >= TIGHT)
            if tight != node.pressure:
                node.pressure = tight
                self.listener.node_changed(node)
            if share[node.index] >= 1.0:
                pods = [pod for pod in self.pods_on(node) if not pod.app.pinned]
                worst = max(pods, key=lambda pod: self.memory_of(pod) - pod.app.memory_request, default=None)
                if worst is not None:
                    self.evict(worst.uid, by_policy=False)

    # Samples.

    def _demand(self) -> Floats:
        slots = self.slots
        here = slots.listens
        wanted = slots.rate * slots.work * self._slower[slots.node] + slots.idle
        demand: Floats = np.bincount(slots.node[here], wanted[here], len(self._names)).astype(np.float64)
        return demand

    def _sample(self) -> None:
        """Every `SAMPLE` seconds, and when a move begins, so that what it is for is seen."""
        slots = self.slots
        node = np.full(self.lineages, -1, dtype=np.int64)
        unhappy = np.ones(self.lineages, dtype=np.bool_)
        known = np.flatnonzero(slots.lineage >= 0)
        failures, successes = slots.recent_failures[known], slots.recent_successes[known]
        happy = (failures <= (1 - UNHAPPY) * (failures + successes)) & (
            slots.listens[known] | (slots.started[known] == 0)
        )
        node[slots.lineage[known]] = slots.node[known]
        unhappy[slots.lineage[known]] = ~happy | (slots.node[known] < 0)
        self.samples.append(
            Sample(
                self.clock.time,
                node,
                unhappy,
                self._sent.copy(),
                self._answered.copy(),
                self._lost.copy(),
                self._demand(),
            )
        )
