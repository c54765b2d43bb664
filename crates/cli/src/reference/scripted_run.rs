//! A scripted run for pictures and tests: commands at chosen times, without performing effects.

use crate::progress::Progress;
use crate::tree::Tree;
use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{Hold, PresentedFile, Seen};
use lockgate_engine::id::{DriverId, RunId};
use lockgate_engine::run::command::{
    Actor, Caller, Channel, Command, CommandKind, Create, Credential, Envelope, TaskOutcome, TerminalRule,
};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::{Created, Entry, Failure};
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_engine::run::index::IndexRows;
use lockgate_engine::run::{Run, create, handle};
use lockgate_engine::time::Timestamp;
use lockgate_runner::notifications::Reporter;
use lockgate_store::{Append, MemoryStore, Store as _};
use std::sync::Arc;

/// A run, its tree and its reported lines.
pub(crate) struct ScriptedRun {
    pub(crate) run: Run,
    pub(crate) tree: Tree,
    pub(crate) rendered: String,
    progress: Progress,
    reporter: Reporter,
    now: i64,
    first: (SealedCommit, IndexRows),
    files: Vec<(String, Vec<u8>)>,
}

impl ScriptedRun {
    pub(crate) fn of(source: &str, feature: Option<&str>) -> Self {
        Self::with_files(source, feature, &[])
    }

    /// Starts a run in a project with files.
    pub(crate) fn with_files(source: &str, feature: Option<&str>, files: &[(&str, &str)]) -> Self {
        let workflow = lockgate_engine::spec::read(source).workflow.expect("the workflow is valid");
        let created = Created {
            feature: feature.map(str::to_owned),
            ..Created::new(RunId::from("k3f9x2ab"), Digest::of(b"definition"), "out".into(), DriverId::from("driver-1"))
        };
        let body = Create { created, presets: Vec::new() };
        let (mut run, entries) = create(&envelope(person(), 0), &body, Arc::new(workflow)).unwrap();
        let (commit, sealed, rows) = run.seal(entries);
        let (mut progress, tree) = (Progress::with_tree(), Tree::of(&run, true));
        let rendered = progress.rendered(&run, &commit.entries);
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect();
        let reporter = Reporter::default();
        let mut play = Self { run, tree, rendered, progress, reporter, now: 0, first: (sealed, rows), files };
        play.settle();
        play
    }

    /// A store that contains the shown files.
    pub(crate) async fn store(&self) -> MemoryStore {
        let store = MemoryStore::new();
        let (commit, index) = self.first.clone();
        let values = self.files.iter().map(|(_, bytes)| (Digest::of(bytes), bytes.clone())).collect();
        let run = self.run.id.clone();
        store
            .append(Append { run, expected: 0, epoch: None, claim: None, commit, values, index, materialized: None })
            .await
            .unwrap();
        store
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.now)
    }

    pub(crate) fn pass(&mut self, seconds: i64) {
        self.now += seconds * 1000;
    }

    /// Finishes tasks and gates by their addresses.
    pub(crate) fn done(&mut self, addresses: &[&str]) {
        for address in addresses {
            self.end(address, None);
        }
    }

    /// Ends a task or gate, with a failure if one is given.
    pub(crate) fn end(&mut self, address: &str, failure: Option<Failure>) {
        let effects = self.run.pending();
        let body = effects.into_iter().find_map(|effect| match effect {
            Effect::Task { key, attempt } if key.address() == address => {
                let outcome = failure
                    .clone()
                    .map_or_else(|| TaskOutcome::Finished { result: None, outputs: Vec::new() }, TaskOutcome::Failed);
                Some(CommandKind::TaskEnded { key, attempt, outcome, agent: None, commit: None })
            }
            Effect::Gate { phase, iteration, gate, attempt } if format!("{phase}/{gate}") == address => {
                Some(CommandKind::GateEnded { phase, iteration, gate, attempt, failure: failure.clone() })
            }
            Effect::Task { .. }
            | Effect::Gate { .. }
            | Effect::Evaluate { .. }
            | Effect::Show { .. }
            | Effect::DiffBase { .. }
            | Effect::Recheck { .. }
            | Effect::Check { .. }
            | Effect::When { .. }
            | Effect::Gaps { .. }
            | Effect::QueryAgent { .. }
            | Effect::Finalize
            | Effect::Artifacts { .. }
            | Effect::Wake { .. } => None,
        });
        self.submit(Actor::driver(), body.unwrap_or_else(|| panic!("{address} does not run")));
        self.settle();
    }

    /// Shows checkpoints and rechecks shown files, as a driver does.
    pub(crate) fn settle(&mut self) {
        loop {
            let body = self.run.pending().into_iter().find_map(|effect| match effect {
                Effect::Show { phase, iteration } => {
                    let checkpoint = self.run.workflow.phase(phase.as_str())?.checkpoint.clone()?;
                    let shown = |path: &String| PresentedFile::new(path, self.seen(path));
                    let files = checkpoint.show_files.iter().map(shown).collect();
                    Some(CommandKind::Shown {
                        phase,
                        iteration,
                        shown: Box::new(lockgate_engine::run::command::Presentation {
                            prompt: checkpoint.prompt,
                            question: checkpoint.question,
                            files,
                            ..Default::default()
                        }),
                    })
                }
                Effect::Recheck { hold, revision } => {
                    let Hold { files, diff, .. } = self.run.holds[&hold].clone();
                    Some(CommandKind::Rechecked { hold, revision, files, diff, differences: Vec::new() })
                }
                Effect::Check { hold, revision } => Some(CommandKind::Checked { hold, revision, failure: None }),
                Effect::Task { .. }
                | Effect::Gate { .. }
                | Effect::Evaluate { .. }
                | Effect::DiffBase { .. }
                | Effect::When { .. }
                | Effect::Gaps { .. }
                | Effect::QueryAgent { .. }
                | Effect::Finalize
                | Effect::Artifacts { .. }
                | Effect::Wake { .. } => None,
            });
            match body {
                Some(body) => self.submit(Actor::driver(), body),
                None => return,
            }
        }
    }

    fn seen(&self, path: &str) -> Seen {
        let found = self.files.iter().find(|(known, _)| known == path);
        found.map_or(Seen::Absent, |(_, bytes)| Seen::File { digest: Digest::of(bytes), bytes: bytes.len() as u64, mode: 0o644 })
    }

    /// Commits the events of a command.
    pub(crate) fn submit(&mut self, actor: Actor, body: CommandKind) {
        let entries: Vec<Entry> = handle(&mut self.run, &command(actor, body, self.now)).unwrap();
        let (commit, _, _) = self.run.seal(entries);
        self.tree.heard(&self.run, &self.reporter.report(&self.run, &commit.entries));
        self.rendered += &self.progress.rendered(&self.run, &commit.entries);
    }
}

/// A person at a terminal.
pub(crate) fn person() -> Actor {
    Actor {
        credential: Credential::Person,
        name: "ada".into(),
        channel: Channel::Prompt,
        terminal: true,
        inside_task: None,
        uid: Some(1000),
    }
}

fn command(actor: Actor, kind: CommandKind, at: i64) -> Command {
    Command { envelope: envelope(actor, at), kind }
}

fn envelope(actor: Actor, at: i64) -> Envelope {
    let caller = Caller::new(actor, TerminalRule::Required);
    Envelope { id: None, caller, at: Timestamp::from_millis(at), seed: [7; 16], driving: true }
}
