"""From single runs to the tables: medians, spread, ratios, who is behind whom, and what is required of weft."""

import math
import os
import pathlib
import platform
import re
import statistics

from compare.lines import LINES, Beside, Line
from compare.peers import PEERS

CPU_METRICS = {"ns_per_op": "cpu_ns_per_op", "wall_ms": "cpu_ms"}  # what --cpu-time puts in place of what
UNRESOLVED = 0.8  # a ratio above it, with spreads that overlap, does not say who is faster
STACKLESS = ("tokio", "tbb")


def number(x: float) -> str:
    return f"{x:.0f}" if abs(x) >= 100 else f"{x:.3g}"


class Cell:
    """The rounds of one figure of one peer."""

    def __init__(self, results: list[dict], peer: str, line: Line, procs: int, cpu_time: bool):
        own = [r for r in results if (r["impl"], r["workload"], r["procs"]) == (peer, line.workload, procs)]
        metric = CPU_METRICS.get(line.metric, line.metric) if cpu_time else line.metric
        self.values = [r[metric] for r in own if "error" not in r and metric in r]
        self.errors = [r["error"] for r in own if "error" in r]
        self.skipped = next((r["skipped"] for r in own if "skipped" in r), "")
        self.median = statistics.median(self.values) if self.values and not self.errors else None

    def text(self) -> str:
        if self.errors:
            return f"FAILED {len(self.errors)}x"
        if self.median is None:
            return self.skipped or "–"
        if len(self.values) == 1:
            return number(self.median)
        return f"{number(self.median)} ({number(min(self.values))}–{number(max(self.values))})"


def standing(line: Line, peer: str, weft: Cell, other: Cell) -> str | None:
    """Where weft is beside that peer."""
    if weft.median is None or other.median is None:
        return None
    if other.median >= weft.median:
        return "ahead"
    if line.stackless_leads and peer in STACKLESS:
        return "stackless"
    apart = len(weft.values) > 1 and min(weft.values) > max(other.values)
    return "behind" if apart or other.median < UNRESOLVED * weft.median else "level"


def row_of(line: Line, procs: int, cells: dict[str, Cell], go_version: str) -> dict:
    weft, go, epoll = (cells[p].median if p in cells else None for p in ("weft", "go", "epoll"))
    need = line.required.get(procs)
    beside = (epoll,) if isinstance(need, Beside) else ()
    others = [p for p in cells if p != "weft" and "weft" in cells]
    return {
        "title": line.title, "workload": line.workload, "metric": line.metric, "procs": procs,
        "text": {p: cell.text() for p, cell in cells.items()},
        "median": {p: cell.median for p, cell in cells.items()},
        "values": {p: cell.values for p, cell in cells.items()},
        "over": {p: cells[p].median / weft if weft and cells[p].median is not None else None for p in others},
        "standing": {p: standing(line, p, cells["weft"], cells[p]) for p in others},
        "required": need.text(go_version) if need else None,
        "holds": need.holds(weft, go, go_version, *beside) if need and weft is not None else None,
    }


def summarize(results: list[dict], peers: list[str], jobs: list[tuple[str, int]], go_version: str,
              cpu_time: bool) -> list[dict]:
    rows = []
    for line in LINES:
        for workload, procs in jobs:
            if workload == line.workload:
                cells = {p: Cell(results, p, line, procs, cpu_time) for p in peers}
                rows.append(row_of(line, procs, cells, go_version))
    return [row for row in rows if any(text != "–" for text in row["text"].values())]


def markdown(head: list[str], body: list[list[str]]) -> str:
    """A table, padded so that it can be read in a terminal too."""
    widths = [max(len(r[c]) for r in [head, *body]) for c in range(len(head))]
    rule = ["-" * w for w in widths]
    return "\n".join("| " + " | ".join(f"{x:<{w}}" for x, w in zip(r, widths)) + " |" for r in [head, rule, *body])


def lead_in(rows: list[dict]) -> list[list[str]]:
    """Title and number of Ps of each row; a title that repeats is left out."""
    titles = [""] + [row["title"] for row in rows]
    return [[row["title"] if row["title"] != before else "", str(row["procs"])] for row, before in zip(rows, titles)]


def ratio(row: dict, peer: str) -> str:
    over = row["over"].get(peer)
    if over is None:
        return "–"
    return f"{over:.2f}x" + {"behind": " BEHIND", "level": " ~", "stackless": " *"}.get(row["standing"][peer], "")


def ratio_table(rows: list[dict], peers: list[str]) -> str:
    others = [p for p in peers if p != "weft"]
    head = ["workload", "P", *(f"{PEERS[p].title} / weft" for p in others), "required", "holds"]
    holds = {True: "yes", False: "NO", None: "–"}
    return markdown(head, [start + [ratio(row, p) for p in others] + [row["required"] or "–", holds[row["holds"]]]
                           for start, row in zip(lead_in(rows), rows)])


def figure_table(rows: list[dict], peers: list[str]) -> str:
    head = ["workload", "P", *(PEERS[p].title for p in peers)]
    return markdown(head, [start + [row["text"][p] for p in peers] for start, row in zip(lead_in(rows), rows)])


def geometric_mean(ratios: list[float]) -> float:
    return math.exp(statistics.fmean(math.log(r) for r in ratios))


def verdict(rows: list[dict], peers: list[str]) -> list[str]:
    judged = [row for row in rows if row["holds"] is not None]
    text = [f"{sum(row['holds'] for row in judged)} of {len(judged)} requirements hold."] if judged else []
    for p in peers:
        ratios = [row["over"][p] for row in rows if row["over"].get(p)]
        if not ratios:
            continue
        behind = [f"{row['title']} (P = {row['procs']})" for row in rows if row["standing"][p] == "behind"]
        text.append(f"Geometric mean of {PEERS[p].title} / weft over {len(ratios)} lines: {geometric_mean(ratios):.2f}x. "
                    + (f"Behind in {len(behind)}: {'; '.join(behind)}." if behind else "Behind in none."))
    return text


def machine() -> str:
    model = re.search(r"model name\s*:\s*(.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return (f"{os.cpu_count()} cores ({model[1] if model else platform.machine()}), "
            f"Linux {platform.release().split('-')[0]}")


def versions(results: list[dict]) -> dict[str, str]:
    return {r["impl"]: r["version"].replace("_", ".") for r in results if "version" in r}


LEGEND = ("A ratio is the peer's figure over weft's: above 1, weft is better. `BEHIND`: weft is not; `~`: it is not, but "
          "the run does not resolve the difference; `*`: tasks without a stack lead here by their nature.")


def tables(data: dict) -> str:
    """The report without its head line."""
    rows, peers = data["lines"], data["peers"]
    parts = []
    if any(row["over"] for row in rows):
        parts += ["## Ratios", LEGEND, ratio_table(rows, peers)]
    parts += ["## Figures", figure_table(rows, peers)]
    parts.append("\n".join(f"- {f}" for f in data["facts"] + verdict(rows, peers)))
    if data["failures"]:
        parts.append("Failed:\n\n" + "\n".join(f"- {f}" for f in data["failures"]))
    return "\n\n".join(parts)
