//! Trees of tasks.

use std::future::Future;
use std::pin::Pin;

use tokio::sync::mpsc::{channel, Sender};

use crate::harness::*;

pub fn workloads() -> Vec<Workload> {
    vec![
        Workload { name: "fib", n: 27, warm_up: 18, run: |a| Box::pin(fib_fork_join(a)) },
        Workload { name: "skynet", n: 1_000_000, warm_up: 10_000, run: |a| Box::pin(skynet(a)) },
        Workload { name: "skynet_join", n: 1_000_000, warm_up: 10_000, run: |a| Box::pin(skynet_joined(a)) },
    ]
}

fn fib_serial(n: u64) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

/// Forks one half of every call down to the leaves, without a cut-off: it is the fork and the join that are measured.
/// Recursion of async functions needs the box.
fn fib(n: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if n < 2 {
            return n;
        }
        let a = tokio::spawn(fib(n - 1));
        let b = fib(n - 2).await;
        a.await.unwrap() + b
    })
}

/// One operation is one fork: there are fib(n + 1) - 1 of them.
async fn fib_fork_join(a: Args) -> Outcome {
    let w = Stopwatch::start();
    let result = fib(a.n).await;
    w.stop(fib_serial(a.n + 1) - 1, result == fib_serial(a.n))
}

/// Sends the sum of the ordinals of the size leaves below it to parent.
fn skynet_node(parent: Sender<u64>, ordinal: u64, size: u64) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        if size == 1 {
            parent.send(ordinal).await.unwrap();
            return;
        }
        let (to, mut children) = channel(1);
        for i in 0..10 {
            tokio::spawn(skynet_node(to.clone(), ordinal + i * (size / 10), size / 10));
        }
        let mut sum = 0;
        for _ in 0..10 {
            sum += children.recv().await.unwrap();
        }
        parent.send(sum).await.unwrap();
    })
}

fn power_of_ten_up_to(n: u64) -> u64 {
    let mut power = 1;
    while power * 10 <= n {
        power *= 10;
    }
    power
}

async fn skynet(a: Args) -> Outcome {
    let leaves = power_of_ten_up_to(a.n);
    let w = Stopwatch::start();
    let (to, mut result) = channel(1);
    tokio::spawn(skynet_node(to, 0, leaves));
    let sum = result.recv().await.unwrap();
    w.stop(leaves, sum == sum_below(leaves))
}

/// Returns that sum.
fn skynet_joined_node(ordinal: u64, size: u64) -> Pin<Box<dyn Future<Output = u64> + Send>> {
    Box::pin(async move {
        if size == 1 {
            return ordinal;
        }
        let mut children = Vec::with_capacity(10);
        for i in 0..10 {
            children.push(tokio::spawn(skynet_joined_node(ordinal + i * (size / 10), size / 10)));
        }
        let mut sum = 0;
        for child in children {
            sum += child.await.unwrap();
        }
        sum
    })
}

async fn skynet_joined(a: Args) -> Outcome {
    let leaves = power_of_ten_up_to(a.n);
    let w = Stopwatch::start();
    let sum = skynet_joined_node(0, leaves).await;
    w.stop(leaves, sum == sum_below(leaves))
}
