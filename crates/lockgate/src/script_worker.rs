//! The processes that evaluate scripts and conditions.
//!
//! A script can hang or crash the process that evaluates it, so Lockgate evaluates it in a worker: either the `lockgate` program, or the
//! embedding program itself, started again.

use lockgate_runner::script::{Evaluator, WorkerCommand, worker_main};
use std::path::PathBuf;
use std::process::ExitCode;

/// The argument that makes a program a worker.
const ARGUMENT: &str = "script-worker";

/// Which program evaluates scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptWorker {
    program: PathBuf,
}

impl ScriptWorker {
    /// The `lockgate` program that `PATH` leads to.
    pub fn installed() -> Self {
        Self { program: "lockgate".into() }
    }

    /// This program, started again. Its `main` must call [`run_if_requested`] before anything else: otherwise each script starts the
    /// whole program once more.
    pub fn this_program() -> std::io::Result<Self> {
        Ok(Self { program: std::env::current_exe()? })
    }

    /// A program at this path that calls [`run_if_requested`], such as `lockgate`.
    pub fn at(program: impl Into<PathBuf>) -> Self {
        Self { program: program.into() }
    }

    /// What evaluates scripts with it.
    pub(crate) fn evaluator(&self) -> Evaluator {
        Evaluator::new(WorkerCommand { program: self.program.clone(), args: vec![ARGUMENT.into()], env: Vec::new() })
    }
}

/// Runs this process as a worker if it was started as one, and gives how it then ends. Call it first in `main`, before arguments are read
/// or threads are started.
pub fn run_if_requested() -> Option<ExitCode> {
    let requested = std::env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT);
    requested.then(worker_main)
}
