//! Measures how long one evaluation takes from request to reply, sequentially. An argument selects the cases to measure:
//! `list`.
#![expect(clippy::print_stdout, reason = "it prints measurements")]

use lockgate_engine::digest::Digest;
use lockgate_runner::script::{Call, Evaluator, Form, Limits, StoredPart, WorkerCommand, worker_main};
use std::{
    process::ExitCode,
    time::{Duration, Instant},
};

const CALLS: u32 = 3000;
const ROUNDS: usize = 7;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("worker") {
        return worker_main();
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
    ExitCode::SUCCESS
}

async fn measure() {
    let program = std::env::current_exe().expect("the path of this program");
    let start = Instant::now();
    let evaluator = Evaluator::new(WorkerCommand { program, args: vec!["worker".into()], env: vec![] });
    let null = Call {
        form: Form::Body,
        source: "return null".into(),
        globals: vec![],
        stored: vec![],
        files: None,
        agent_queries: None,
        limits: Limits::SCRIPT,
    };
    evaluator.warm();
    println!("warm           {:8.1} µs", micros(start.elapsed()));
    evaluator.call(null.clone()).await.expect("an answer");
    println!("first answer   {:8.1} µs", micros(start.elapsed()));

    let mut small = null.clone();
    small.source = "return context.feature.name".into();
    let flags = (0..40).map(|n| format!("\"some-flag-number-{n:04}\"")).collect::<Vec<_>>().join(",");
    small.globals.push(("context".into(), format!(r#"{{"feature":{{"name":"login","flags":[{flags}]}}}}"#)));

    let mut large = null.clone();
    large.source = "let n = 0; for (const text of context.vars.list) n += text.length; return n".into();
    let list = (0..100).map(|n| format!("\"{n:04}{}\"", "abcdefgh".repeat(128))).collect::<Vec<_>>().join(",");
    let json = format!("[{list}]");
    let path = ["context", "vars", "list"].map(String::from).to_vec();
    large.stored.push(StoredPart { path, digest: Digest::of(json.as_bytes()), json: json.into() });

    let mut text = null.clone();
    text.source = "return context.vars.big.length".into();
    let json = format!("\"{}\"", "x".repeat(100_000));
    let path = ["context", "vars", "big"].map(String::from).to_vec();
    text.stored.push(StoredPart { path, digest: Digest::of(json.as_bytes()), json: json.into() });

    let only = std::env::args().nth(1).unwrap_or_default();
    let cases = [("return null", &null), ("1 KB context", &small), ("100 KB list", &large), ("100 KB text", &text)];
    for (name, call) in cases.into_iter().filter(|(name, _)| name.contains(&only)) {
        for pause in [Duration::ZERO, Duration::from_micros(200)] {
            let mut rounds = Vec::new();
            for _ in 0..ROUNDS {
                let mut spent = Duration::ZERO;
                for _ in 0..CALLS {
                    let start = Instant::now();
                    evaluator.call(call.clone()).await.expect("an answer");
                    spent += start.elapsed();
                    // As long as a durable commit takes, during which workers prepare their next engines.
                    let start = Instant::now();
                    while start.elapsed() < pause {
                        std::hint::spin_loop();
                    }
                }
                rounds.push(micros(spent / CALLS));
            }
            rounds.sort_by(f64::total_cmp);
            let between = if pause.is_zero() { "no pause" } else { "200 µs between" };
            println!("{name:14} {:8.1} µs  ({between}; {:.1} to {:.1})", rounds[ROUNDS / 2], rounds[0], rounds[ROUNDS - 1]);
        }
    }
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
