//! Values between tasks. tokio's own channel has one consumer; where there are four, its users take async-channel.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use tokio::sync::mpsc::{channel, Receiver};

use crate::harness::*;

const RING_MEMBERS: u64 = 503;
const PIPELINE_STAGES: u64 = 100;
const SELECT_SOURCES: u64 = 16;

pub fn workloads() -> Vec<Workload> {
    vec![
        Workload { name: "pingpong", n: 1_000_000, warm_up: 100_000, run: |a| Box::pin(pingpong(a)) },
        Workload { name: "buffered", n: 10_000_000, warm_up: 1_000_000, run: |a| Box::pin(buffered(a)) },
        Workload { name: "mpmc", n: 4_000_000, warm_up: 400_000, run: |a| Box::pin(mpmc(a)) },
        Workload { name: "select2", n: 2_000_000, warm_up: 200_000, run: |a| Box::pin(select2(a, 1)) },
        Workload { name: "select2_buf", n: 4_000_000, warm_up: 400_000, run: |a| Box::pin(select2(a, 128)) },
        Workload { name: "select16", n: 1_000_000, warm_up: 100_000, run: |a| Box::pin(select16(a)) },
        Workload { name: "ring", n: 3_000_000, warm_up: 300_000, run: |a| Box::pin(ring(a)) },
        Workload { name: "pipeline", n: 30_000, warm_up: 3_000, run: |a| Box::pin(pipeline(a)) },
        Workload { name: "sieve", n: 2_000, warm_up: 200, run: |a| Box::pin(sieve(a)) },
    ]
}

async fn pingpong(a: Args) -> Outcome {
    let (ping, mut pinged) = channel(1);
    let (pong, mut ponged) = channel(1);
    let w = Stopwatch::start();
    tokio::spawn(async move {
        while let Some(v) = pinged.recv().await {
            pong.send(v + 1).await.unwrap();
        }
    });
    let mut v = 0;
    for _ in 0..a.n {
        ping.send(v).await.unwrap();
        v = ponged.recv().await.unwrap();
    }
    let mut out = w.stop(a.n, v == a.n);
    drop(ping);
    out.ok &= ponged.recv().await.is_none();
    out
}

/// Sends the numbers from first on, and hands back where they come out.
fn produce(first: u64, count: u64, capacity: usize) -> Receiver<u64> {
    let (to, from) = channel(capacity);
    tokio::spawn(async move {
        for i in first..first + count {
            to.send(i).await.unwrap();
        }
    });
    from
}

async fn sum_up(mut from: Receiver<u64>) -> (u64, u64) {
    let (mut sum, mut count) = (0, 0);
    while let Some(v) = from.recv().await {
        sum += v;
        count += 1;
    }
    (sum, count)
}

async fn buffered(a: Args) -> Outcome {
    let w = Stopwatch::start();
    let result = sum_up(produce(0, a.n, 128)).await;
    w.stop(a.n, result == (sum_below(a.n), a.n))
}

async fn mpmc(a: Args) -> Outcome {
    const SIDES: u64 = 4;
    let each = a.n / SIDES;
    let (sum, count) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (to, from) = async_channel::bounded(64);
    let consumers = WaitGroup::new(SIDES as usize);
    let w = Stopwatch::start();
    for p in 0..SIDES {
        let to = to.clone();
        tokio::spawn(async move {
            for i in p * each..(p + 1) * each {
                to.send(i).await.unwrap();
            }
        });
        let (from, sum, count, consumers) = (from.clone(), sum.clone(), count.clone(), consumers.clone());
        tokio::spawn(async move {
            let (mut my_sum, mut my_count) = (0, 0);
            while let Ok(v) = from.recv().await {
                my_sum += v;
                my_count += 1;
            }
            sum.fetch_add(my_sum, Ordering::Relaxed);
            count.fetch_add(my_count, Ordering::Relaxed);
            consumers.done();
        });
    }
    drop(to); // closed once the last producer has gone
    consumers.wait().await;
    let total = each * SIDES;
    let ok = count.load(Ordering::Relaxed) == total && sum.load(Ordering::Relaxed) == sum_below(total);
    w.stop(total, ok)
}

