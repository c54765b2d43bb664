//! The content of a pipeline's state file. It is derived from the run, so its lists always agree with each other.

use crate::first_error::output_position;
use lockgate_engine::run::pipeline::{FileError, Fix, Imported, Lifecycle, Notes, PipelineFailure, PipelineProgress, Review};
use lockgate_engine::run::state::Run;
use lockgate_engine::spec::workflow::Pipeline;
use lockgate_engine::time::Timestamp;
use serde_json::{Map, Value, json};

/// The maximum length of an error message in the file.
const MESSAGE_CHARACTERS: usize = 500;

/// The content of a pipeline's state file.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// The id of the pipeline.
    pub prd: String,
    /// The title of the pipeline.
    pub title: String,
    /// The number of the current phase; 0 before the first.
    pub current_phase: u32,
    pub status: Lifecycle,
    pub completed: Vec<String>,
    pub in_progress: Vec<String>,
    /// Workstreams that have not started, or that must be redone.
    pub pending: Vec<String>,
    /// The outputs of completed workstreams.
    pub artifacts: Vec<(String, Vec<String>)>,
    pub gates_passed: Vec<String>,
    pub gates_pending: Vec<String>,
    /// The time of the last change, in ISO 8601.
    pub timestamp: String,
    /// Why the pipeline failed.
    pub error: Option<FileError>,
    pub review: Option<Review>,
    pub notes: Notes,
}

/// The document of a run; `None` if the run is not a pipeline. File names are relative to `root`.
pub fn document(run: &Run, root: Option<&str>) -> Option<Document> {
    let (pipeline, known) = run.pipeline()?;
    let (review, notes) = (known.review.clone(), known.notes.clone());
    if let Some(imported) = known.unmoved() {
        return Some(Document { review, notes, ..Document::of_imported(pipeline, imported, known.changed_at) });
    }
    let progress = run.pipeline_progress()?;
    let error = match progress.status {
        Lifecycle::Failed => run.pipeline_failure().map(|failure| error(failure, root)),
        Lifecycle::Initialized | Lifecycle::InProgress | Lifecycle::Paused | Lifecycle::Complete => None,
    };
    let timestamp = known.changed_at.to_string();
    Some(Document { error, review, notes, ..Document::of_progress(pipeline, progress, timestamp) })
}

/// Why the run failed, with the position that the tool's output names.
fn error(failure: PipelineFailure<'_>, root: Option<&str>) -> FileError {
    let PipelineFailure { workstream, message, output } = failure;
    match output_position(output) {
        None => FileError { workstream, message: cut(message), file: None, line: None },
        Some(place) => {
            let inside = root.and_then(|root| place.file.strip_prefix(root)).map(|inside| inside.trim_start_matches('/'));
            let file = Some(inside.unwrap_or(&place.file).to_owned());
            FileError { workstream, message: cut(&place.message), file, line: place.line }
        }
    }
}

fn cut(message: &str) -> String {
    message.chars().take(MESSAGE_CHARACTERS).collect()
}

impl Document {
    /// The document of a pipeline that has not changed since it was imported: what its file said.
    pub fn of_imported(pipeline: &Pipeline, imported: &Imported, at: Timestamp) -> Self {
        let timestamp = imported.timestamp.clone().unwrap_or_else(|| at.to_string());
        let (error, review) = (imported.error.clone(), imported.review.clone());
        Self { error, review, ..Self::of_progress(pipeline, PipelineProgress::of_imported(imported), timestamp) }
    }

    fn of_progress(pipeline: &Pipeline, progress: PipelineProgress, timestamp: String) -> Self {
        let PipelineProgress { current_phase, status, completed, in_progress, pending, artifacts, gates_passed, gates_pending } =
            progress;
        Self {
            prd: pipeline.prd.clone(),
            title: pipeline.title.clone(),
            current_phase,
            status,
            completed,
            in_progress,
            pending,
            artifacts,
            gates_passed,
            gates_pending,
            timestamp,
            error: None,
            review: None,
            notes: Notes::default(),
        }
    }

    /// The document as JSON, with keys in the order of the reference format.
    pub fn to_json(&self) -> Map<String, Value> {
        let artifacts: Map<String, Value> = self.artifacts.iter().map(|(name, paths)| (name.clone(), json!(paths))).collect();
        let mut keys = Map::new();
        let mut put = |key: &str, value: Value| drop(keys.insert(key.to_owned(), value));
        put("prd", json!(self.prd));
        put("prd_title", json!(self.title));
        put("current_phase", json!(self.current_phase));
        put("status", json!(self.status.as_str()));
        put("completed_workstreams", json!(self.completed));
        put("in_progress_workstreams", json!(self.in_progress));
        put("pending_workstreams", json!(self.pending));
        put("artifacts", Value::Object(artifacts));
        put("gates_passed", json!(self.gates_passed));
        put("gates_pending", json!(self.gates_pending));
        put("timestamp", json!(self.timestamp));
        if let Some(error) = &self.error {
            put("error", error_json(error));
        }
        if let Some(review) = &self.review {
            put("adversarial_review", review_json(review));
        }
        let fixes = |fixes: &[Fix]| json!(fixes);
        let notes = [
            ("eslint_fixes", fixes(&self.notes.eslint_fixes)),
            ("cleanup_done", json!(self.notes.cleanup_done)),
            ("key_fixes", fixes(&self.notes.key_fixes)),
        ];
        for (key, value) in notes {
            if value.as_array().is_some_and(|list| !list.is_empty()) {
                put(key, value);
            }
        }
        keys
    }
}

fn error_json(error: &FileError) -> Value {
    let mut keys = Map::new();
    keys.insert("workstream".into(), json!(error.workstream));
    keys.insert("message".into(), json!(error.message));
    keys.extend(error.file.as_ref().map(|file| ("file".to_owned(), json!(file))));
    keys.extend(error.line.map(|line| ("line".to_owned(), json!(line))));
    Value::Object(keys)
}

fn review_json(review: &Review) -> Value {
    let mut keys = Map::new();
    keys.insert("verdict".into(), json!(review.verdict.as_str()));
    keys.insert("p0_count".into(), json!(review.p0));
    keys.insert("p1_count".into(), json!(review.p1));
    keys.insert("attempt".into(), json!(review.attempt));
    keys.extend(review.findings.as_ref().map(|path| ("findings_path".to_owned(), json!(path))));
    keys.extend(review.override_reason.as_ref().map(|reason| ("override_reason".to_owned(), json!(reason))));
    Value::Object(keys)
}
