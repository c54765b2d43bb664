//! Prepares checkpoints, rechecks what they showed, and runs the checks of manual actions.

use super::command::{ProcessSpec, prepare as prepare_command, renderer as command_renderer, start};
use super::script::{self, EvalOptions};
use super::values::{Ready, Renderer, TaskValues};
use super::{Shared, TaskCall, conditions, diff, shell, worktree};
use crate::files::{ObserveLimits, RunDirs, diff, observe, reobserve};
use crate::process::Stop;
use crate::root::Step;
use crate::runtime::Performed;
use crate::secret::Masks;
use futures::FutureExt;
use futures::future::BoxFuture;
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{HoldKind, PresentedFile, Scope, Seen};
use lockgate_engine::id::{HoldId, PhaseId, TaskId, TaskKey};
use lockgate_engine::run::Run;
use lockgate_engine::run::command::{CommandKind, Presentation, TaskOutcome};
use lockgate_engine::run::event::{ConditionOutcome, Failure};
use lockgate_engine::spec::workflow::{Checkpoint, DiffSince, Phase, Question, ShowDiff};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The timeout of a check that does not specify one.
const CHECK_TIME: Duration = Duration::from_secs(60);

/// What a checkpoint needs from the run, captured when it is prepared.
struct Preparing {
    checkpoint: Checkpoint,
    renderer: Renderer,
    run_dirs: RunDirs,
    tree: Option<worktree::Wanted>,
    allowed: AutoAnswer,
    diff: Option<(diff::Looking, ShowDiff)>,
    stop: Stop,
}

/// Whether the workflow's policy answers a question without a person.
enum AutoAnswer {
    No,
    Yes,
    When(Box<script::Prepared>),
}

impl Preparing {
    fn new(shared: &Shared, run: &Run, phase: &Phase, checkpoint: &Checkpoint, values: TaskValues<'_>, stop: Stop) -> Self {
        let templates = templates(checkpoint);
        let renderer = Renderer::of(run, phase, Path::new(&run.output_dir), values, templates.iter().map(String::as_str));
        let policy = &run.workflow.policy;
        let rule = match &checkpoint.question {
            None => policy.checkpoint.as_ref(),
            Some(Question::Verify(_)) => policy.verify.as_ref(),
            Some(Question::Decision(_)) => policy.decision.as_ref(),
            Some(Question::Action(_)) => None,
        };
        let allowed = match rule.map(|rule| &rule.when) {
            None => AutoAnswer::No,
            Some(None) => AutoAnswer::Yes,
            Some(Some(when)) => {
                let options = EvalOptions::condition(shared, false, values);
                AutoAnswer::When(Box::new(script::prepare(shared, run, phase, when, options)))
            }
        };
        let (run_dirs, tree) = (shared.run_dirs(run), worktree::of_run(run));
        // Several questions may be prepared concurrently, each under its own name.
        let name = format!("show/{}/{}", phase.id, values.id.map_or("", |(task, _)| task));
        let diff = checkpoint.show_diff.clone().map(|show| (diff::Looking::of(run, name), show));
        Self { checkpoint: checkpoint.clone(), renderer, run_dirs, tree, allowed, diff, stop }
    }

    async fn ready(self, shared: &Shared) -> (Presentation, Vec<(Digest, Vec<u8>)>) {
        let Self { checkpoint, renderer, run_dirs, tree, allowed, mut diff, stop } = self;
        let mut notes = Vec::new();
        let masks = shared.masks();
        let mut showing =
            Presentation { prompt: checkpoint.prompt.clone(), question: checkpoint.question.clone(), ..Presentation::default() };
        let paths = match renderer.ready(shared).await {
            Err(message) => {
                notes.push(format!("values could not be filled in: {message}"));
                checkpoint.show_files.clone()
            }
            Ok(ready) => {
                let mut filling = Filling { ready: &ready, masks: &masks, notes: &mut notes };
                showing.prompt = filling.text(&checkpoint.prompt);
                showing.question = checkpoint.question.as_ref().map(|question| filling.question(question));
                if let Some((_, show)) = &mut diff {
                    filling.diff(show);
                }
                checkpoint.show_files.iter().map(|path| filling.plain(path)).collect()
            }
        };
        let paths = worktree::shown(shared, tree, &run_dirs, paths);
        let observed = observe(&run_dirs, &paths, &ObserveLimits::default(), &|bytes| masks.contains(bytes));
        let mut values = observed.values;
        notes.extend(observed.files.iter().filter_map(note));
        if let Some((looking, ShowDiff { since, paths })) = diff {
            let look = looking.look(shared, since, paths, &stop).await;
            values.extend(diff::values(&look));
            notes.extend(look.notes);
            showing.diff = Some(Box::new(look.shown));
        }
        showing.automatic = match allowed {
            AutoAnswer::No => false,
            AutoAnswer::Yes => true,
            AutoAnswer::When(prepared) => {
                match conditions::truth(shared, script::evaluate(shared, *prepared, &Stop::new()).await) {
                    ConditionOutcome::True => true,
                    ConditionOutcome::False => false,
                    ConditionOutcome::Error(error) => {
                        notes.push(format!("the policy condition could not be evaluated, so a person decides: {error}"));
                        false
                    }
                }
            }
        };
        showing.prompt = masks.mask_text(&showing.prompt).into_owned();
        showing.files = observed.files;
        showing.notes = notes;
        (showing, values)
    }
}

