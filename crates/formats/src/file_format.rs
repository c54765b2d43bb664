//! Detects the format of a file from its content alone; file names and extensions are ignored.

use super::{execution_spec, frontmatter, plan};
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::includes::Includes;
use lockgate_engine::spec::reader::{Report, SUCCESSOR_KEYS};
use lockgate_engine::spec::{self, Read};

/// The formats that [`detect`] distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A workflow file. Unrecognized text counts as one too, so that its errors are reported against this format.
    Workflow,
    /// A `PLAN.md`.
    Plan,
    /// An EXECUTION-SPEC.
    ExecutionSpec,
    /// A pipeline's state file.
    PipelineState,
    /// A workflow of the successor format.
    Successor,
}

impl Format {
    /// The name of the format in JSON and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Plan => "plan",
            Self::ExecutionSpec => "execution-spec",
            Self::PipelineState => "pipeline-state",
            Self::Successor => "successor",
        }
    }

    /// The noun for such a file in messages.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Workflow => "workflow",
            Self::Plan => "plan",
            Self::ExecutionSpec => "EXECUTION-SPEC",
            Self::PipelineState => "pipeline state file",
            Self::Successor => "workflow of the successor format",
        }
    }
}

/// Top-level keys that only an EXECUTION-SPEC has.
const SPEC_KEYS: [&str; 2] = ["workstreams", "execution_phases"];

/// Top-level keys that only a plan has.
const PLAN_KEYS: [&str; 2] = ["plan", "must_haves"];

/// Keys of a pipeline's state file; two of them identify one.
const STATE_KEYS: [&str; 9] = [
    "prd",
    "prd_id",
    "current_phase",
    "completed_workstreams",
    "in_progress_workstreams",
    "pending_workstreams",
    "gates_passed",
    "gates_pending",
    "status",
];

/// Detects the format of a file.
pub fn detect(source: &str) -> Format {
    let text = source.trim_start_matches('\u{feff}').trim_start();
    if text.starts_with('{') {
        let named = STATE_KEYS.iter().filter(|key| text.contains(&format!("\"{key}\""))).count();
        return if named >= 2 && !text.contains("\"phases\"") || named >= 3 { Format::PipelineState } else { Format::Workflow };
    }
    let front = frontmatter::split(source);
    let mut keys = frontmatter::top_keys(front.as_ref().map_or(source, |front| front.yaml));
    let has = |wanted: &[&str]| keys.clone().any(|key| wanted.contains(&key));
    if has(&SPEC_KEYS) {
        return Format::ExecutionSpec;
    }
    let body = front.as_ref().map_or(source, |front| front.body);
    let has_tasks = body.lines().any(|line| line.trim_start().starts_with("<task"));
    if has_tasks || front.is_some() && has(&PLAN_KEYS) {
        return Format::Plan;
    }
    if keys.any(|key| SUCCESSOR_KEYS.contains(&key)) { Format::Successor } else { Format::Workflow }
}

/// The result of reading a file, and the format it was read as.
#[derive(Clone, Debug)]
pub struct ReadFile {
    pub format: Format,
    pub read: Read,
}

/// Reads a file of any runnable format and reports everything that is wrong with it.
pub fn read_with_includes(source: &str, includes: &mut dyn Includes) -> ReadFile {
    let format = detect(source);
    let read = match format {
        Format::Workflow | Format::Successor => spec::read_with_includes(source, includes),
        Format::ExecutionSpec => execution_spec::read_with_includes(source, includes),
        Format::Plan => plan::workflow::read_workflow(source),
        Format::PipelineState => cannot_run(
            source,
            format,
            "check it with `lockgate pipeline check`; start a pipeline from its EXECUTION-SPEC, or continue this one with `lockgate pipeline import`",
        ),
    };
    ReadFile { format, read }
}

fn cannot_run(source: &str, format: Format, help: &str) -> Read {
    let mut report = Report::default();
    report.error(ProblemCode::NotAWorkflow, &(0..0), format!("this is a {}, not a workflow", format.noun())).help(help);
    Read { workflow: None, problems: report.finish(source) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_kinds_are_recognized_by_content() {
        for (source, format) in [
            ("name: x\nphases: []\n", Format::Workflow),
            ("", Format::Workflow),
            ("# a readme\n\nwords\n", Format::Workflow),
            ("{\"name\": \"x\", \"phases\": [{\"id\": \"status\"}]}", Format::Workflow),
            ("---\nprd: PRD-001\nworkstreams:\n  WS1: {}\n---\n# Body\n", Format::ExecutionSpec),
            ("prd: PRD-001\nexecution_phases: []\n", Format::ExecutionSpec),
            ("---\nphase: 1\nplan: 08\n---\n<task type=\"auto\">\n</task>\n", Format::Plan),
            ("# Plan\n\n  <task type=\"auto\">\n", Format::Plan),
            ("\u{feff}{\"prd\": \"PRD-001\", \"status\": \"complete\"}", Format::PipelineState),
            ("{\"prd_id\": 1, \"status\": 2, \"current_phase\": 3, \"phases\": []}", Format::PipelineState),
            ("name: x\ncheckpoints: []\n", Format::Successor),
        ] {
            assert_eq!(detect(source), format, "{source}");
        }
    }
}
