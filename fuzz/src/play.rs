//! Commands in any order: decisions fit the state, and the stored history reproduces it.

use lockgate_engine::digest::Digest;
use lockgate_engine::hold::{Hold, PresentedFile, Seen};
use lockgate_engine::id::{DriverId, RunId, StepKey, TaskKey};
use lockgate_engine::run::agent::{AgentReport, Usage};
use lockgate_engine::run::command::{
    Actor, Caller, Channel, Command, CommandKind, Create, Credential, Envelope, GapsFound, Item, Presentation, TaskOutcome,
    TerminalRule,
};
use lockgate_engine::run::effect::Effect;
use lockgate_engine::run::event::{
    ConditionOutcome, Created, DiffBase, Failure, FailureKind, OutputFile, PresetAnswer, RefusedAttempt,
};
use lockgate_engine::run::hash_chain::SealedCommit;
use lockgate_engine::run::index::IndexRows;
use lockgate_engine::run::pipeline::PipelineCommand;
use lockgate_engine::run::{Run, Status, create, handle};
use lockgate_engine::spec::read;
use lockgate_engine::spec::subagent::Subagent;
use lockgate_engine::spec::workflow::{Reads, Work, Workflow};
use lockgate_engine::stored_value::StoredValue;
use lockgate_engine::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// A workflow in which everything can happen that can happen to a run.
pub const WORKFLOW: &str = include_str!("play.yaml");

pub(crate) fn workflow() -> Arc<Workflow> {
    static READ: OnceLock<Arc<Workflow>> = OnceLock::new();
    READ.get_or_init(|| Arc::new(read(WORKFLOW).workflow.expect("play.yaml is valid"))).clone()
}

/// Plays commands of two bytes each: the kind of command, and its variant.
pub fn run(bytes: &[u8]) {
    let mut play = Play::new("run00000", bytes.first().is_some_and(|first| first % 2 == 1));
    for command in bytes.chunks_exact(2) {
        play.step(command[0], command[1]);
    }
    play.is_reproduced_by_its_history();
}

/// Paths through the workflow: straight, with errors, with detours.
pub fn seeds() -> Vec<Vec<u8>> {
    let paths: [&[u8]; 6] =
        [&[0], &[0, 0, 1, 0], &[0, 0, 6, 0, 0, 2], &[3, 0, 7, 4, 0], &[0, 5, 6, 8, 7, 0, 1], &[0, 0, 6, 12, 9]];
    paths
        .iter()
        .map(|path| (0..120_u8).flat_map(|step| [path[usize::from(step) % path.len()], step.wrapping_mul(37)]).collect())
        .collect()
}

/// A run, its stored commits, and the time.
pub(crate) struct Play {
    pub(crate) run: Run,
    pub(crate) commits: Vec<(SealedCommit, IndexRows)>,
    now: i64,
}

impl Play {
    pub(crate) fn new(id: &str, with_presets: bool) -> Self {
        let preset =
            |selector: &str, option: &str| PresetAnswer { selector: selector.into(), option: option.into(), feedback: None };
        let created = Created {
            feature: Some("login".into()),
            flags: vec!["backend".into()],
            vars: BTreeMap::from([("count".to_owned(), StoredValue::Inline("3".into()))]),
            ..Created::new(RunId::from(id), Digest::of(&workflow().to_bytes()), "out".into(), DriverId::from("driver-1"))
        };
        let presets = if with_presets { vec![preset("plan", "1"), preset("build/check", "rerun")] } else { Vec::new() };
        let body = Create { created, presets };
        let (mut run, entries) = create(&envelope(person(), 0, true), &body, workflow()).expect("a person may start a run");
        let (_, sealed, rows) = run.seal(entries);
        Self { run, commits: vec![(sealed, rows)], now: 0 }
    }