fn templates(checkpoint: &Checkpoint) -> Vec<String> {
    let mut all: Vec<String> = std::iter::once(&checkpoint.prompt).chain(&checkpoint.show_files).cloned().collect();
    let mut collect = |text: &str| {
        all.push(text.to_owned());
        String::new()
    };
    if let Some(question) = &checkpoint.question {
        let _ = question.map_texts(&mut collect);
    }
    if let Some(ShowDiff { since, paths }) = &checkpoint.show_diff {
        all.extend(paths.iter().cloned());
        all.extend(revision(since).cloned());
    }
    all
}

/// The revision that a diff starts from, if it names one.
fn revision(since: &DiffSince) -> Option<&String> {
    match since {
        DiffSince::Ref(name) => Some(name),
        DiffSince::Phase | DiffSince::Run => None,
    }
}

/// Renders the texts of a checkpoint. A text that cannot be rendered stays as it is, with a note.
struct Filling<'a> {
    ready: &'a Ready,
    masks: &'a Masks,
    notes: &'a mut Vec<String>,
}

impl Filling<'_> {
    fn plain(&mut self, template: &str) -> String {
        self.ready.text(template).unwrap_or_else(|error| {
            self.notes.push(error.to_string());
            template.to_owned()
        })
    }

    fn diff(&mut self, show: &mut ShowDiff) {
        show.paths = show.paths.iter().map(|path| self.plain(path)).collect();
        if let DiffSince::Ref(name) = &mut show.since {
            *name = self.text(name).trim().to_owned();
        }
    }

    fn text(&mut self, template: &str) -> String {
        let filled = self.plain(template);
        self.masks.mask_text(&filled).into_owned()
    }

    fn question(&mut self, question: &Question) -> Question {
        let mut filled = question.map_texts(&mut |text| self.text(text));
        // A command is rendered for a shell, each value quoted as one word.
        if let (Question::Action(filled), Question::Action(declared)) = (&mut filled, question)
            && let (Some(check), Some(declared)) = (&mut filled.check, &declared.check)
        {
            check.run = self.ready.shell(&declared.run).unwrap_or_else(|error| {
                self.notes.push(error.to_string());
                declared.run.clone()
            });
        }
        filled
    }
}

pub(super) fn show(shared: Arc<Shared>, run: &Run, phase: &PhaseId, iteration: u32, stop: Stop) -> BoxFuture<'static, Performed> {
    let phase_id = phase.clone();
    let declared = run.workflow.phase(phase.as_str()).and_then(|phase| Some((phase, phase.checkpoint.as_ref()?)));
    let Some((phase, checkpoint)) = declared else {
        // The engine only requests declared checkpoints, and ignores the presentation of any other.
        let shown = Presentation { notes: vec!["the definition has no such checkpoint".to_owned()], ..Presentation::default() };
        let command = CommandKind::Shown { phase: phase_id, iteration, shown: Box::new(shown) };
        return futures::future::ready(command.into()).boxed();
    };
    let preparing = Preparing::new(&shared, run, phase, checkpoint, TaskValues::default(), stop);
    async move {
        let (showing, values) = preparing.ready(&shared).await;
        Performed { command: CommandKind::Shown { phase: phase_id, iteration, shown: Box::new(showing) }, values }
    }
    .boxed()
}

/// A task that is a question; it ends once the question is ready to be shown.
pub(super) fn task(
    shared: Arc<Shared>,
    run: &Run,
    call: TaskCall<'_>,
    checkpoint: &Checkpoint,
    stop: Stop,
) -> BoxFuture<'static, Performed> {
    let preparing = Preparing::new(&shared, run, call.phase, checkpoint, call.values(), stop);
    let (key, attempt) = (call.key.clone(), call.attempt);
    async move {
        let (showing, values) = preparing.ready(&shared).await;
        let outcome = TaskOutcome::Asks(Box::new(showing));
        Performed { command: CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None }, values }
    }
    .boxed()
}

