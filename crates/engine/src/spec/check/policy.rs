//! Policy: which questions may be answered without a person, and when verifications are asked.

use super::Checker;
use super::fields::{Fields, Format, Key, Shape, words};
use crate::id::TaskId;
use crate::spec::code::ProblemCode;
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::{Automatic, Phase, Policy, Question, Task};
use std::ops::Range;

const COLLECT: [(&str, bool); 2] = [("no", false), ("phase", true)];
const PLAIN: [(&str, bool); 2] = [("ask", false), ("auto", true)];

const MAX_CONSECUTIVE: u32 = 1000;

pub(super) const POLICY_ABOUT: &str = "Which questions may be answered without a person. Actions and logins never are. Automatic answers are marked and can be changed.";

pub(super) static POLICY: Format = Format {
    name: "policy",
    what: "`policy`",
    known: &[
        Key::optional(
            "checkpoint",
            Shape::AnyOf(&AUTOMATIC_SHAPES),
            "Plain checkpoints: `auto` takes the first option that continues.",
        )
        .default("ask"),
        Key::optional("verify", Shape::AnyOf(&AUTOMATIC_SHAPES), "Verifications: `auto` approves them.").default("ask"),
        Key::optional("decision", Shape::AnyOf(&AUTOMATIC_SHAPES), "Decisions: `auto` takes the first option.").default("ask"),
        Key::optional(
            "collect",
            Shape::Words(&words(&COLLECT)),
            "`phase` asks all verifications together, when everything else in their phase is done.",
        )
        .default("no"),
    ],
    later: &["action", "authentication", "human-verify", "human-action", "auth"],
    rule: None,
};

static AUTOMATIC_SHAPES: [Shape; 2] = [Shape::Words(&words(&PLAIN)), Shape::Map(&AUTOMATIC)];

static AUTOMATIC: Format = Format {
    name: "automatic",
    what: "when a question is answered without a person",
    known: &[
        Key::optional("when", Shape::Text, "A JavaScript expression that must be true."),
        Key::optional(
            "max_consecutive",
            Shape::Count(1, MAX_CONSECUTIVE),
            "The maximum number of automatic answers in a row; then a person is asked.",
        ),
    ],
    later: &[],
    rule: None,
};

impl Checker<'_, '_> {
    /// Reads which questions may be answered without a person.
    pub(super) fn policy(&mut self, fields: &Fields<'_, '_>) -> Policy {
        fields.get("policy").and_then(|node| self.policy_of(node)).unwrap_or_default()
    }

    fn policy_of(&mut self, node: &Node<'_>) -> Option<Policy> {
        if let Content::Map(entries) = &*node.content {
            for entry in entries.iter().filter(|entry| POLICY.later.contains(&&*entry.key)) {
                let message = format!("`{}` is never answered without a person", entry.key);
                self.error(ProblemCode::InvalidValue, &entry.key_span, message)
                    .help("only `checkpoint`, `verify` and `decision` can be");
            }
            if entries.iter().any(|entry| POLICY.later.contains(&&*entry.key)) {
                return None;
            }
        }
        let fields = self.fields(node, &POLICY)?;
        let mut of = |key: &str| fields.get(key).and_then(|node| self.automatic(node, key));
        let (checkpoint, verify, decision) = (of("checkpoint"), of("verify"), of("decision"));
        let collect_phase = fields.get("collect").and_then(|node| self.word(node, "`collect`", &COLLECT)).unwrap_or(false);
        Some(Policy { checkpoint, verify, decision, collect_phase })
    }

    /// Reports tasks that need a verification which is asked only after they are done.
    pub(super) fn asked_later(&mut self, phase: &Phase, span: &Range<usize>) {
        let is_verify = |id: &TaskId| phase.task(id.as_str()).is_some_and(is_verify);
        let early: Vec<&str> = phase
            .tasks
            .iter()
            .filter(|task| !self::is_verify(task) && task.needs.iter().any(is_verify))
            .map(|task| task.id.as_str())
            .collect();
        if !early.is_empty() {
            let message = format!(
                "with `collect: phase`, these tasks run before the verification that they need: {}",
                early.iter().map(|id| format!("{}/{id}", phase.id)).collect::<Vec<_>>().join(", ")
            );
            self.report
                .warning(ProblemCode::VerifiedTooLate, span, message)
                .help("move tasks that must wait for the verification to a later phase");
        }
    }

    fn automatic(&mut self, node: &Node<'_>, key: &str) -> Option<Automatic> {
        if let Content::Scalar(_) = &*node.content {
            let auto = self.word(node, &format!("`{key}`"), &PLAIN)?;
            return auto.then(Automatic::default);
        }
        let fields = self.fields(node, &AUTOMATIC)?;
        let when = fields.get("when").and_then(|node| self.expression(node, "`when`"));
        let max_consecutive =
            fields.get("max_consecutive").and_then(|node| self.count(node, "`max_consecutive`", 1..=MAX_CONSECUTIVE));
        // A condition that could not be read must not count as no condition.
        if fields.get("when").is_some() && when.is_none() {
            return None;
        }
        Some(Automatic { when, max_consecutive })
    }
}

/// Whether a task is a verification that may be asked later. One that only a person may answer keeps its position.
fn is_verify(task: &Task) -> bool {
    let checkpoint = task.checkpoint().filter(|checkpoint| !checkpoint.waits.person_only);
    matches!(checkpoint.and_then(|checkpoint| checkpoint.question.as_ref()), Some(Question::Verify(_)))
}

/// Moves the verifications of a phase behind everything else: tasks that needed one now need its dependencies.
pub fn verify_last(phase: &mut Phase) {
    let verifies: Vec<(TaskId, Vec<TaskId>)> =
        phase.tasks.iter().filter(|task| is_verify(task)).map(|task| (task.id.clone(), task.needs.clone())).collect();
    if verifies.is_empty() {
        return;
    }
    let all_else: Vec<TaskId> = phase.tasks.iter().filter(|task| !is_verify(task)).map(|task| task.id.clone()).collect();
    for task in &mut phase.tasks {
        if is_verify(task) {
            task.needs = all_else.clone();
            continue;
        }
        // A verification may itself need one.
        while let Some(at) = task.needs.iter().position(|need| verifies.iter().any(|(id, _)| id == need)) {
            let removed = task.needs.remove(at);
            let instead = verifies.iter().find(|(id, _)| *id == removed).map(|(_, needs)| needs.clone()).unwrap_or_default();
            let new: Vec<TaskId> = instead.into_iter().filter(|need| !task.needs.contains(need) && *need != task.id).collect();
            task.needs.extend(new);
        }
    }
}
