//! `lockgate script-worker`: this program as a worker that evaluates scripts, started by Lockgate itself only.

use std::process::ExitCode;

/// Serves evaluations until whoever started it is gone.
pub(super) fn main() -> ExitCode {
    lockgate_runner::script::worker_main()
}
