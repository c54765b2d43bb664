//! The processes that evaluate scripts and conditions.
//!
//! A script can hang or crash its process, so Lockgate evaluates it in a worker process: either the `lockgate` program, or
//! another instance of your program.

use lockgate_runner::script::{Evaluator, WorkerCommand, worker_main};
use std::path::PathBuf;
use std::process::ExitCode;

/// The argument that turns a program into a worker.
const ARGUMENT: &str = "script-worker";

/// The program that evaluates scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptWorker {
    program: PathBuf,
}

impl ScriptWorker {
    /// The `lockgate` program found in `PATH`.
    pub fn installed() -> Self {
        Self { program: "lockgate".into() }
    }

    /// This program. Its `main` must call [`run_if_requested`] before anything else; otherwise each script would start the whole
    /// program again.
    pub fn this_program() -> std::io::Result<Self> {
        Ok(Self { program: std::env::current_exe()? })
    }

    /// A program at this path that calls [`run_if_requested`], such as `lockgate`.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }

    /// The evaluator that uses this program.
    pub(crate) fn evaluator(&self) -> Evaluator {
        Evaluator::new(WorkerCommand { program: self.program.clone(), args: vec![ARGUMENT.into()], env: Vec::new() })
    }
}

/// If this process was started as a worker, runs it and returns its exit code. Call this first in `main`, before reading
/// arguments or starting threads.
pub fn run_if_requested() -> Option<ExitCode> {
    let requested = std::env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT);
    requested.then(worker_main)
}