async fn select2(a: Args, capacity: usize) -> Outcome {
    let each = a.n / 2;
    let w = Stopwatch::start();
    let (mut a, mut b) = (produce(0, each, capacity), produce(each, each, capacity));
    let mut sum = 0;
    for _ in 0..2 * each {
        tokio::select! {
            Some(v) = a.recv() => sum += v,
            Some(v) = b.recv() => sum += v,
        }
    }
    w.stop(2 * each, sum == sum_below(2 * each))
}

async fn select16(a: Args) -> Outcome {
    let each = a.n / SELECT_SOURCES;
    let total = each * SELECT_SOURCES;
    let w = Stopwatch::start();
    let sources: Vec<_> = (0..SELECT_SOURCES).map(|s| produce(s * each, each, 1)).collect();
    let sources: [Receiver<u64>; SELECT_SOURCES as usize] = sources.try_into().unwrap();
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h, mut i, mut j, mut k, mut l, mut m, mut n, mut o, mut p] =
        sources;
    let mut sum = 0;
    for _ in 0..total {
        sum += tokio::select! {
            Some(v) = a.recv() => v,
            Some(v) = b.recv() => v,
            Some(v) = c.recv() => v,
            Some(v) = d.recv() => v,
            Some(v) = e.recv() => v,
            Some(v) = f.recv() => v,
            Some(v) = g.recv() => v,
            Some(v) = h.recv() => v,
            Some(v) = i.recv() => v,
            Some(v) = j.recv() => v,
            Some(v) = k.recv() => v,
            Some(v) = l.recv() => v,
            Some(v) = m.recv() => v,
            Some(v) = n.recv() => v,
            Some(v) = o.recv() => v,
            Some(v) = p.recv() => v,
        };
    }
    w.stop(total, sum == sum_below(total))
}

/// The token counts down; whoever receives 0 says who it is and leaves, and so does the one after it, and so on.
async fn ring(a: Args) -> Outcome {
    let (last, mut ended) = channel(1);
    let (to, from): (Vec<_>, Vec<_>) = (0..RING_MEMBERS).map(|_| channel(1)).unzip();
    let w = Stopwatch::start();
    for (i, mut own) in from.into_iter().enumerate() {
        let (next, last) = (to[(i + 1) % to.len()].clone(), last.clone());
        tokio::spawn(async move {
            while let Some(token) = own.recv().await {
                if token == 0 {
                    last.send(i as u64).await.unwrap();
                    return;
                }
                next.send(token - 1).await.unwrap();
            }
        });
    }
    to[0].send(a.n).await.unwrap();
    let at = ended.recv().await.unwrap();
    w.stop(a.n, at == a.n % RING_MEMBERS)
}

async fn pipeline(a: Args) -> Outcome {
    let w = Stopwatch::start();
    let mut last = produce(0, a.n, 1);
    for _ in 0..PIPELINE_STAGES {
        let (to, next) = channel(1);
        let mut from = std::mem::replace(&mut last, next);
        tokio::spawn(async move {
            while let Some(v) = from.recv().await {
                to.send(v + 1).await.unwrap();
            }
        });
    }
    let result = sum_up(last).await;
    w.stop(a.n * PIPELINE_STAGES, result == (sum_below(a.n) + a.n * PIPELINE_STAGES, a.n))
}

fn nth_prime(n: u64) -> u64 {
    let is_prime = |c: &u64| (2..).take_while(|d| d * d <= *c).all(|d| c % d != 0);
    (2..).filter(is_prime).nth(n as usize - 1).unwrap()
}

/// Numbers up to the n-th prime through a chain that grows by one filter a prime.
async fn sieve(a: Args) -> Outcome {
    let limit = nth_prime(a.n);
    let w = Stopwatch::start();
    let mut from = produce(2, limit - 1, 1);
    let (mut count, mut last) = (0, 0);
    while let Some(prime) = from.recv().await {
        (count, last) = (count + 1, prime);
        let (to, next) = channel(1);
        let mut own = std::mem::replace(&mut from, next);
        tokio::spawn(async move {
            while let Some(v) = own.recv().await {
                if v % prime != 0 {
                    to.send(v).await.unwrap();
                }
            }
        });
    }
    w.stop(a.n, count == a.n && last == limit)
}