    /// Handles one command; a refusal must change nothing.
    pub(crate) fn step(&mut self, what: u8, how: u8) {
        self.now += 1000;
        let Some((actor, body)) = self.command(what, how) else { return };
        let driving = what & 0x80 == 0;
        let before = self.run.clone();
        let mut followed = driving;
        match handle(&mut self.run, &command(actor, body, self.now, driving)) {
            Err(refusal) => {
                crate::spec::can_be_shown(&refusal.to_string());
                assert_eq!(self.run, before, "a refusal changes nothing");
                followed = false;
            }
            Ok(entries) if entries.is_empty() => assert_eq!(self.run, before, "the state changed without an event"),
            Ok(entries) => {
                let (_, sealed, rows) = self.run.seal(entries);
                self.commits.push((sealed, rows));
            }
        }
        let (status, pending) = (self.run.status(), self.run.pending());
        if self.run.end.is_some() {
            assert!(pending.is_empty(), "an effect is pending after the end");
        } else if followed && !self.run.stopping {
            assert!(status != Status::Running || !pending.is_empty(), "the run is running without a pending effect");
            assert!(status != Status::Waiting || !self.run.open_holds().is_empty(), "the run waits without an open hold");
        }
    }

    /// Replaying the commits, and loading the materialized state, both reproduce the state.
    pub(crate) fn is_reproduced_by_its_history(&self) {
        let (first, rows) = &self.commits[0];
        let (mut replayed, replayed_rows) = Run::first(first, workflow()).expect("a history that was written");
        assert_eq!(replayed_rows, *rows);
        for (commit, rows) in &self.commits[1..] {
            assert!(commit.follows(&replayed.id, replayed.head), "a commit does not follow the previous one");
            assert_eq!(replayed.apply_commit(commit).expect("a history that was written"), *rows, "other rows");
        }
        assert_eq!(replayed, self.run, "the history gives another state");
        let mut loaded = Run::from_bytes(&self.run.to_bytes()).expect("a state that was written");
        loaded.attach(workflow()).expect("the definition that it was written with");
        assert_eq!(loaded, self.run, "the materialized state does not round-trip");
        self.run.context(&Reads::All);
    }

    fn command(&self, what: u8, how: u8) -> Option<(Actor, CommandKind)> {
        let number = usize::from(how);
        let driver = Actor::driver();
        Some(match what & 0x1f {
            0..=4 => (driver, self.outcome(what & 0x1f, how)?),
            5 => (driver, self.stale_outcome(how)),
            6 | 11 => {
                let open = self.run.open_holds();
                let hold = open.get(number % open.len().max(1))?;
                let options = hold.options.len().max(1);
                let revision = [Some(hold.revision), None, Some(hold.revision + 1)][usize::from(how >> 6) % 3];
                let feedback = (how & 8 == 8).then(|| "because".to_owned());
                let option = (number / 2 % (options + 1) + 1).to_string();
                let actor = if what & 0x1f == 6 { person() } else { agent() };
                (actor, CommandKind::Answer { hold: hold.id.clone(), revision, option, feedback })
            }
            7 => (
                driver,
                CommandKind::TakeOver { driver: DriverId::new(format!("driver-{how}")), detached: how.is_multiple_of(2) },
            ),
            8 => (driver, CommandKind::Interrupt { signal: "TERM".into() }),
            9 if how > 200 => (person(), CommandKind::Cancel { reason: None }),
            9 => (driver, CommandKind::Advance),
            10 => {
                let presets = vec![PresetAnswer {
                    selector: ["plan", "build/slow", "build/check", "ship"][number % 4].into(),
                    option: (number / 4 % 4).to_string(),
                    feedback: None,
                }];
                (person(), CommandKind::PresetAnswers { presets })
            }
            12 => (
                person(),
                CommandKind::RetryTask { step: self.named(how), cut_off: (how & 1 == 1).then_some(u32::from(how >> 5)) },
            ),
            13 => {
                let cut_off = (how & 1 == 1).then_some(u32::from(how >> 5));
                (person(), CommandKind::SkipTask { step: self.named(how), reason: "no need".into(), cut_off })
            }
            14 => {
                let refused = RefusedAttempt::new("answer a hold", None, "no".into());
                (agent(), CommandKind::RecordRefusal(refused))
            }
            _ => (person(), CommandKind::Advance),
        })
    }