/// Runs the check of a manual action that a person reported as done.
pub(super) fn check(shared: Arc<Shared>, run: &Run, hold: &HoldId, revision: u32, stop: Stop) -> BoxFuture<'static, Performed> {
    let (id, found) = (hold.clone(), run.holds.get(hold));
    let is_login = found.is_some_and(|hold| hold.kind == HoldKind::Authentication);
    let checked = move |failure: Option<Failure>| Performed::from(CommandKind::Checked { hold: id.clone(), revision, failure });
    let check = found.and_then(|hold| Some((hold.terms.check.clone()?, hold.scope.clone())));
    let Some((check, scope)) = check else {
        return futures::future::ready(checked(Some(start("there is nothing to check")))).boxed();
    };
    let asked = match &scope {
        Scope::Tasks(keys) => keys.first().cloned(),
        Scope::Phase { phase, iteration } => {
            Some(TaskKey { phase: phase.clone(), iteration: *iteration, task: TaskId::from("checkpoint"), item: None })
        }
        Scope::Run | Scope::Gate { .. } | Scope::Gaps { .. } => None,
    };
    let phase = asked.as_ref().and_then(|key| run.workflow.phase(key.phase.as_str()));
    let (Some(asked), Some(phase)) = (asked, phase) else {
        return futures::future::ready(checked(Some(start("the definition has no such question")))).boxed();
    };
    let task = run.declared(&asked);
    let asked_key = asked.clone();
    let name = format!("{}-check", asked.task);
    let key = TaskKey { task: TaskId::new(name.clone()), ..asked };
    let (no_dir, no_env) = (None, BTreeMap::new());
    let process_spec = ProcessSpec {
        name: &name,
        address: key.address(),
        step: Step::Task(&key),
        attempt: revision,
        dir: task.map_or(&no_dir, |task| &task.dir),
        env: task.map_or(&no_env, |task| &task.env),
        secrets: task.map_or(&[], |task| &task.secrets),
        timeout: Some(check.timeout.unwrap_or(CHECK_TIME)),
        shell: None,
        feedback: None,
    };
    let mut prepared = prepare_command(&shared, run, phase, process_spec);
    // The command that checks a login is Lockgate's own.
    if is_login {
        prepared.shell = None;
    }
    let renderer = command_renderer(run, phase, &prepared, TaskValues::default(), &[]);
    let tree = match task {
        Some(task) => worktree::wanted(run, &asked_key, task),
        None => worktree::of_run(run),
    };
    async move {
        let outcome = async {
            worktree::enter(&shared, &mut prepared, tree, &stop).await?;
            let ready = renderer.ready(&shared).await.map_err(start)?;
            // The command was rendered when it was shown, so that exactly the shown command runs.
            shell::execute_rendered(&shared, &prepared, &ready, check.run, &stop).await
        };
        checked(outcome.await.err())
    }
    .boxed()
}

/// A note that people need about a shown file.
fn note(file: &PresentedFile) -> Option<String> {
    let path = &file.path;
    match (&file.seen, &file.not_kept) {
        (Seen::Unreadable(why), _) => Some(format!("{path} cannot be shown, and the answer is not bound to it: {why}")),
        (Seen::Absent, _) => Some(format!("{path} does not exist")),
        (Seen::File { .. } | Seen::Directory { .. }, Some(why)) => Some(format!("{path} is shown only by its digest: {why}")),
        (Seen::File { .. } | Seen::Directory { .. }, None) => None,
    }
}

pub(super) fn recheck(shared: Arc<Shared>, run: &Run, hold: &HoldId, revision: u32, stop: Stop) -> BoxFuture<'static, Performed> {
    let (hold_id, found) = (hold.clone(), run.holds.get(hold));
    let before = found.map(|hold| hold.files.clone()).unwrap_or_default();
    let looking = || diff::Looking::of(run, format!("recheck/{hold}"));
    let shown = found.and_then(|hold| hold.diff.clone()).map(|then| (then, looking(), looking()));
    let run_dirs = shared.run_dirs(run);
    async move {
        let masks = shared.masks();
        let now = reobserve(&run_dirs, &before, &ObserveLimits::default(), &|bytes| masks.contains(bytes));
        let (mut changes, mut values, mut seen) = (Vec::new(), now.values, None);
        if now.files != before {
            let known = kept(&shared, &before, &values).await;
            changes = diff(&before, &now.files, &|digest| known.get(digest).cloned());
            changes.extend(now.files.iter().filter_map(note));
        }
        if let Some((then, looking, comparing)) = shown {
            let look = looking.look(&shared, then.since.clone(), then.paths.clone(), &stop).await;
            values.extend(diff::values(&look));
            if !look.shown.is_unchanged_from(&then) {
                changes.push(comparing.differences(&shared, &then, &look.shown, &stop).await);
                changes.extend(look.notes);
            }
            seen = Some(Box::new(look.shown));
        }
        let command = CommandKind::Rechecked { hold: hold_id, revision, files: now.files, diff: seen, differences: changes };
        Performed { command, values }
    }
    .boxed()
}

/// The contents of the files that were shown, from the store, and their current contents.
async fn kept(shared: &Shared, before: &[PresentedFile], now: &[(Digest, Vec<u8>)]) -> BTreeMap<Digest, Vec<u8>> {
    let digests: Vec<Digest> = before.iter().filter_map(|file| file.seen.digest()).collect();
    let stored = shared.store.values(&digests).await.unwrap_or_default();
    let then = digests.into_iter().zip(stored).filter_map(|(digest, bytes)| Some((digest, bytes?)));
    then.chain(now.iter().cloned()).collect()
}
