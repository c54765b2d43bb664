//! Starts a run from a workflow file: read, check, freeze.

use crate::includes::IncludeFiles;
use crate::root::{self, Root};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, IdSource, RunId};
use lockgate_engine::run::command::Create;
use lockgate_engine::run::event::{Created, FrozenFile, PresetAnswer};
use lockgate_engine::run::issue::Issue;
use lockgate_engine::spec::MAX_BYTES;
use lockgate_engine::spec::problem::Problem;
use lockgate_engine::spec::workflow::Workflow;
use lockgate_engine::stored_value::StoredValue;
use lockgate_engine::template::{self, Escape, TemplateError};
use lockgate_formats::file_format::{self, Format, ReadFile};
use lockgate_formats::plan;
use lockgate_formats::plan::workflow::{PlanText, read_directory, summary_names};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The maximum number of plans read from a directory.
const MAX_PLANS: usize = 500;

pub struct WorkflowFile {
    pub path: PathBuf,
    /// The detected file format.
    pub format: Format,
    pub source: String,
    /// The parsed workflow; `None` if the file has errors.
    pub workflow: Option<Workflow>,
    pub problems: Vec<Problem>,
    /// Included files with their contents.
    pub includes: BTreeMap<PathBuf, String>,
    /// Names of completed plans in a directory, which are not part of the workflow.
    pub skipped: Vec<String>,
}

/// Which completed plans of a directory (those with a summary) are included.
#[derive(Clone, Debug, Default)]
pub enum DonePlans {
    #[default]
    Skip,
    Include,
    /// Only these file names: a run keeps the plans it started with.
    Keep(Vec<String>),
}

impl DonePlans {
    fn runs(&self, name: &str) -> bool {
        match self {
            Self::Skip => false,
            Self::Include => true,
            Self::Keep(names) => names.iter().any(|known| known == name),
        }
    }
}

/// Why a file could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowFileError {
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{} cannot be read: it is a directory; name the workflow file in it", path.display())]
    Folder { path: PathBuf },
    #[error("{}", all_done(path, *.count))]
    AllDone {
        path: PathBuf,
        /// How many there are.
        count: usize,
    },
    #[error("{} has {bytes} bytes, and a workflow file may have {MAX_BYTES}", path.display())]
    TooLarge { path: PathBuf, bytes: u64 },
    #[error("{} is not UTF-8 text", path.display())]
    NotText { path: PathBuf },
}

fn all_done(path: &Path, count: usize) -> String {
    match count {
        1 => format!("the only plan in {} is done: it has its summary", path.display()),
        _ => format!("all {count} plans in {} are done: each has its summary", path.display()),
    }
}

/// Reads a text file, up to the size limit of a workflow file.
pub fn read_text(path: &Path) -> Result<String, WorkflowFileError> {
    let unreadable = |source| WorkflowFileError::Unreadable { path: path.to_owned(), source };
    let file = std::fs::File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_dir() {
        return Err(WorkflowFileError::Folder { path: path.to_owned() });
    }
    let bytes = metadata.len();
    if bytes > MAX_BYTES as u64 {
        return Err(WorkflowFileError::TooLarge { path: path.to_owned(), bytes });
    }
    let mut text = Vec::new();
    file.take(MAX_BYTES as u64 + 1).read_to_end(&mut text).map_err(unreadable)?;
    String::from_utf8(text).map_err(|_| WorkflowFileError::NotText { path: path.to_owned() })
}

/// Reads and checks a workflow file in any format, or a directory of plans.
pub fn read_workflow(path: &Path) -> Result<WorkflowFile, WorkflowFileError> {
    read_workflow_with(path, &DonePlans::Skip)
}

/// Like [`read_workflow`], with a choice of completed plans to include.
pub fn read_workflow_with(path: &Path, done: &DonePlans) -> Result<WorkflowFile, WorkflowFileError> {
    if path.is_dir() {
        return read_plans(path, done);
    }
    let source = read_text(path)?;
    let mut include_files = IncludeFiles::of(path);
    // An empty file has no content to detect its format from.
    let is_plan_to_be = source.trim().is_empty() && path.extension().is_some_and(|extension| extension == "md");
    let ReadFile { format, read } = match is_plan_to_be {
        true => ReadFile { format: Format::Plan, read: plan::workflow::read_workflow(&source) },
        false => file_format::read_with_includes(&source, &mut include_files),
    };
    let includes = include_files.into_read();
    let (path, skipped) = (path.to_owned(), Vec::new());
    Ok(WorkflowFile { path, format, source, workflow: read.workflow, problems: read.problems, includes, skipped })
}

