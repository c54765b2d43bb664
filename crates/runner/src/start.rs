//! From a workflow file to the beginning of a run: read, check, freeze.

use crate::includes::IncludeFiles;
use crate::root::{self, Root};
use lockgate_engine::digest::Digest;
use lockgate_engine::id::{DriverId, IdSource, RunId};
use lockgate_engine::run::command::Create;
use lockgate_engine::run::event::{Created, FrozenFile, PresetAnswer};
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

/// So many plans of a folder are read.
const MAX_PLANS: usize = 500;

/// A workflow file that was read.
pub struct WorkflowFile {
    /// Where it lies.
    pub path: PathBuf,
    /// The kind of file that it was taken for, by its content.
    pub format: Format,
    /// Its text.
    pub source: String,
    /// What it says, unless it has errors.
    pub workflow: Option<Workflow>,
    /// What is wrong with it.
    pub problems: Vec<Problem>,
    /// The files beside it that belong to it, with their texts.
    pub includes: BTreeMap<PathBuf, String>,
    /// Plans of a directory that are done and so are not part of it.
    pub skipped: Vec<String>,
}

/// Which plans of a directory run although they are done: their summary exists.
#[derive(Clone, Debug, Default)]
pub enum DonePlans {
    /// None of them.
    #[default]
    Skip,
    /// All of them.
    Include,
    /// These, by the names of their files: a run that started with them keeps them.
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
    /// The operating system says no.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is a folder.
    #[error("{} cannot be read: it is a folder; name the workflow file in it", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// All plans in it are done.
    #[error("{}", all_done(path, *.count))]
    AllDone {
        /// The directory.
        path: PathBuf,
        /// How many there are.
        count: usize,
    },
    /// It is larger than any workflow.
    #[error("{} has {bytes} bytes, and a workflow file may have {MAX_BYTES}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
    },
    /// It is no text.
    #[error("{} is not UTF-8 text", path.display())]
    NotText {
        /// The file.
        path: PathBuf,
    },
}

fn all_done(path: &Path, count: usize) -> String {
    match count {
        1 => format!("the only plan in {} is done: it has its summary", path.display()),
        _ => format!("all {count} plans in {} are done: each has its summary", path.display()),
    }
}

/// Reads a text that is no longer than a workflow file may be.
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

/// Reads and checks a workflow file of any kind, or the plans of a folder.
pub fn read_workflow(path: &Path) -> Result<WorkflowFile, WorkflowFileError> {
    read_workflow_with(path, &DonePlans::Skip)
}

/// The same, with a choice of the plans of a directory that are done.
pub fn read_workflow_with(path: &Path, done: &DonePlans) -> Result<WorkflowFile, WorkflowFileError> {
    if path.is_dir() {
        return read_plans(path, done);
    }
    let source = read_text(path)?;
    let mut include_files = IncludeFiles::of(path);
    // Nothing in it tells what it is to be.
    let is_plan_to_be = source.trim().is_empty() && path.extension().is_some_and(|extension| extension == "md");
    let ReadFile { format, read } = match is_plan_to_be {
        true => ReadFile { format: Format::Plan, read: plan::workflow::read_workflow(&source) },
        false => file_format::read_with_includes(&source, &mut include_files),
    };
    let includes = include_files.into_read();
    let (path, skipped) = (path.to_owned(), Vec::new());
    Ok(WorkflowFile { path, format, source, workflow: read.workflow, problems: read.problems, includes, skipped })
}

/// Reads and checks the plans of a folder; other files there are passed over.
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
        // Summaries of plans begin like plans, and have no tasks.
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
    // The folder itself stands for which plans there are.
    let source = found.iter().fold(String::new(), |names, (name, _)| names + name + "\n");
    let includes = found.into_iter().map(|(name, text)| (folder.join(name), text)).collect();
    let (path, format) = (folder.to_owned(), Format::Plan);
    Ok(WorkflowFile { path, format, source, workflow: read.workflow, problems: read.problems, includes, skipped })
}

/// What a run begins with, beside its workflow.
#[derive(Clone, Debug, Default)]
pub struct StartOptions {
    /// What it is about.
    pub feature: Option<String>,
    /// Flags, with or without their dashes.
    pub flags: Vec<String>,
    /// Values that go before those of the workflow.
    pub vars: BTreeMap<String, Value>,
    /// Answers in advance.
    pub presets: Vec<PresetAnswer>,
    /// Whether it is left to whichever process drives in the background.
    pub detached: bool,
    /// The command of the agent that works whatever else is configured.
    pub agent: Option<String>,
}

/// A run that is ready to begin.
pub struct Prepared {
    /// How it begins.
    pub create: Create,
    /// Its definition.
    pub workflow: Arc<Workflow>,
    /// Values that its first events refer to.
    pub values: Vec<(Digest, Vec<u8>)>,
}

/// Why a run cannot have the output directory that its workflow names.
#[derive(Debug, thiserror::Error)]
pub enum OutputDirError {
    /// The template cannot be filled in.
    #[error("output_dir cannot be filled in: {0}")]
    Template(#[from] TemplateError),
    /// It is the root, or outside of it.
    #[error("output_dir {0:?} must be a folder under the root, and not the root itself")]
    Outside(String),
    /// It is where Lockgate keeps its state.
    #[error("output_dir {0:?} lies in {folder}, where Lockgate keeps its state; choose another folder", folder = root::FOLDER)]
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

/// A workflow that many runs can begin with.
#[derive(Clone)]
pub struct Frozen {
    workflow: Arc<Workflow>,
    vars: BTreeMap<String, Value>,
    files: Vec<FrozenFile>,
    definition: Digest,
    /// The definition, and the texts of the files.
    values: Vec<(Digest, Vec<u8>)>,
}

impl Frozen {
    /// Freezes a workflow as it is now.
    pub fn new(root: &Root, file: &WorkflowFile, workflow: Workflow) -> Self {
        let mut workflow = workflow;
        // The values of a run are in its first event, those of the workflow among them.
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

    /// The definition that was frozen.
    pub fn workflow(&self) -> &Arc<Workflow> {
        &self.workflow
    }

    /// Its digest, and the files that it was made from.
    pub fn definition(&self) -> (Digest, &[FrozenFile]) {
        (self.definition, &self.files)
    }

    /// The stored values that stand behind both.
    pub fn values(&self) -> &[(Digest, Vec<u8>)] {
        &self.values
    }

    /// Makes a new run of it ready to begin.
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
        let created = Created {
            files: self.files.clone(),
            feature: start_options.feature,
            flags,
            vars,
            detached: start_options.detached,
            agent: start_options.agent,
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
    if first.is_some_and(|part| part.as_os_str() == root::FOLDER) {
        return Err(OutputDirError::InState(path));
    }
    Ok(path)
}

/// A path as people would name it: from the root where it lies under it.
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
        let told = filled("o/{{vars.sorce}}").unwrap_err().to_string();
        assert_eq!(told, "output_dir cannot be filled in: `vars.sorce` is not defined here: did you mean `vars.source`?");
        assert!(matches!(filled("../x"), Err(OutputDirError::Outside(_))));
        assert!(matches!(filled(".lockgate/x"), Err(OutputDirError::InState(_))));
    }

    #[test]
    fn a_directory_given_as_a_workflow_file_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let Err(error) = read_workflow(folder.path()) else { panic!("a folder was read") };
        assert!(error.to_string().ends_with("cannot be read: it is a folder; name the workflow file in it"), "{error}");
    }
}
