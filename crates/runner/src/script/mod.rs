//! JavaScript in a box: scripts and conditions, evaluated in worker processes that can be killed.
//!
//! An [`Evaluator`] keeps a few workers (the same binary, started to run [`worker_main`]) and talks to each over a
//! socket. A worker serves many calls, but every call gets an engine of its own, made ahead and used once, so that
//! nothing that a script does to its world reaches the next one. The engine's own limits end most runaway scripts;
//! some built-ins never look at them, so the evaluator kills a worker that has not answered in twice the time.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `evaluator` | the pool of workers, one call from asking to answer |
//! | `worker_process` | one worker process as seen from here: start, exchange, end |
//! | `value_cache` | which large values a worker already has |
//! | `protocol`, `message` | bytes on the socket, and what they mean |
//! | `worker` | the worker's side: serve calls until the socket closes |
//! | `sandbox` | one engine: prepare, evaluate, settle, give the result as JSON |
//! | `exception` | what a script threw, in words, with its place |
//! | `globals` | JSON values put into an engine |
//! | `functions` | what scripts may call: files, the log and the agent |
//! | `agent_queries` | what an agent was asked and said |
//! | `gaps` | which expected files are there, and what they lack |
//! | `output_files` | files of the output directory, and of nothing else |

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

/// A result longer than this (JSON text, in bytes) is [`ScriptError::TooLarge`].
pub const RESULT_LIMIT: usize = 1 << 20;
/// A result nested deeper than this is [`ScriptError::NotJson`], since readers of JSON have such limits too.
pub const RESULT_DEPTH: usize = 100;
/// A log keeps this many lines, and one more that says how many were left out.
pub const LOG_LINES: usize = 1000;
/// A line of the log keeps this many bytes.
pub const LOG_LINE_BYTES: usize = 2048;
/// Files larger than this are neither read nor written by scripts.
pub const FILE_LIMIT: usize = 16 << 20;
/// An evaluation may ask the agent this often.
pub const MAX_AGENT_QUERIES: usize = 100;
/// A prompt for the agent is no longer than this, in bytes.
pub const PROMPT_LIMIT: usize = 1 << 20;

/// How the text of a call is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The body of an async function: it returns its value, and `await` works.
    Body,
    /// One expression, whose truth is asked for. A promise is awaited first. A value that has no JSON form gives
    /// `null` as its JSON, since its truth is known all the same.
    Expression,
}

/// One evaluation.
#[derive(Clone, Debug)]
pub struct Call {
    /// How to read the source.
    pub form: Form,
    /// The JavaScript text.
    pub source: Arc<str>,
    /// Global names, each with the JSON text of its value.
    pub globals: Vec<(String, String)>,
    /// Large values, put at their paths after the globals are set.
    pub stored: Vec<StoredPart>,
    /// Where files are read and written; without it the functions for files throw.
    pub files: Option<Files>,
    /// What the agent said when the script asked it before, in that order; without it `thinkHard` throws. The first
    /// question that is not answered here ends the evaluation with [`ScriptError::NeedsAgent`].
    pub agent_queries: Option<Vec<AgentReply>>,
    /// What the evaluation may use.
    pub limits: Limits,
}

/// A question to the agent, and what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentReply {
    /// What the script asked.
    pub prompt: String,
    /// What the agent said.
    pub text: String,
}

/// A large JSON value that is sent to a worker once and known by its digest from then on.
#[derive(Clone, Debug)]
pub struct StoredPart {
    /// Where it goes, from the global object: `["context", "vars", "big"]`. What is missing on the way is created.
    pub path: Vec<String>,
    /// The digest of the JSON text.
    pub digest: Digest,
    /// The JSON text.
    pub json: Arc<str>,
}

/// The files that a script may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The run's output directory, made when a script first writes. Nothing outside is reached.
    pub output_dir: PathBuf,
    /// The feature's name: as the first component of a path it means the output directory itself, unless there is
    /// something of that name in it.
    pub feature: Option<String>,
    /// The files and folders that the phase is expected to fill, from the output directory.
    pub expected: Vec<String>,
}

/// What an evaluation may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Wall-clock time in the worker.
    pub time: Duration,
    /// Bytes of the engine's heap. An empty engine takes about 0.3 MB of it.
    pub memory: usize,
    /// Bytes of stack; at most 4 MB.
    pub stack: usize,
}

impl Limits {
    /// What a script gets by default.
    pub const SCRIPT: Self = Self { time: Duration::from_secs(30), memory: 256 << 20, stack: 1 << 20 };
    /// What a condition or criterion gets by default.
    pub const CONDITION: Self = Self { time: Duration::from_secs(5), memory: 64 << 20, stack: 1 << 20 };
}

/// What an evaluation gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Returned {
    /// The value as JSON text; `null` for `undefined`.
    pub json: String,
    /// Whether the value is true, as JavaScript sees it.
    pub truthy: bool,
    /// What the script logged.
    pub log: Vec<String>,
    /// The files it wrote, from the output directory, each once, in the order of their first writing.
    pub wrote: Vec<String>,
}

/// A failed evaluation, with what it had done until then (empty where the worker had to be killed).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Why it failed.
    pub error: ScriptError,
    /// What the script logged.
    pub log: Vec<String>,
    /// The files it wrote.
    pub wrote: Vec<String>,
}

/// Why an evaluation gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptError {
    /// The script threw, or could not be parsed.
    Thrown {
        /// The error's name and message, or the thrown value.
        message: String,
        /// Where, counted from 1 in the source given, if known.
        line: Option<u32>,
        /// Column of that line, counted from 1.
        column: Option<u32>,
    },
    /// It did not end in time.
    Timeout(Duration),
    /// It needed more memory than allowed.
    Memory,
    /// It called itself too deeply.
    Stack,
    /// It awaits a promise that nothing is left to settle.
    NeverSettles,
    /// The value has no JSON form; the text says why.
    NotJson(String),
    /// The value's JSON text is longer than [`RESULT_LIMIT`].
    TooLarge,
    /// Not a fault: it asks the agent, and goes on when it is evaluated again with the answer among its thoughts.
    NeedsAgent {
        /// What to ask.
        prompt: String,
    },
    /// The worker could not be started, or ended without an answer.
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
            Self::Timeout(limit) => write!(f, "it did not end within {limit:?}"),
            Self::Memory => f.write_str("it needs more memory than it may use"),
            Self::Stack => f.write_str("it calls itself too deeply"),
            Self::NeverSettles => f.write_str("it awaits a promise that nothing will ever settle"),
            Self::NotJson(why) => write!(f, "its value cannot be written as JSON: {why}"),
            Self::TooLarge => {
                write!(f, "its value is larger than {RESULT_LIMIT} bytes of JSON; write large results to a file")
            }
            Self::NeedsAgent { prompt: _ } => f.write_str("it waits for what the agent says"),
            Self::Worker(what) => write!(f, "the script worker failed: {what}"),
        }
    }
}

impl std::error::Error for ScriptError {}

/// How to start a worker: a program that ends up in [`worker_main`].
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    /// The program, usually this one.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment: nothing is inherited, so that no secret reaches the worker.
    pub env: Vec<(OsString, OsString)>,
}