    /// The outcome of a pending effect.
    fn outcome(&self, what: u8, how: u8) -> Option<CommandKind> {
        let pending = self.run.pending();
        let effect = pending.get(usize::from(how) % pending.len().max(1))?.clone();
        let well = what != 1;
        let digest = Digest::of(&[how & 0x70]);
        let files = vec![PresentedFile::new("out/plan.md", Seen::File { digest, bytes: 1, mode: 0o644 })];
        Some(match effect {
            Effect::Task { key, attempt } => {
                let result = (what == 2).then(|| StoredValue::Inline(how.to_string()));
                let file = OutputFile { path: format!("{}.txt", how & 3), digest, bytes: 1, stored: how & 4 == 4 };
                let outputs = if what == 3 { vec![file] } else { Vec::new() };
                let task = self.run.declared(&key)?;
                let item = |name: &str| Item { key: name.into(), value: StoredValue::Inline(format!("\"{name}\"")) };
                let scout = Subagent { kind: "scout".into(), config: BTreeMap::new() };
                let asks = matches!(task.work, Work::Script(_) | Work::Adaptive(_)) && how & 0x21 == 0x21;
                let outcome = match &task.work {
                    _ if !well => TaskOutcome::Failed(failure(how)),
                    _ if asks => TaskOutcome::QueriesAgent(StoredValue::Inline("\"why\"".into())),
                    _ if task.for_each.is_some() && key.item.is_none() => {
                        TaskOutcome::Items(["a", "b", "c"][..usize::from(how & 3)].iter().map(|name| item(name)).collect())
                    }
                    Work::Checkpoint(checkpoint) => {
                        let question = checkpoint.question.clone();
                        TaskOutcome::Asks(Box::new(Presentation { question, automatic: how & 8 == 8, ..Presentation::default() }))
                    }
                    Work::Adaptive(_) => TaskOutcome::Agents(vec![scout; usize::from(how & 1)]),
                    _ if task.until.is_some() && what == 3 => {
                        TaskOutcome::Again { result, outputs, why: String::new(), failed_check: None }
                    }
                    _ => TaskOutcome::Finished { result, outputs },
                };
                let agent = task.agent().map(|_| Box::new(report(how)));
                CommandKind::TaskEnded { key, attempt, outcome, agent, commit: None }
            }
            Effect::Gate { phase, iteration, gate, attempt } => {
                CommandKind::GateEnded { phase, iteration, gate, attempt, failure: (!well).then(|| failure(how)) }
            }
            Effect::Evaluate { phase, iteration } => {
                let outcome = match what {
                    1 => ConditionOutcome::Error("it threw".into()),
                    2 => ConditionOutcome::False,
                    _ => ConditionOutcome::True,
                };
                CommandKind::ConditionEvaluated { phase, iteration, outcome }
            }
            Effect::Show { phase, iteration } => {
                let files = if what == 3 { files } else { Vec::new() };
                let shown = Presentation { prompt: "Go on?".into(), files, automatic: how & 8 == 8, ..Presentation::default() };
                CommandKind::Shown { phase, iteration, shown: Box::new(shown) }
            }
            Effect::Recheck { hold, revision } => {
                let Hold { files: shown, diff, .. } = self.run.holds.get(&hold)?.clone();
                let (files, diff) = if well { (shown, diff) } else { (files, None) };
                CommandKind::Rechecked { hold, revision, files, diff, differences: Vec::new() }
            }
            Effect::DiffBase { phase, iteration } => {
                let missing = DiffBase::Missing("no repository".into());
                let tree = DiffBase::Tree { tree: how.to_string(), kept_by: self.run.id.clone() };
                CommandKind::DiffBaseRecorded { phase, iteration, base: if well { tree } else { missing } }
            }
            Effect::Check { hold, revision } => CommandKind::Checked { hold, revision, failure: (!well).then(|| failure(how)) },
            Effect::Wake { timer, .. } => CommandKind::TimerDue { timer },
            Effect::When { key } => {
                let outcome = match what {
                    1 => ConditionOutcome::Error("it threw".into()),
                    2 => ConditionOutcome::False,
                    _ => ConditionOutcome::True,
                };
                CommandKind::WhenEvaluated { key, outcome }
            }
            Effect::Gaps { phase, iteration, round } => {
                let gaps = GapsFound::Gaps {
                    status: "incomplete".into(),
                    gaps: vec!["a gap".into()],
                    action: None,
                    agents: Vec::new(),
                    message: None,
                };
                let found = match what {
                    1 => GapsFound::Error("it threw".into()),
                    2 => gaps,
                    _ => GapsFound::Whole { status: "complete".into(), message: None },
                };
                CommandKind::GapsChecked { phase, iteration, round, found }
            }
            Effect::QueryAgent { requester, .. } => {
                let text = if well { Ok(StoredValue::Inline("\"so\"".into())) } else { Err(failure(how)) };
                CommandKind::AgentQueryAnswered { requester, text, agent: None }
            }
            Effect::Artifacts { key } => {
                let paths = if well { vec!["made.txt".to_owned()] } else { Vec::new() };
                CommandKind::Pipeline(Box::new(PipelineCommand::ArtifactsFound { key, paths, missing: Vec::new() }))
            }
            Effect::Finalize => {
                let file = OutputFile { path: "final.md".into(), digest, bytes: 1, stored: false };
                CommandKind::Finalized { made: if well { Ok(file) } else { Err(failure(0)) } }
            }
        })
    }

