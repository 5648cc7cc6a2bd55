"""The lines of the comparison: which figure of which workload, on how many Ps, and what weft must reach.

A required ratio is Go's figure over weft's, both measured in the same run. It is what a table of reference figures,
measured on a quiet machine of two cores, implies: Go's column over weft's, or the number that the project has set
itself where that is another one. Two figures of Go 1.19 differ from those of a current Go by more than noise; a Go that
old is held against its own figure.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class AtLeast:
    """weft must be this many times better than Go (less is better in every line)."""

    ratio: float
    ratio_old_go: float | None = None

    def for_go(self, version: str) -> float:
        return self.ratio_old_go if self.ratio_old_go and is_old_go(version) else self.ratio

    def text(self, go_version: str) -> str:
        return f"{self.for_go(go_version):.3g}x Go"

    def holds(self, weft: float, go: float | None, go_version: str) -> bool | None:
        return None if go is None else go / weft >= self.for_go(go_version)


@dataclass(frozen=True)
class AtMost:
    """weft's own figure must not be more than this, whatever Go's is."""

    limit: float

    def text(self, go_version: str) -> str:
        return f"at most {self.limit:g}"

    def holds(self, weft: float, go: float | None, go_version: str) -> bool | None:
        return weft <= self.limit


@dataclass(frozen=True)
class Beside:
    """weft must be this many times better than Go, and than a bare epoll server."""

    go: float
    epoll: float | None = None

    def text(self, go_version: str) -> str:
        return f"{self.go:.3g}x Go" + (f", {self.epoll:.3g}x epoll" if self.epoll else "")

    def holds(self, weft: float, go: float | None, go_version: str, epoll: float | None = None) -> bool | None:
        if go is None or (self.epoll and epoll is None):
            return None
        return go / weft >= self.go and (not self.epoll or epoll / weft >= self.epoll)


def is_old_go(version: str) -> bool:
    minor = version.removeprefix("go1.").split(".")[0]
    return minor.isdigit() and int(minor) < 23


def figures(go: float, weft: float, old_go: float | None = None) -> AtLeast:
    return AtLeast(go / weft, old_go / weft if old_go else None)


@dataclass(frozen=True)
class Workload:
    name: str
    n: int
    quick_n: int
    procs: str = "each"  # of those asked for: "each", the "least", the "most", or each that is "several"
    fewer: dict[str, int] = field(default_factory=dict)  # who does a part of it only: n is divided by so much
    program: str = ""  # what the programs call it, if not by its name
    tool: str = ""  # a command that it needs

    def size(self, peer: str, quick: bool) -> int:
        return (self.quick_n if quick else self.n) // self.fewer.get(peer, 1)

    def on(self, asked: list[int]) -> list[int]:
        match self.procs:
            case "least":
                return [min(asked)]
            case "most":
                return [max(asked)]
            case "several":
                return [p for p in asked if p > 1]
            case _:
                return asked


@dataclass(frozen=True)
class Line:
    title: str
    workload: str
    metric: str = "ns_per_op"
    required: dict[int, AtLeast | AtMost | Beside] = field(default_factory=dict)
    stackless_leads: bool = False  # tasks without a stack are in front here, and may be


def threads(divisor: int) -> dict[str, int]:
    return {"threads": divisor}


WORKLOADS = {
    w.name: w
    for w in [
        Workload("yield", 4_000_000, 400_000, fewer=threads(10)),
        Workload("spawn", 1_000_000, 200_000, fewer=threads(100)),
        Workload("spawn_join", 1_000_000, 200_000, fewer=threads(100)),
        Workload("pingpong", 1_000_000, 200_000, fewer=threads(50)),
        Workload("buffered", 10_000_000, 1_000_000, fewer=threads(10)),
        Workload("mpmc", 4_000_000, 400_000, fewer=threads(10)),
        Workload("select2", 2_000_000, 200_000),
        Workload("select2_buf", 4_000_000, 400_000),
        Workload("select16", 1_000_000, 100_000),
        Workload("ring", 3_000_000, 300_000, fewer=threads(100)),
        Workload("pipeline", 30_000, 3_000, fewer=threads(100)),
        Workload("sieve", 2_000, 500),
        Workload("skynet", 1_000_000, 100_000),
        Workload("skynet_join", 1_000_000, 100_000),
        Workload("fib", 27, 22),
        Workload("mutex", 50_000_000, 5_000_000, procs="least"),
        Workload("mutex8", 10_000_000, 1_000_000),
        Workload("read_mostly", 10_000_000, 1_000_000),
        Workload("parked_1e5", 100_000, 20_000, procs="most", fewer=threads(50), program="parked"),
        Workload("parked", 1_000_000, 100_000, procs="most", fewer=threads(500)),
        Workload("parked_cost", 1_000_000, 100_000),
        Workload("conserve", 10_000, 2_000),
        Workload("steal_burst", 1_000, 200, procs="several"),
        Workload("spawn_to_run", 5_000, 1_000, procs="several"),
        Workload("load70", 1_000, 200),
        Workload("idle", 10, 2, procs="most"),
        Workload("timer_chan", 5_000_000, 500_000, procs="least"),
        Workload("timer_func", 5_000_000, 500_000, procs="least"),
        Workload("timers_pending", 1_000_000, 100_000, procs="least"),
        Workload("sleepers", 100_000, 20_000, procs="most"),
        Workload("sleep1ms", 2_000, 500, procs="most"),
        Workload("hog", 500, 100, procs="least"),
        Workload("blocking_naps", 200, 50, procs="most"),
        Workload("blocking_empty", 20_000_000, 1_000_000, procs="least", fewer={"tokio": 10}),
        Workload("crowd", 200, 40),
        Workload("echo_64", 300_000, 60_000),
        Workload("echo_1000", 300_000, 60_000),
        Workload("http_hello", 300_000, 60_000),
        Workload("http_wrk", 3, 1, tool="wrk"),
    ]
}

LINES = [
    Line("yield, ns a switch", "yield", required={1: AtLeast(7), 2: AtLeast(7)}),
    Line("spawn, ns each", "spawn", required={1: AtLeast(24), 2: AtLeast(3)}),
    Line("spawn one and join, ns", "spawn_join", required={1: AtLeast(4.5), 2: AtLeast(4.5)}),
    Line("unbuffered ping-pong, ns a round trip", "pingpong",
         required={1: figures(349, 60, old_go=231), 2: figures(311, 80)}),
    Line("buffered (128) 1:1, ns an item", "buffered", required={1: figures(32, 10), 2: figures(43, 12)}),
    Line("4:4 on one channel (64), ns an item", "mpmc", required={2: figures(47, 14)}),
    Line("select over two, unbuffered, ns an item", "select2", required={1: figures(272, 70), 2: figures(194, 80)}),
    Line("select over two, capacity 128, ns an item", "select2_buf", required={1: figures(103, 35)}),
    Line("select over 16, unbuffered, ns an item", "select16"),
    Line("ring of 503, ns a hop", "ring", required={1: figures(147, 32), 2: figures(144, 45)}),
    Line("pipeline of 100 stages, ns a hop", "pipeline"),
    Line("prime sieve, ms", "sieve", "wall_ms"),
    Line("skynet, ms", "skynet", "wall_ms", {1: figures(1175, 130), 2: figures(1005, 80, old_go=887)}),
    Line("skynet without channels, ms", "skynet_join", "wall_ms"),
    Line("fib fork-join, ms", "fib", "wall_ms", {1: figures(282, 28), 2: figures(237, 18)}),
    Line("mutex alone, ns", "mutex", required={1: figures(5, 5)}),
    Line("mutex, 8 contending, ns an op", "mutex8", required={2: figures(16, 9)}),
    Line("shared mutex, 8 read, one lock in 100 writes, ns", "read_mostly"),
    Line("parked among 10^5, resident bytes", "parked_1e5", "bytes_each", stackless_leads=True),
    Line("parked among 10^6, resident bytes", "parked", "bytes_each", {2: figures(2750, 4700)}, stackless_leads=True),
    Line("create 10^6 parked, ms", "parked", "create_ms", {2: figures(2568, 1700)}),
    Line("wake all 10^6, ms", "parked", "wake_ms", {2: figures(474, 230)}),
    # "Does not grow" within what a run resolves: a quarter.
    Line("yield beside parked over alone", "parked_cost", "yield_growth", {1: AtMost(1.25), 2: AtMost(1.25)}),
    Line("spawn beside parked over alone", "parked_cost", "spawn_growth", {1: AtMost(1.25), 2: AtMost(1.25)}),
    Line("tasks of 20 µs, wall over ideal", "conserve", "over_ideal", {2: AtMost(1.05)}),
    Line("bursts of 200 tasks of 2 µs, wall over ideal", "steal_burst", "over_ideal"),
    Line("spawn to run on a sleeping P, p50 µs", "spawn_to_run", "p50_us"),
    Line("spawn to run on a sleeping P, p99 µs", "spawn_to_run", "p99_us"),
    Line("spawn to run on a sleeping P, p99.9 µs", "spawn_to_run", "p999_us"),
    Line("spawn to run at 70% load, p50 µs", "load70", "spawn_p50_us", {2: figures(0.7, 0.6)}),
    Line("spawn to run at 70% load, p99 µs", "load70", "spawn_p99_us", {2: figures(246, 3)}),
    Line("spawn to run at 70% load, p99.9 µs", "load70", "spawn_p999_us", {2: figures(1843, 10)}),
    Line("sleep of 1 ms at 70% load, late by p50 µs", "load70", "late_p50_us", {2: figures(101, 60)}),
    Line("sleep of 1 ms at 70% load, late by p99 µs", "load70", "late_p99_us", {2: figures(3122, 1000)}),
    Line("idle runtime, % of a core", "idle", "cpu_percent", {2: AtMost(0.1)}),
    Line("timer with a channel, create and stop, ns", "timer_chan", required={1: figures(208, 60)}),
    Line("timer with a function, create and stop, ns", "timer_func", required={1: figures(169, 50)}),
    Line("10^6 timers at once, create and stop, ns each", "timers_pending"),
    Line("10^5 sleepers, 5 naps each, ms", "sleepers", "wall_ms", {2: figures(1028, 600)}),
    Line("10^5 sleepers, 5 naps each, CPU ms", "sleepers", "cpu_ms", {2: figures(1264, 500)}),
    Line("lateness of a sleep of 1 ms, p50 µs", "sleep1ms", "p50_us"),
    Line("lateness of a sleep of 1 ms, p99 µs", "sleep1ms", "p99_us", {2: AtMost(150)}),
    Line("sleep of 1 ms beside a CPU hog, late by p50 µs", "hog", "p50_us", {1: AtMost(3000)}),
    Line("sleep of 1 ms beside a CPU hog, late by p99 µs", "hog", "p99_us", {1: AtMost(6000)}),
    Line("200 goroutines, 20 blocking naps of 1 ms, ms", "blocking_naps", "wall_ms", {2: AtLeast(2.5)}),
    Line("an empty blocking call (Go: cgo), ns", "blocking_empty", required={1: AtMost(15)}),
    Line("CPU-bound tasks of 30 ms, wall over ideal", "crowd", "over_ideal", {1: AtMost(1.1), 2: AtMost(1.1)}),
    Line("TCP echo, 64 connections, ns a request", "echo_64", required={2: Beside(1.4, 0.95)}),
    Line("TCP echo, 64 connections, CPU ns a request", "echo_64", "cpu_ns_per_op", {1: Beside(1), 2: Beside(1)}),
    Line("TCP echo, 1000 connections, ns a request", "echo_1000", required={2: Beside(1.4, 0.95)}),
    Line("TCP echo, 1000 connections, CPU ns a request", "echo_1000", "cpu_ns_per_op", {1: Beside(1), 2: Beside(1)}),
    Line("HTTP hello, 64 connections, ns a request", "http_hello", required={2: Beside(1.4, 0.95)}),
    Line("HTTP hello, 64 connections, CPU ns a request", "http_hello", "cpu_ns_per_op", {1: Beside(1), 2: Beside(1)}),
    Line("HTTP hello under wrk, ns a request", "http_wrk", required={2: figures(85, 47)}),
    Line("HTTP hello under wrk, CPU ns a request", "http_wrk", "cpu_ns_per_op", {2: figures(21.4, 10)}),
]
