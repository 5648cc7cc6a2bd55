"""Runs the programs, interleaved, and keeps what each of them said."""

import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import time
from dataclasses import dataclass

from compare.lines import Workload
from compare.peers import PEERS, say

CROWDED = ("parked", "parked_cost", "skynet", "skynet_join", "spawn", "spawn_n", "yield_n")  # all n exist at once


@dataclass(frozen=True)
class Job:
    """One process to run."""

    peer: str
    workload: str  # its name in the report
    program: str  # its name on the command line
    n: int
    procs: int

    def key(self) -> dict:
        return {"impl": self.peer, "workload": self.workload, "n": self.n, "procs": self.procs}


class Progress:
    """A bar on a terminal, one line a round elsewhere."""

    def __init__(self, total: int):
        self.total, self.done, self.start, self.live = total, 0, time.monotonic(), sys.stderr.isatty()

    def show(self, what: str) -> None:
        if not self.live:
            return
        share = self.done / self.total
        left = (time.monotonic() - self.start) * (1 - share) / share if share else 0
        eta = f"{int(left) // 60}:{int(left) % 60:02} left" if share else ""
        bar = "#" * int(share * 30)
        sys.stderr.write(f"\r\033[K[{bar:<30}] {self.done}/{self.total} {eta:>10}  {what}")
        sys.stderr.flush()

    def round(self, text: str) -> None:
        if not self.live:
            say(text)

    def end(self) -> None:
        if self.live:
            sys.stderr.write("\r\033[K")


class Noise:
    """How much of the machine others used while we measured."""

    def __init__(self) -> None:
        self.before = self.read()

    @staticmethod
    def read() -> tuple[float, float, float]:
        fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
        idle, stolen = fields[3] + fields[4], fields[7]
        own = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        ticks = os.sysconf("SC_CLK_TCK")
        return sum(fields) / ticks, (sum(fields) - idle - stolen) / ticks, sum(u.ru_utime + u.ru_stime for u in own)

    def others(self) -> float:
        total, busy, own = (now - then for now, then in zip(self.read(), self.before))
        return max(0.0, busy - own) / total if total else 0.0


def available_bytes() -> int:
    text = pathlib.Path("/proc/meminfo").read_text()
    return 1024 * int(re.search(r"MemAvailable:\s+(\d+)", text)[1])


def run_once(job: Job, timeout: float) -> dict:
    """One process, one JSON line. What went wrong, if anything did, is under "error"."""
    if job.program in CROWDED and job.n * PEERS[job.peer].bytes_each > available_bytes():
        return job.key() | {"skipped": "not enough memory"}
    command = [PEERS[job.peer].program, job.program, str(job.n), "--procs", str(job.procs)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired as e:
        how = "gave its result but did not end" if e.stdout else "no result"
        return job.key() | {"error": f"{how} within {timeout:g} s"}
    try:
        result = json.loads(done.stdout)
    except ValueError:
        said = (done.stderr or done.stdout).strip().split("\n")[0]
        return job.key() | {"error": f"exit code {done.returncode}: {said}"}
    result["cpu_ns_per_op"] = result["cpu_ms"] * 1e6 / result["ops"]
    if done.returncode != 0 or not result["ok"]:
        result["error"] = "wrong result"
    return result | job.key()


def jobs_of(workload: Workload, procs: int, able: dict[str, set[str]], quick: bool) -> list[Job]:
    program = workload.program or workload.name
    return [Job(peer, workload.name, program, workload.size(peer, quick), procs) for peer in able if program in able[peer]]


def run_all(groups: list[list[Job]], rounds: int, timeout: float, title: str = "") -> list[dict]:
    """Interleaved: in each round every group, in each group every job, each time in another order."""
    plan = []
    for r in range(rounds):
        for group in groups:
            first = r % len(group)
            plan += [(r, job) for job in group[first:] + group[:first]]
    progress, results, last_round = Progress(len(plan)), [], -1
    for r, job in plan:
        if r != last_round:
            progress.round(f"{title}round {r + 1} of {rounds}")
            last_round = r
        progress.show(f"{job.workload} {job.n:g}, P = {job.procs}, {PEERS[job.peer].title}")
        results.append(run_once(job, timeout) | {"round": r})
        progress.done += 1
    progress.end()
    return results
