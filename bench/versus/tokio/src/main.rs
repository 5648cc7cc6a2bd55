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

use harness::{Command, Workload};

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

/// Prints the line while the runtime is still there, whose threads and memory it tells. True if the result was right.
fn run(command: &Command) -> bool {
    let (n, procs) = (command.n, command.procs);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(procs)
        .enable_all()
        .build()
        .expect("a runtime");
    let (body, warm_up) = (command.workload.run, command.workload.warm_up);
    let main = async move {
        if warm_up > 0 && warm_up <= n {
            body(harness::Args { n: warm_up, procs }).await;
        }
        body(harness::Args { n, procs }).await
    };
    let outcome = runtime.block_on(async { tokio::spawn(main).await.expect("the workload") });
    println!("{}", harness::json(command, &outcome));
    runtime.shutdown_background();
    outcome.ok
}

fn main() {
    let all = workloads();
    let command = harness::parse(&all).unwrap_or_else(|| {
        eprintln!("usage: versus-tokio WORKLOAD [N] [--procs P]\n       versus-tokio --list");
        std::process::exit(64);
    });
    std::process::exit(i32::from(!run(&command)));
}
