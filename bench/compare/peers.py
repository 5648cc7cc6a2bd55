"""Who is compared: their programs, how these are built, and why one may be missing.

Without weft there is nothing to compare. Any other peer that cannot be installed or built is left out, and the report says
so.
"""

import os
import pathlib
import shutil
import subprocess
import sys
from dataclasses import dataclass

BENCH = pathlib.Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
BUILD = ROOT / "build"
RELEASE = BUILD / "release"
CARGO_TARGET = BUILD / "bench" / "tokio"


@dataclass(frozen=True)
class Peer:
    title: str
    program: pathlib.Path
    packages: str = ""  # its group in packages.txt
    needs: str = ""  # what was not there, if it could not be built
    command: str = ""  # what builds it, if not CMake
    bytes_each: int = 0  # what a goroutine that exists but does not run may take


PEERS = {
    "weft": Peer("weft", RELEASE / "bench" / "versus-weft", bytes_each=5_500),
    "go": Peer("Go", BUILD / "bench" / "versus-go", "versus-go", "Go (Debian: golang-go)", "go", bytes_each=3_500),
    "tokio": Peer("tokio", CARGO_TARGET / "release" / "versus-tokio", "versus-tokio",
                  "cargo and tokio's crates (Debian: cargo, librust-tokio-dev and others)", "cargo", bytes_each=1_000),
    "boost_fiber": Peer("Boost.Fiber", RELEASE / "bench" / "versus-boost-fiber", "bench",
                        "Boost.Fiber (Debian: libboost-fiber-dev)", bytes_each=11_000),
    "tbb": Peer("oneTBB", RELEASE / "bench" / "versus-tbb", "bench", "oneTBB (Debian: libtbb-dev)", bytes_each=300),
    "threads": Peer("threads", RELEASE / "bench" / "versus-threads", bytes_each=20_000),
    "epoll": Peer("bare epoll", RELEASE / "bench" / "versus-epoll"),
}
NET_LOAD = RELEASE / "bench" / "net-load"  # the load of the network workloads
os.environ["NET_LOAD"] = str(NET_LOAD)


def say(text: str) -> None:
    print(f"bench/run: {text}", file=sys.stderr, flush=True)


def install(peers: list[str], tools: set[str]) -> None:
    """What is missing and can be had by apt, one group at a time: what one of them lacks does not keep out the others."""
    groups = ["build", *dict.fromkeys(PEERS[p].packages for p in peers if PEERS[p].packages)]
    groups += [f"versus-{tool}" for tool in sorted(tools)]
    for group in groups:
        if subprocess.run([ROOT / "tools" / "ensure_packages", group], stdout=sys.stderr).returncode != 0:
            say(f"the packages of the group {group} could not be installed; going on with what is there")


def execute(command: list[str], cwd: pathlib.Path, **environment: str) -> str:
    """Runs a build step quietly. Empty if it went well, otherwise what it said."""
    done = subprocess.run(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=os.environ | environment)
    return "" if done.returncode == 0 else done.stdout or f"exit code {done.returncode}"


def cmake_target(target: str) -> str:
    return execute(["cmake", "--build", "--preset", "release", "--target", target], ROOT)


def build_weft() -> None:
    said = (execute(["cmake", "--preset", "release", "-DWEFT_BUILD_BENCH=ON"], ROOT)
            or cmake_target("versus-weft") or cmake_target("net-load"))
    if said:
        sys.exit(f"{said}\nbench/run: weft could not be built")


def build_peer(key: str) -> str:
    """Empty, or what went wrong."""
    peer = PEERS[key]
    if peer.command and not shutil.which(peer.command):
        return f"the command `{peer.command}` is not installed"
    match key:
        case "go":
            return execute(["go", "build", "-o", str(peer.program), "."], BENCH / "versus" / "go")
        case "tokio":
            return execute(["cargo", "build", "--release", "--offline"], BENCH / "versus" / "tokio",
                           CARGO_TARGET_DIR=str(CARGO_TARGET))
        case _:
            return cmake_target(peer.program.name)


def log_of(key: str) -> pathlib.Path:
    return BUILD / "bench" / f"{key}.log"


def build(peers: list[str]) -> None:
    """Builds what can be built. The program of a peer that could not is removed, so that no old one takes part."""
    say("building weft's program")
    build_weft()
    for key in peers:
        if key == "weft":
            continue
        say(f"building the program of {PEERS[key].title}")
        said = build_peer(key)
        log = log_of(key)
        log.unlink(missing_ok=True)
        if said:
            PEERS[key].program.unlink(missing_ok=True)
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(said)


def absent(peers: list[str]) -> list[str]:
    """One sentence for each peer that cannot take part."""
    sentences = []
    for key in peers:
        peer = PEERS[key]
        if peer.program.exists():
            continue
        log = log_of(key)
        why = f"; see {log.relative_to(ROOT)}" if log.exists() else ""
        sentences.append(f"{peer.title}: NOT MEASURED. It was not built"
                         + (f"; it needs {peer.needs}" if peer.needs else "") + f"{why}.")
    return sentences


def workloads_of(key: str) -> set[str]:
    return set(subprocess.check_output([PEERS[key].program, "--list"], text=True).split())
