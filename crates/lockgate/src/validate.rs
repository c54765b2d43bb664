//! The result of validating a workflow file.
#![expect(missing_docs, reason = "fields whose names say what they hold; docs/reference/json.md lists them")]

use lockgate_engine::spec::problem::Problem;
use lockgate_engine::spec::workflow::Work;
use lockgate_formats::file_format::Format;
use lockgate_runner::start::WorkflowFile;
use serde::{Serialize, Serializer};

/// The contents and problems of a workflow file, in any format.
#[derive(Clone, Debug, Default, Serialize)]
pub struct FileReport {
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "word")]
    pub format: Option<Format>,
    pub phases: Vec<PhaseLine>,
    pub tasks: Vec<TaskLine>,
    pub gates: Vec<GateLine>,
    pub problems: Vec<Problem>,
    /// Whether a run could be started.
    #[serde(skip)]
    pub valid: bool,
}

fn word<S: Serializer>(format: &Option<Format>, serializer: S) -> Result<S::Ok, S::Error> {
    format.map(Format::as_str).serialize(serializer)
}

#[derive(Clone, Debug, Serialize)]
pub struct PhaseLine {
    pub id: String,
    pub name: String,
    pub checkpoint: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct TaskLine {
    pub id: String,
    pub name: String,
    pub phase: String,
    pub kind: TaskKind,
    pub needs: Vec<String>,
}

/// The kind of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskKind {
    /// Work for a program, named as in workflow files.
    Work(&'static str),
    /// A question to a person, named as in workflow files.
    Question(&'static str),
}

impl TaskKind {
    fn of(work: &Work) -> Self {
        match work {
            Work::Checkpoint(checkpoint) => match &checkpoint.question {
                Some(question) => Self::Question(question.as_str()),
                None => Self::Work(checkpoint.as_str()),
            },
            Work::Run(_) | Work::Script(_) | Work::Pass | Work::Agent(_) | Work::Adaptive(_) => Self::Work(work.as_str()),
        }
    }
}

impl Serialize for TaskKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Work(word) => serializer.serialize_str(word),
            Self::Question(word) => serializer.collect_str(&format_args!("checkpoint:{word}")),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct GateLine {
    pub id: String,
    pub name: String,
    pub phase: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    pub run: String,
}

impl FileReport {
    /// Creates the report for a file.
    pub fn of(read: WorkflowFile) -> Self {
        let mut report = Self { format: Some(read.format), problems: read.problems, ..Self::default() };
        let Some(workflow) = read.workflow else { return report };
        report.valid = true;
        for phase in &workflow.phases {
            let (id, name) = (phase.id.to_string(), phase.title().to_owned());
            report.phases.push(PhaseLine { id, name, checkpoint: phase.checkpoint.is_some() });
            report.tasks.extend(phase.tasks.iter().map(|task| TaskLine {
                id: task.id.to_string(),
                name: task.name.clone().unwrap_or_else(|| task.id.to_string()),
                phase: phase.id.to_string(),
                kind: TaskKind::of(&task.work),
                needs: task.needs.iter().map(ToString::to_string).collect(),
            }));
            report.gates.extend(phase.gates.iter().map(|gate| GateLine {
                id: gate.id.to_string(),
                name: gate.title().to_owned(),
                phase: phase.id.to_string(),
                task: gate.task.as_ref().map(ToString::to_string),
                run: gate.run.clone(),
            }));
        }
        report
    }
}