    /// The outcome of something that is not running, or no longer.
    fn stale_outcome(&self, how: u8) -> CommandKind {
        let attempt = u32::from(how >> 5);
        match self.named(how) {
            StepKey::Task(key) => CommandKind::TaskEnded {
                key,
                attempt,
                outcome: TaskOutcome::Finished { result: None, outputs: Vec::new() },
                agent: None,
                commit: None,
            },
            StepKey::Gate { phase, iteration, gate } => CommandKind::GateEnded { phase, iteration, gate, attempt, failure: None },
        }
    }

    /// A task or gate of the workflow, in one of the first executions of its phase or in the current one.
    fn named(&self, how: u8) -> StepKey {
        let workflow = workflow();
        let phase = &workflow.phases[usize::from(how & 3) % workflow.phases.len()];
        let present = self.run.iteration_counts.get(phase.id.as_str()).copied().unwrap_or(1);
        let iteration = if how & 0x10 == 0 { present } else { u32::from(how >> 6) };
        let number = usize::from(how >> 2 & 7);
        let key = |task| TaskKey { phase: phase.id.clone(), iteration, task, item: None };
        match phase.tasks.get(number) {
            Some(task) => StepKey::Task(key(task.id.clone())),
            None => match phase.gates.get(number % phase.gates.len().max(1)) {
                Some(gate) => StepKey::Gate { phase: phase.id.clone(), iteration, gate: gate.id.clone() },
                None => StepKey::Task(key(phase.tasks[0].id.clone())),
            },
        }
    }
}

fn report(how: u8) -> AgentReport {
    let usage = Usage { cost_micros: (how & 1 == 1).then_some(u64::from(how) * 10_000), ..Usage::default() };
    AgentReport { agent: "default".into(), session: (how & 2 == 2).then(|| "s".into()), usage, asks: 1, ..AgentReport::default() }
}

fn failure(how: u8) -> Failure {
    let kind = match how & 3 {
        0 => FailureKind::Exit(1),
        1 => FailureKind::Budget,
        _ => FailureKind::Timeout,
    };
    Failure { kind, message: "it broke".into(), tail: "the last line".into() }
}

fn person() -> Actor {
    Actor {
        credential: Credential::Person,
        name: "ada".into(),
        channel: Channel::Command,
        terminal: true,
        inside_task: None,
        uid: Some(1000),
    }
}

fn agent() -> Actor {
    Actor {
        credential: Credential::Agent,
        name: "bot".into(),
        channel: Channel::Command,
        terminal: false,
        inside_task: Some("a/b".into()),
        uid: Some(1000),
    }
}

fn command(actor: Actor, kind: CommandKind, now: i64, driving: bool) -> Command {
    Command { envelope: envelope(actor, now, driving), kind }
}

fn envelope(actor: Actor, now: i64, driving: bool) -> Envelope {
    let caller = Caller::new(actor, TerminalRule::Required);
    let mut seed = [0; 16];
    seed[..8].copy_from_slice(&now.to_le_bytes());
    Envelope { id: None, caller, at: Timestamp::from_millis(now), seed, driving }
}
