"""Where results go: the report, the plots beside it, and the tables in README.md and docs/performance.md."""

import pathlib

from compare import plots, report
from compare.peers import PEERS, ROOT

README = ROOT / "README.md"
PERFORMANCE = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- bench/run writes what follows -->", "<!-- until here -->"
# What the README shows, each on the greatest number of Ps that it was measured with.
SHORT = [
    ("yield", "ns_per_op"), ("spawn", "ns_per_op"), ("spawn_join", "ns_per_op"), ("pingpong", "ns_per_op"),
    ("buffered", "ns_per_op"), ("select2", "ns_per_op"), ("skynet", "wall_ms"), ("fib", "wall_ms"), ("mutex8", "ns_per_op"),
    ("parked", "bytes_each"), ("sleepers", "wall_ms"), ("load70", "late_p99_us"), ("hog", "p99_us"),
    ("echo_64", "ns_per_op"), ("http_wrk", "ns_per_op"),
]
SHORT_PEERS = ("weft", "go", "tokio", "boost_fiber")


def report_text(data: dict, plotted: list[str]) -> str:
    images = "\n\n".join(f"![{name.removesuffix('.svg')}]({name})" for name in plotted)
    return ("# weft beside Go and others\n\nWritten by `bench/run`; the workloads are described in `bench/README.md`, the "
            "method in `docs/performance.md`.\n\n" + report.tables(data) + (f"\n\n{images}" if images else "") + "\n")


def put_between_markers(path: pathlib.Path, text: str) -> None:
    """Leaves a file alone that has no such place."""
    if not path.exists():
        return
    before, begin, rest = path.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if begin and end:
        path.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def short_table(data: dict) -> str:
    peers = [p for p in SHORT_PEERS if p in data["peers"]]
    body = []
    for wanted in SHORT:
        rows = [row for row in data["lines"] if (row["workload"], row["metric"]) == wanted]
        if not rows:
            continue
        row = max(rows, key=lambda r: r["procs"])
        over = row["over"].get("go")
        figures = [report.number(row["median"][p]) if row["median"].get(p) is not None else "–" for p in peers]
        body.append([row["title"], *figures, f"{over:.1f}x" if over else "–"])
    return report.markdown(["", *(PEERS[p].title for p in peers), "Go / weft"], body)


def readme_text(data: dict) -> str:
    ratios = [row["over"]["go"] for row in data["lines"] if row["over"].get("go")]
    mean = f" Geometric mean of Go / weft over {len(ratios)} lines: {report.geometric_mean(ratios):.1f}x." if ratios else ""
    return f"{short_table(data)}\n\n{data['facts'][0]} Less is better.{mean}"


def performance_text(data: dict, plotted: list[str]) -> str:
    images = [f"![{name.removesuffix('.svg')}](../bench/results/{name})" for name in plotted]
    facts = "\n".join(f"- {f}" for f in data["facts"] + report.verdict(data["lines"], data["peers"]))
    return "\n\n".join([report.ratio_table(data["lines"], data["peers"]), facts, *images])


def publish(data: dict, out: pathlib.Path, everywhere: bool) -> None:
    """Writes the report and the plots beside it; those of a full run also go to where users look."""
    plotted = plots.draw(data, out.parent)
    out.write_text(report_text(data, plotted))
    if everywhere:
        put_between_markers(README, readme_text(data))
        put_between_markers(PERFORMANCE, performance_text(data, plotted))
