//! The command line, the stopwatch and the one JSON line, as in the C++ harness.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

pub type Run = fn(Args) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;

#[derive(Clone, Copy)]
pub struct Args {
    pub n: u64,
    pub procs: usize,
}

#[derive(Clone)]
pub struct Workload {
    pub name: &'static str,
    pub n: u64,       // the default
    pub warm_up: u64, // n of the warm-up; 0: none, because it would spoil what is measured
    pub run: Run,
}

/// How many operations took how long, and whether the result was right.
pub struct Outcome {
    pub ops: u64,
    pub wall: Duration,
    pub cpu: Duration,
    pub ok: bool,
    pub extra: Vec<(String, f64)>,
}

impl Outcome {
    pub fn add(&mut self, key: &str, value: f64) {
        self.extra.push((key.to_string(), value));
    }

    /// Sorts the samples.
    pub fn add_percentiles(&mut self, samples: &mut [Duration], of: &str) {
        samples.sort_unstable();
        for (name, p) in [("p50_us", 0.50), ("p99_us", 0.99), ("p999_us", 0.999)] {
            let i = ((p * samples.len() as f64) as usize).min(samples.len() - 1);
            self.extra.push((format!("{of}{name}"), samples[i].as_secs_f64() * 1e6));
        }
    }
}

/// Measures wall time and the CPU time of the whole process.
pub struct Stopwatch {
    cpu: Duration,
    wall: Instant,
}

impl Stopwatch {
    pub fn start() -> Self {
        Stopwatch { cpu: cpu_time(), wall: Instant::now() }
    }

    pub fn stop(&self, ops: u64, ok: bool) -> Outcome {
        let wall = self.wall.elapsed();
        Outcome { ops, wall, cpu: cpu_time() - self.cpu, ok, extra: Vec::new() }
    }
}

fn cpu_time() -> Duration {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let time = |t: libc::timeval| Duration::new(t.tv_sec as u64, t.tv_usec as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// A number of /proc/self/status, in bytes where the line is in kB.
pub fn proc_status(key: &str) -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let mut words = line.unwrap_or_default().split_whitespace();
    let value: f64 = words.next().and_then(|w| w.parse().ok()).unwrap_or(0.0);
    if words.next() == Some("kB") { value * 1024.0 } else { value }
}

/// Keeps a core busy, without a call into the runtime.
pub fn spin_for(d: Duration) {
    let start = Instant::now();
    while start.elapsed() < d {}
}

pub fn sum_below(n: u64) -> u64 {
    n * (n - 1) / 2
}

pub fn milliseconds(d: Duration) -> f64 {
    d.as_secs_f64() * 1e3
}

pub fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

/// tokio has none: the last one to be done wakes the one that waits.
pub struct WaitGroup {
    count: AtomicUsize,
    all_done: Notify,
}

impl WaitGroup {
    pub fn new(count: usize) -> std::sync::Arc<Self> {
        std::sync::Arc::new(WaitGroup { count: AtomicUsize::new(count), all_done: Notify::new() })
    }

    pub fn done(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.all_done.notify_one();
        }
    }

    pub async fn wait(&self) {
        self.all_done.notified().await;
    }
}

pub struct Command<'a> {
    pub workload: &'a Workload,
    pub n: u64,
    pub procs: usize,
}

/// Ends the program for --list.
pub fn parse(all: &[Workload]) -> Option<Command<'_>> {
    let mut words = std::env::args().skip(1);
    let (mut name, mut n, mut procs) = (None, 0, std::thread::available_parallelism().map_or(1, |p| p.get()));
    while let Some(word) = words.next() {
        match word.as_str() {
            "--list" => {
                all.iter().for_each(|w| println!("{}", w.name));
                std::process::exit(0);
            }
            "--procs" => procs = words.next()?.parse().ok().filter(|&p| p > 0)?,
            _ if name.is_none() => name = Some(word),
            _ => n = word.parse().ok().filter(|&n| n > 0)?,
        }
    }
    let name = name?;
    let workload = all.iter().find(|w| w.name == name)?;
    Some(Command { workload, n: if n == 0 { workload.n } else { n }, procs })
}

/// tokio does not tell; the lock file that cargo wrote does.
fn version() -> &'static str {
    let lock = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock"));
    let after = lock.split("name = \"tokio\"\nversion = \"").nth(1).unwrap_or("?\"");
    after.split('"').next().unwrap_or("?")
}

pub fn json(c: &Command, o: &Outcome) -> String {
    let mut text = format!(
        r#"{{"impl":"tokio","version":"{}","workload":"{}","procs":{},"n":{},"ops":{},"ns_per_op":{},"ok":{},"wall_ms":{},"cpu_ms":{},"rss":{},"peak_rss":{},"threads":{}"#,
        version(),
        c.workload.name,
        c.procs,
        c.n,
        o.ops,
        o.wall.as_nanos() as f64 / o.ops as f64,
        o.ok,
        milliseconds(o.wall),
        milliseconds(o.cpu),
        proc_status("VmRSS"),
        proc_status("VmHWM"),
        proc_status("Threads")
    );
    for (key, value) in &o.extra {
        text += &format!(r#","{key}":{value}"#);
    }
    text + "}"
}
