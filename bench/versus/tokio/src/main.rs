//! versus-tokio: the workloads of bench/versus in tokio, on its multi-thread runtime with P workers.
//!
//! What bench/README.md calls an unbuffered channel is one of capacity 1 here, the least there is. The workload of the main
//! goroutine is a task, as it would be in a server; `block_on` alone would be one more thread.

mod channel;
mod forkjoin;
mod harness;
mod net;
mod sched;
mod sync;
mod time;

use harness::{Outcome, Workload};

fn workloads() -> Vec<Workload> {
    [
        sched::workloads(),
        channel::workloads(),
        forkjoin::workloads(),
        sync::workloads(),
        time::workloads(),
        net::workloads(),
    ]
    .concat()
}

fn run(w: &Workload, n: u64, procs: usize) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(procs)
        .enable_all()
        .build()
        .expect("a runtime");
    let body = w.run;
    let warm_up = w.warm_up;
    let main = async move {
        if warm_up > 0 && warm_up <= n {
            body(harness::Args { n: warm_up, procs }).await;
        }
        body(harness::Args { n, procs }).await
    };
    let outcome = runtime.block_on(async { tokio::spawn(main).await.expect("the workload") });
    runtime.shutdown_background();
    outcome
}

fn main() {
    let all = workloads();
    let command = harness::parse(&all).unwrap_or_else(|| {
        eprintln!("usage: versus-tokio WORKLOAD [N] [--procs P]\n       versus-tokio --list");
        std::process::exit(64);
    });
    let outcome = run(command.workload, command.n, command.procs);
    println!("{}", harness::json(&command, &outcome));
    std::process::exit(i32::from(!outcome.ok));
}
