//! Mutual exclusion, with the locks that a task may hold while it waits.

use std::sync::Arc;

use tokio::sync::{Mutex, RwLock};

use crate::harness::*;

const CONTENDERS: u64 = 8;
const WRITES_ONE_IN: u64 = 100;

pub fn workloads() -> Vec<Workload> {
    vec![
        Workload { name: "mutex", n: 50_000_000, warm_up: 5_000_000, run: |a| Box::pin(mutex_alone(a)) },
        Workload { name: "mutex8", n: 10_000_000, warm_up: 1_000_000, run: |a| Box::pin(mutex_contended(a)) },
        Workload { name: "read_mostly", n: 10_000_000, warm_up: 1_000_000, run: |a| Box::pin(read_mostly(a)) },
    ]
}

async fn mutex_alone(a: Args) -> Outcome {
    let count = Mutex::new(0);
    let w = Stopwatch::start();
    for _ in 0..a.n {
        *count.lock().await += 1;
    }
    let ok = *count.lock().await == a.n;
    w.stop(a.n, ok)
}

async fn mutex_contended(a: Args) -> Outcome {
    let each = a.n / CONTENDERS;
    let count = Arc::new(Mutex::new(0));
    let wg = WaitGroup::new(CONTENDERS as usize);
    let w = Stopwatch::start();
    for _ in 0..CONTENDERS {
        let (count, wg) = (count.clone(), wg.clone());
        tokio::spawn(async move {
            for _ in 0..each {
                *count.lock().await += 1;
            }
            wg.done();
        });
    }
    wg.wait().await;
    let out = w.stop(each * CONTENDERS, true);
    let ok = *count.lock().await == each * CONTENDERS;
    Outcome { ok, ..out }
}

async fn read_mostly(a: Args) -> Outcome {
    let each = a.n / CONTENDERS;
    let pair = Arc::new(RwLock::new((0, 0)));
    let w = Stopwatch::start();
    let tasks: Vec<_> = (0..CONTENDERS)
        .map(|_| {
            let pair = pair.clone();
            tokio::spawn(async move {
                let mut torn = 0;
                for i in 1..=each {
                    if i % WRITES_ONE_IN == 0 {
                        let mut both = pair.write().await;
                        both.0 += 1;
                        both.1 += 1;
                    } else {
                        let both = pair.read().await;
                        torn += u64::from(both.0 != both.1);
                    }
                }
                torn
            })
        })
        .collect();
    let mut torn = 0;
    for task in tasks {
        torn += task.await.unwrap();
    }
    let out = w.stop(each * CONTENDERS, true);
    let ok = torn == 0 && pair.read().await.0 == each / WRITES_ONE_IN * CONTENDERS;
    Outcome { ok, ..out }
}