/// Reads and checks the plans in a directory; other files are ignored.
fn read_plans(folder: &Path, done: &DonePlans) -> Result<WorkflowFile, WorkflowFileError> {
    let unreadable = |source| WorkflowFileError::Unreadable { path: folder.to_owned(), source };
    let mut found: Vec<(String, String)> = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).filter(|name| name.ends_with(".md")) else { continue };
        if found.len() >= MAX_PLANS || !path.is_file() {
            continue;
        }
        let text = read_text(&path)?;
        // Plan summaries have the same frontmatter as plans, but no tasks.
        let has_tasks = || text.lines().any(|line| line.trim_start().starts_with("<task"));
        if file_format::detect(&text) == Format::Plan && (has_tasks() || name.ends_with("PLAN.md")) {
            found.push((name.to_owned(), text));
        }
    }
    if found.is_empty() {
        return Err(WorkflowFileError::Folder { path: folder.to_owned() });
    }
    found.sort();
    let is_done = |name: &str, source: &str| {
        !done.runs(name) && summary_names(name, source).iter().any(|summary| folder.join(summary).is_file())
    };
    let texts: Vec<PlanText<'_>> =
        found.iter().map(|(name, source)| PlanText { name, source, is_done: is_done(name, source) }).collect();
    let skipped: Vec<String> = texts.iter().filter(|plan| plan.is_done).map(|plan| plan.name.to_owned()).collect();
    if skipped.len() == found.len() {
        return Err(WorkflowFileError::AllDone { path: folder.to_owned(), count: skipped.len() });
    }
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let name = absolute.file_name().map_or_else(|| "plans".to_owned(), |name| name.to_string_lossy().into_owned());
    let read = read_directory(&name, &texts);
    found.retain(|(name, _)| !skipped.contains(name));
    // The list of file names is the source text, so that adding or removing a plan counts as a change.
    let source = found.iter().fold(String::new(), |names, (name, _)| names + name + "\n");
    let includes = found.into_iter().map(|(name, text)| (folder.join(name), text)).collect();
    let (path, format) = (folder.to_owned(), Format::Plan);
    Ok(WorkflowFile { path, format, source, workflow: read.workflow, problems: read.problems, includes, skipped })
}

/// Options of a new run.
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    pub feature: Option<String>,
    /// Flags, with or without their dashes.
    pub flags: Vec<String>,
    /// Values that override the workflow's `vars`.
    pub vars: BTreeMap<String, Value>,
    /// Preset answers.
    pub presets: Vec<PresetAnswer>,
    /// Whether the run is left to a background process.
    pub detached: bool,
    /// An agent command that overrides all other agent settings.
    pub agent: Option<String>,
    /// The issue that the run works on.
    pub issue: Option<GivenIssue>,
}

/// An issue as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenIssue {
    pub number: Option<u64>,
    /// Identifies the issue in paths.
    pub name: String,
    pub title: String,
    pub body: String,
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    /// Where it was read from.
    pub source: String,
}

/// A run that is ready to be created.
pub struct Prepared {
    pub create: Create,
    pub workflow: Arc<Workflow>,
    /// Values that the first events refer to.
    pub values: Vec<(Digest, Vec<u8>)>,
}

/// Why the output directory that a workflow names cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OutputDirError {
    #[error("output_dir cannot be filled in: {0}")]
    Template(#[from] TemplateError),
    #[error("output_dir {0:?} must be a directory inside the root, not the root itself")]
    Outside(String),
    #[error("output_dir {0:?} is inside {dir}, where Lockgate keeps its state; choose another directory", dir = root::STATE_DIR)]
    InState(String),
}

/// Freezes a workflow for a new run.
pub fn prepare(
    root: &Root,
    driver: &DriverId,
    seed: [u8; 16],
    file: &WorkflowFile,
    workflow: Workflow,
    start_options: StartOptions,
) -> Result<Prepared, OutputDirError> {
    Frozen::new(root, file, workflow).prepare(root, driver, seed, start_options)
}

/// A frozen workflow, from which any number of runs can be created.
#[derive(Clone)]
pub struct Frozen {
    workflow: Arc<Workflow>,
    vars: BTreeMap<String, Value>,
    files: Vec<FrozenFile>,
    definition: Digest,
    /// The definition and the contents of its files.
    values: Vec<(Digest, Vec<u8>)>,
}

impl Frozen {
    pub fn new(root: &Root, file: &WorkflowFile, workflow: Workflow) -> Self {
        let mut workflow = workflow;
        // The `vars` are recorded in the first event of a run, not in the definition.
        let vars = std::mem::take(&mut workflow.vars);
        let bytes = workflow.to_bytes();
        let definition = Digest::of(&bytes);
        let mut files = Vec::new();
        let mut values = vec![(definition, bytes)];
        let texts = std::iter::once((&file.path, &file.source)).chain(&file.includes);
        for (path, text) in texts {
            let text = text.clone().into_bytes();
            files.push(FrozenFile { path: shown_path(root, path), digest: Digest::of(&text) });
            values.push((Digest::of(&text), text));
        }
        Self { workflow: Arc::new(workflow), vars, files, definition, values }
    }

