//! Servers: one task a connection; HTTP is hyper's.

use std::convert::Infallible;
use std::io::{Read, Result};
use std::net::TcpListener;
use std::process::{Command, Stdio};

use hyper::service::{make_service_fn, service_fn};
use hyper::{Body, Request, Response, Server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::*;

pub fn workloads() -> Vec<Workload> {
    vec![
        Workload { name: "echo_64", n: 300_000, warm_up: 20_000, run: |a| Box::pin(echo(a, 64)) },
        Workload { name: "echo_1000", n: 300_000, warm_up: 20_000, run: |a| Box::pin(echo(a, 1000)) },
        Workload { name: "http_hello", n: 300_000, warm_up: 20_000, run: |a| Box::pin(http_hello(a, "http")) },
        Workload { name: "http_wrk", n: 3, warm_up: 1, run: |a| Box::pin(http_hello(a, "wrk")) },
    ]
}

fn listen() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("non-blocking");
    let port = listener.local_addr().expect("an address").port();
    (listener, port)
}

/// Runs net-load ($NET_LOAD) against a server of this process, and measures from when it has connected until it has its
/// answers. It may have made another number of requests than it was asked to, and then says how many.
async fn run_load(port: u16, connections: u32, requests: u64, kind: &'static str) -> Outcome {
    let blocking = move || -> Result<Outcome> {
        let mut child = Command::new(std::env::var("NET_LOAD").unwrap_or_else(|_| "net-load".to_string()))
            .args([port.to_string(), connections.to_string(), requests.to_string(), kind.to_string()])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut pipe = child.stdout.take().expect("a pipe");
        pipe.read_exact(&mut [0])?;
        let w = Stopwatch::start();
        let mut made = String::new();
        pipe.read_to_string(&mut made)?;
        let ok = child.wait()?.success();
        let mut out = w.stop(made.parse().unwrap_or(requests), ok);
        out.add("requests_per_s", out.ops as f64 / out.wall.as_secs_f64());
        Ok(out)
    };
    tokio::task::spawn_blocking(blocking).await.unwrap().expect("net-load")
}

async fn serve_echo(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer).await? {
            0 => return Ok(()),
            n => stream.write_all(&buffer[..n]).await?,
        }
    }
}

async fn echo(a: Args, connections: u32) -> Outcome {
    let (listener, port) = listen();
    let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_echo(stream));
        }
    });
    let out = run_load(port, connections, a.n, "echo").await;
    server.abort();
    out
}

async fn hello(_: Request<Body>) -> std::result::Result<Response<Body>, Infallible> {
    let answer = Response::builder().header("Content-Type", "text/plain");
    Ok(answer.body(Body::from("Hello, world!")).expect("an answer"))
}

async fn http_hello(a: Args, kind: &'static str) -> Outcome {
    let (listener, port) = listen();
    let make = make_service_fn(|_| async { Ok::<_, Infallible>(service_fn(hello)) });
    let server = Server::from_tcp(listener).expect("a server").tcp_nodelay(true).serve(make);
    let server = tokio::spawn(server);
    let out = run_load(port, 64, a.n, kind).await;
    server.abort();
    out
}
