//! Spawning, switching and waiting.
//!
//! There is no `spawn_to_run`: the task that a busy worker has spawned last is in a slot that others do not steal from.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::harness::*;

const TASK_LENGTH: Duration = Duration::from_micros(20);
const QUIET_TIME: Duration = Duration::from_micros(300);
const BURST_TASKS: u64 = 200;
const BURST_TASK_LENGTH: Duration = Duration::from_micros(2);

pub fn workloads() -> Vec<Workload> {
    vec![
        Workload { name: "yield", n: 4_000_000, warm_up: 400_000, run: |a| Box::pin(yields(a, 8, a.n / 8)) },
        Workload {
            name: "yield_n",
            n: 1_000,
            warm_up: 0,
            run: |a| Box::pin(yields(a, a.n, (2_000_000 / a.n).max(1))),
        },
        Workload { name: "spawn", n: 1_000_000, warm_up: 100_000, run: |a| Box::pin(spawn(a)) },
        Workload { name: "spawn_n", n: 1_000, warm_up: 0, run: |a| Box::pin(spawn_n(a)) },
        Workload { name: "spawn_join", n: 1_000_000, warm_up: 100_000, run: |a| Box::pin(spawn_join(a)) },
        Workload { name: "conserve", n: 10_000, warm_up: 1_000, run: |a| Box::pin(conserve(a)) },
        Workload { name: "steal_burst", n: 1_000, warm_up: 50, run: |a| Box::pin(steal_burst(a)) },
        Workload { name: "parked", n: 1_000_000, warm_up: 0, run: |a| Box::pin(parked(a)) },
    ]
}

async fn yields(_: Args, tasks: u64, each: u64) -> Outcome {
    let total = Arc::new(AtomicU64::new(0));
    let wg = WaitGroup::new(tasks as usize);
    let w = Stopwatch::start();
    for _ in 0..tasks {
        let (total, wg) = (total.clone(), wg.clone());
        tokio::spawn(async move {
            for _ in 0..each {
                yield_now().await;
            }
            total.fetch_add(each, Ordering::Relaxed);
            wg.done();
        });
    }
    wg.wait().await;
    w.stop(each * tasks, total.load(Ordering::Relaxed) == each * tasks)
}

async fn spawn(a: Args) -> Outcome {
    let wg = WaitGroup::new(a.n as usize);
    let w = Stopwatch::start();
    for _ in 0..a.n {
        let wg = wg.clone();
        tokio::spawn(async move { wg.done() });
    }
    wg.wait().await;
    w.stop(a.n, true)
}

/// The same number of tasks, n at a time.
async fn spawn_n(a: Args) -> Outcome {
    let rounds = (1_000_000 / a.n).max(1);
    let w = Stopwatch::start();
    for _ in 0..rounds {
        spawn(a).await;
    }
    w.stop(rounds * a.n, true)
}

async fn spawn_join(a: Args) -> Outcome {
    let mut sum = 0;
    let w = Stopwatch::start();
    for i in 0..a.n {
        sum += tokio::spawn(async move { i }).await.unwrap();
    }
    w.stop(a.n, sum == sum_below(a.n))
}

async fn spinners(count: u64, length: Duration) {
    let wg = WaitGroup::new(count as usize);
    for _ in 0..count {
        let wg = wg.clone();
        tokio::spawn(async move {
            spin_for(length);
            wg.done();
        });
    }
    wg.wait().await;
}

fn over_ideal(wall: Duration, tasks: u64, length: Duration, procs: usize) -> f64 {
    wall.as_secs_f64() * procs as f64 / (tasks as f64 * length.as_secs_f64())
}

async fn conserve(a: Args) -> Outcome {
    let w = Stopwatch::start();
    spinners(a.n, TASK_LENGTH).await;
    let mut out = w.stop(a.n, true);
    out.add("over_ideal", over_ideal(out.wall, a.n, TASK_LENGTH, a.procs));
    out
}

/// The quiet before each burst is not measured.
async fn steal_burst(a: Args) -> Outcome {
    let mut bursts = Duration::ZERO;
    let w = Stopwatch::start();
    for _ in 0..a.n {
        spin_for(QUIET_TIME);
        let start = Instant::now();
        spinners(BURST_TASKS, BURST_TASK_LENGTH).await;
        bursts += start.elapsed();
    }
    let mut out = w.stop(a.n * BURST_TASKS, true);
    out.wall = bursts;
    out.add("over_ideal", over_ideal(bursts, out.ops, BURST_TASK_LENGTH, a.procs));
    out
}

async fn parked(a: Args) -> Outcome {
    let before = proc_status("VmRSS");
    let woken = Arc::new(AtomicU64::new(0));
    let gate = Arc::new(Notify::new());
    let (ready, ended) = (WaitGroup::new(a.n as usize), WaitGroup::new(a.n as usize));
    let w = Stopwatch::start();
    for _ in 0..a.n {
        let (woken, gate, ready, ended) = (woken.clone(), gate.clone(), ready.clone(), ended.clone());
        tokio::spawn(async move {
            let opened = gate.notified(); // from here on it is among those that notify_waiters() wakes
            ready.done();
            opened.await;
            woken.fetch_add(1, Ordering::Relaxed);
            ended.done();
        });
    }
    ready.wait().await;
    let mut out = w.stop(a.n, true);
    out.add("create_ms", milliseconds(out.wall));
    out.add("bytes_each", (proc_status("VmRSS") - before) / a.n as f64);
    let start = Instant::now();
    gate.notify_waiters();
    ended.wait().await;
    out.add("wake_ms", milliseconds(start.elapsed()));
    out.ok = woken.load(Ordering::Relaxed) == a.n;
    out
}