    pub fn workflow(&self) -> &Arc<Workflow> {
        &self.workflow
    }

    /// The digest of the definition and the files it was read from.
    pub fn definition(&self) -> (Digest, &[FrozenFile]) {
        (self.definition, &self.files)
    }

    /// The stored values behind the definition and its files.
    pub fn values(&self) -> &[(Digest, Vec<u8>)] {
        &self.values
    }

    /// Prepares a new run of this workflow.
    pub fn prepare(
        &self,
        root: &Root,
        driver: &DriverId,
        seed: [u8; 16],
        start_options: StartOptions,
    ) -> Result<Prepared, OutputDirError> {
        let run = RunId::new(IdSource::new(seed).next_id());
        let workflow = self.workflow.clone();
        let mut given = self.vars.clone();
        given.extend(start_options.vars);
        let mut values = self.values.clone();
        let mut vars = BTreeMap::new();
        for (name, value) in &given {
            let (stored_value, stored) = StoredValue::keep(value);
            values.extend(stored);
            vars.insert(name.clone(), stored_value);
        }
        let flags: Vec<String> = start_options.flags.iter().map(|flag| flag.trim_start_matches('-').to_owned()).collect();
        let output_dir = match &workflow.output_dir {
            None => root.default_output_dir(&run),
            Some(template) => output_dir(template, &run, &workflow.name, &given, start_options.feature.as_deref(), &flags)?,
        };
        let issue = start_options.issue.map(|given| {
            let (body, stored) = StoredValue::keep(&Value::String(given.body));
            values.extend(stored);
            let GivenIssue { number, name, title, labels, assignees, source, .. } = given;
            Box::new(Issue { number, name, title, body, labels, assignees, source })
        });
        let created = Created {
            files: self.files.clone(),
            feature: start_options.feature,
            flags,
            vars,
            detached: start_options.detached,
            agent: start_options.agent,
            issue,
            ..Created::new(run, self.definition, output_dir, driver.clone())
        };
        let create = Create { created, presets: start_options.presets };
        Ok(Prepared { create, workflow, values })
    }
}

fn output_dir(
    declared: &str,
    run: &RunId,
    workflow: &str,
    vars: &BTreeMap<String, Value>,
    feature: Option<&str>,
    flags: &[String],
) -> Result<String, OutputDirError> {
    let values = serde_json::json!({
        "run": run,
        "feature": {"name": feature.unwrap_or("feature"), "flags": flags},
        "workflow": {"name": workflow},
        "vars": vars,
        "flags": flags,
    });
    let path = template::render(declared, &values, Escape::None)?;
    let outside =
        Path::new(&path).components().any(|part| !matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
    let mut parts = Path::new(&path).components().filter(|part| *part != std::path::Component::CurDir);
    let first = parts.next();
    if outside || first.is_none() {
        return Err(OutputDirError::Outside(path));
    }
    if first.is_some_and(|part| part.as_os_str() == root::STATE_DIR) {
        return Err(OutputDirError::InState(path));
    }
    Ok(path)
}

/// A path for display: relative to the root if it is inside.
fn shown_path(root: &Root, path: &Path) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.strip_prefix(root.dir()).unwrap_or(&absolute).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn filled(template: &str) -> Result<String, OutputDirError> {
        let vars = [("source".to_owned(), json!("src"))].into();
        output_dir(template, &RunId::new("r1"), "build", &vars, None, &["fast".to_owned()])
    }

    #[test]
    fn the_output_directory_template_may_use_values_known_before_the_run_starts() {
        assert_eq!(
            filled("o/{{feature.name}}/{{run}}/{{workflow.name}}/{{vars.source}}/{{flags[0]}}").unwrap(),
            "o/feature/r1/build/src/fast"
        );
    }

    #[test]
    fn an_invalid_output_directory_template_gives_a_suggestion() {
        let message = filled("o/{{vars.sorce}}").unwrap_err().to_string();
        assert_eq!(message, "output_dir cannot be filled in: `vars.sorce` is not defined here: did you mean `vars.source`?");
        assert!(matches!(filled("../x"), Err(OutputDirError::Outside(_))));
        assert!(matches!(filled(".lockgate/x"), Err(OutputDirError::InState(_))));
    }

    #[test]
    fn a_directory_given_as_a_workflow_file_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let Err(error) = read_workflow(folder.path()) else { panic!("a directory was read") };
        assert!(error.to_string().ends_with("cannot be read: it is a directory; name the workflow file in it"), "{error}");
    }
}
