//! Sandboxed JavaScript: scripts and conditions, evaluated in worker processes that can be killed.
//!
//! An [`Evaluator`] keeps a few workers (the same binary, running [`worker_main`]) and talks to each over a socket. A worker
//! serves many calls, but every call gets a fresh engine, created in advance and used once, so that a script cannot affect
//! the next one. The engine's own limits stop most runaway scripts; some built-ins never check them, so the evaluator kills a
//! worker that has not replied within twice the time limit.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `evaluator` | the pool of workers, and one call from request to reply |
//! | `worker_process` | the evaluator's side of a worker: start, exchange, end |
//! | `value_cache` | which large values a worker already has |
//! | `protocol`, `message` | the frames on the socket, and the messages in them |
//! | `worker` | the worker's side: serve calls until the socket closes |
//! | `sandbox` | one engine: prepare, evaluate, settle, return the result as JSON |
//! | `exception` | describes what a script threw, with its position |
//! | `globals` | puts JSON values into an engine |
//! | `functions` | the functions that scripts may call: files, the log and the agent |
//! | `agent_queries` | queries to an agent and their replies |
//! | `gaps` | which expected files exist, and what they lack |
//! | `output_files` | access to files in the output directory, and nowhere else |

mod agent_queries;
mod evaluator;
mod exception;
mod functions;
mod gaps;
mod globals;
mod message;
mod output_files;
mod protocol;
mod sandbox;
mod value_cache;
mod worker;
mod worker_process;

use lockgate_engine::digest::Digest;
use std::{ffi::OsString, fmt, path::PathBuf, sync::Arc, time::Duration};

pub use evaluator::Evaluator;
pub use worker::worker_main;

/// A longer result (JSON text, in bytes) is [`ScriptError::TooLarge`].
pub const RESULT_LIMIT: usize = 1 << 20;
/// A deeper result is [`ScriptError::NotJson`], because JSON parsers have such limits too.
pub const RESULT_DEPTH: usize = 100;
/// The maximum number of log lines; one more line says how many were omitted.
pub const LOG_LINES: usize = 1000;
/// The maximum length of a log line in bytes.
pub const LOG_LINE_BYTES: usize = 2048;
/// The size limit for files that scripts read or write.
pub const FILE_LIMIT: usize = 16 << 20;
/// The maximum number of agent queries per evaluation.
pub const MAX_AGENT_QUERIES: usize = 100;
/// The maximum length of a prompt, in bytes.
pub const PROMPT_LIMIT: usize = 1 << 20;

/// How the source of a call is interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The body of an async function: it returns its value, and `await` works.
    Body,
    /// One expression, whose truthiness is the result. A promise is awaited first. A value without a JSON form gives `null`
    /// as its JSON, because its truthiness is known anyway.
    Expression,
}

#[derive(Clone, Debug)]
pub struct Call {
    pub form: Form,
    pub source: Arc<str>,
    /// Global names, each with the JSON text of its value.
    pub globals: Vec<(String, String)>,
    /// Large values, set at their paths after the globals.
    pub stored: Vec<StoredPart>,
    /// The files it may use; without it, the file functions throw.
    pub files: Option<Files>,
    /// Earlier queries to the agent and their replies, in order; without it, `thinkHard` throws. The first query without a
    /// reply here ends the evaluation with [`ScriptError::NeedsAgent`].
    pub agent_queries: Option<Vec<AgentReply>>,
    pub limits: Limits,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReply {
    pub prompt: String,
    pub text: String,
}

/// A large JSON value that is sent to a worker once and then referred to by its digest.
#[derive(Clone, Debug)]
pub struct StoredPart {
    /// Its path from the global object: `["context", "vars", "big"]`. Missing objects on the way are created.
    pub path: Vec<String>,
    pub digest: Digest,
    pub json: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The run's output directory, created when a script first writes. Nothing outside it is accessible.
    pub output_dir: PathBuf,
    /// The feature's name: as the first component of a path it refers to the output directory itself, unless that contains an
    /// entry of this name.
    pub feature: Option<String>,
    /// The files and directories that the phase is expected to write, relative to the output directory.
    pub expected: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time in the worker.
    pub time: Duration,
    /// Bytes of the engine's heap. An empty engine uses about 0.3 MB.
    pub memory: usize,
    /// Bytes of stack; at most 4 MB.
    pub stack: usize,
}

impl Limits {
    /// The default limits of a script.
    pub const SCRIPT: Self = Self { time: Duration::from_secs(30), memory: 256 << 20, stack: 1 << 20 };
    /// The default limits of a condition or criterion.
    pub const CONDITION: Self = Self { time: Duration::from_secs(5), memory: 64 << 20, stack: 1 << 20 };
}

/// The result of an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The value as JSON text; `null` for `undefined`.
    pub json: String,
    /// Whether the value is truthy in JavaScript.
    pub truthy: bool,
    pub log: Vec<String>,
    /// The written files, relative to the output directory, each once, in the order of their first write.
    pub wrote: Vec<String>,
}

/// A failed evaluation, with its log and files up to then (empty if the worker had to be killed).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    pub error: ScriptError,
    pub log: Vec<String>,
    pub wrote: Vec<String>,
}

/// Why an evaluation gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptError {
    Thrown {
        /// The error's name and message, or the thrown value.
        message: String,
        /// The line in the source, counted from 1, if known.
        line: Option<u32>,
        /// The column, counted from 1.
        column: Option<u32>,
    },
    Timeout(Duration),
    Memory,
    Stack,
    NeverSettles,
    /// The value has no JSON form, for this reason.
    NotJson(String),
    TooLarge,
    /// Not an error: it queries the agent, and must be evaluated again with the reply in `agent_queries`.
    NeedsAgent {
        prompt: String,
    },
    /// The worker could not be started, or ended without a reply.
    Worker(String),
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thrown { message, line: Some(line), column: Some(column) } => {
                write!(f, "{message} (line {line}, column {column})")
            }
            Self::Thrown { message, line: Some(line), column: None } => write!(f, "{message} (line {line})"),
            Self::Thrown { message, line: None, column: _ } => f.write_str(message),
            Self::Timeout(limit) => write!(f, "it ran longer than {limit:?}"),
            Self::Memory => f.write_str("it needs more memory than allowed"),
            Self::Stack => f.write_str("its recursion is too deep"),
            Self::NeverSettles => f.write_str("it awaits a promise that nothing will ever settle"),
            Self::NotJson(why) => write!(f, "its value cannot be written as JSON: {why}"),
            Self::TooLarge => {
                write!(f, "its value is larger than {RESULT_LIMIT} bytes of JSON; write large results to a file")
            }
            Self::NeedsAgent { prompt: _ } => f.write_str("it waits for a reply from the agent"),
            Self::Worker(what) => write!(f, "the script worker failed: {what}"),
        }
    }
}

impl std::error::Error for ScriptError {}

/// How to start a worker: a program that runs [`worker_main`].
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    /// The program, usually this one.
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Its complete environment: nothing is inherited, so that no secret reaches the worker.
    pub env: Vec<(OsString, OsString)>,
}
