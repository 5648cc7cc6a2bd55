//! Timers, sleepers and blocking calls.
//!
//! There is no `hog`: the runtime cannot take a worker away from a task that computes.

use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::time::{sleep, sleep_until, Sleep};

use crate::harness::*;

const MS: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_millis(10);
const HOUR: Duration = Duration::from_secs(3600);

pub fn workloads() -> Vec<Workload> {
    vec![
        Workload { name: "timer_chan", n: 5_000_000, warm_up: 500_000, run: |a| Box::pin(timer(a)) },
        Workload { name: "timers_pending", n: 1_000_000, warm_up: 100_000, run: |a| Box::pin(timers_pending(a)) },
        Workload { name: "sleepers", n: 100_000, warm_up: 0, run: |a| Box::pin(sleepers(a)) },
        Workload { name: "sleep1ms", n: 2_000, warm_up: 10, run: |a| Box::pin(sleep_lateness(a)) },
        Workload { name: "load70", n: 1_000, warm_up: 50, run: |a| Box::pin(load70(a)) },
        Workload { name: "blocking_naps", n: 200, warm_up: 20, run: |a| Box::pin(blocking_naps(a)) },
        Workload { name: "blocking_empty", n: 200_000, warm_up: 2_000, run: |a| Box::pin(blocking_empty(a)) },
    ]
}

/// A timer is registered when it is first polled. True if its time has not come.
async fn is_pending(timer: &mut Pin<&mut Sleep>) -> bool {
    tokio::select! {
        biased;
        _ = timer => false,
        _ = std::future::ready(()) => true,
    }
}

async fn timer(a: Args) -> Outcome {
    let mut stopped = 0;
    let w = Stopwatch::start();
    for _ in 0..a.n {
        let timer = sleep(HOUR);
        tokio::pin!(timer);
        stopped += u64::from(is_pending(&mut timer).await);
    }
    w.stop(a.n, stopped == a.n)
}

async fn timers_pending(a: Args) -> Outcome {
    let mut timers: Vec<Option<Pin<Box<Sleep>>>> = Vec::with_capacity(a.n as usize);
    let (mut state, mut stopped) = (1, 0);
    let w = Stopwatch::start();
    for _ in 0..a.n {
        let mut timer = Box::pin(sleep(HOUR + MS * (next_random(&mut state) % 3_600_000) as u32));
        stopped += u64::from(is_pending(&mut timer.as_mut()).await);
        timers.push(Some(timer));
    }
    for step in 0..2 {
        timers.iter_mut().skip(step).step_by(2).for_each(|timer| *timer = None);
    }
    w.stop(a.n, stopped == a.n)
}

async fn sleepers(a: Args) -> Outcome {
    let wg = WaitGroup::new(a.n as usize);
    let w = Stopwatch::start();
    for i in 0..a.n {
        let wg = wg.clone();
        tokio::spawn(async move {
            let mut state = i;
            for _ in 0..5 {
                sleep(MS * (1 + next_random(&mut state) % 100) as u32).await;
            }
            wg.done();
        });
    }
    wg.wait().await;
    w.stop(5 * a.n, true)
}

async fn sleep_lateness(a: Args) -> Outcome {
    let mut late = Vec::with_capacity(a.n as usize);
    let w = Stopwatch::start();
    for _ in 0..a.n {
        let began = Instant::now();
        sleep(MS).await;
        late.push(began.elapsed().saturating_sub(MS));
    }
    let mut out = w.stop(a.n, true);
    out.add_percentiles(&mut late, "");
    out
}

/// 14 clients a worker; each wakes every millisecond, whatever happened before, and spawns a task of 50 µs. One that falls
/// far behind, because the machine did something else, does not try to catch up.
async fn load70(a: Args) -> Outcome {
    let w = Stopwatch::start();
    let begin = Instant::now();
    let clients: Vec<_> = (0..14 * a.procs as u64).map(|c| tokio::spawn(client(c, begin, a.n))).collect();
    let (mut late, mut spawned) = (Vec::new(), Vec::new());
    for client in clients {
        let (my_late, tasks) = client.await.unwrap();
        late.extend(my_late);
        for task in tasks {
            spawned.push(task.await.unwrap());
        }
    }
    let mut out = w.stop(late.len() as u64, true);
    out.add_percentiles(&mut late, "late_");
    out.add_percentiles(&mut spawned, "spawn_");
    out.ok = spawned[0] > Duration::ZERO;
    out
}

async fn client(c: u64, begin: Instant, ticks: u64) -> (Vec<Duration>, Vec<tokio::task::JoinHandle<Duration>>) {
    let mut state = c;
    let mut due = begin + Duration::from_nanos(next_random(&mut state) % 1_000_000);
    let (mut late, mut tasks) = (Vec::with_capacity(ticks as usize), Vec::with_capacity(ticks as usize));
    for _ in 0..ticks {
        due += MS;
        sleep_until(due.into()).await;
        let now = Instant::now();
        late.push(now.saturating_duration_since(due));
        if now > due + PATIENCE {
            due = now;
        }
        tasks.push(tokio::spawn(async move {
            let late = now.elapsed();
            spin_for(Duration::from_micros(50));
            late
        }));
    }
    (late, tasks)
}

async fn blocking_naps(a: Args) -> Outcome {
    const NAPS: u64 = 20;
    let wg = WaitGroup::new(a.n as usize);
    let w = Stopwatch::start();
    for _ in 0..a.n {
        let wg = wg.clone();
        tokio::spawn(async move {
            for _ in 0..NAPS {
                tokio::task::spawn_blocking(|| std::thread::sleep(MS)).await.unwrap();
            }
            wg.done();
        });
    }
    wg.wait().await;
    w.stop(a.n * NAPS, true)
}

#[inline(never)]
fn nothing() {
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

async fn blocking_empty(a: Args) -> Outcome {
    let w = Stopwatch::start();
    for _ in 0..a.n {
        tokio::task::block_in_place(nothing);
    }
    w.stop(a.n, true)
}
