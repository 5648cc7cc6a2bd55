"""How the cost of an operation moves with the number of Ps and with the number of goroutines. For the plots only."""

import statistics

from compare.measure import Job

PROCS = (1, 2, 4, 8)
SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
# workload, n, title
BY_PROCS = [
    ("spawn", 500_000, "spawn, ns each"),
    ("yield", 2_000_000, "yield, ns"),
    ("pingpong", 300_000, "ping-pong, ns a round trip"),
    ("mpmc", 1_000_000, "4:4 on one channel, ns an item"),
    ("skynet", 100_000, "skynet, ns a leaf"),
    ("fib", 24, "fib fork-join, ns a fork"),
]
BY_SIZE = [
    ("spawn_n", "spawn N at a time, ns each"),
    ("yield_n", "yield among N, ns"),
]
# Fibers with stacks from malloc: ten seconds for a million.
LARGEST = {"boost_fiber": 100_000}
PEERS_SHOWN = ("weft", "go", "tokio", "boost_fiber")


def groups(able: dict[str, set[str]], quick: bool, procs: int) -> list[list[Job]]:
    shown = [p for p in PEERS_SHOWN if p in able]
    sizes = [n for n in SIZES if n <= 10_000 or not quick]
    by_procs = [[Job(p, w, w, n // 10 if quick and n > 100 else n, count) for p in shown if w in able[p]]
                for w, n, _ in BY_PROCS for count in PROCS]
    by_size = [[Job(p, w, w, n, procs) for p in shown if w in able[p] and n <= LARGEST.get(p, n)]
               for w, _ in BY_SIZE for n in sizes]
    return [group for group in by_procs + by_size if group]


def panels(results: list[dict], names: list[tuple[str, str]], along: str) -> list[dict]:
    """One panel a workload: for each peer the points (along, median ns an operation)."""
    found = []
    for workload, title in names:
        series: dict[str, dict[int, list[float]]] = {}
        for r in results:
            if r["workload"] == workload and "ns_per_op" in r and "error" not in r:
                series.setdefault(r["impl"], {}).setdefault(r[along], []).append(r["ns_per_op"])
        lines = {p: sorted((x, statistics.median(ys)) for x, ys in points.items()) for p, points in series.items()}
        found.append({"title": title, "lines": lines})
    return [panel for panel in found if panel["lines"]]


def summarize(results: list[dict]) -> dict[str, list[dict]]:
    return {"procs": panels(results, [(w, title) for w, _, title in BY_PROCS], "procs"),
            "size": panels(results, BY_SIZE, "n")}
