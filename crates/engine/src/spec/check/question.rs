//! The questions of checkpoints (verify, decide, act), and how they wait for an answer.

use super::Checker;
use super::fields::{Fields, Format, Key, Rule, Shape, words};
use crate::hold::{Action as Effect, Choice, action_options, decision_options, option_ids, plain_words, verify_options};
use crate::id::{OptionId, PhaseId, TaskId};
use crate::spec::code::ProblemCode;
use crate::spec::problem::shown;
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::question::{Action, DEFAULT_ROUNDS, Decision, DecisionOption, MAX_AUTOMATIC_REPEATS, Verify};
use crate::spec::workflow::{Check, Checkpoint, Deadline, OnConditionError, OnDeadline, Question, Task, WaitSettings, Work};
use crate::template::Roots;
use std::ops::Range;
use std::time::Duration;

pub(super) const QUESTIONS: [&str; 3] = ["verify", "decision", "action"];

/// Keys next to a question that control how it waits.
pub(in crate::spec) const WAIT_KEYS: [&str; 6] = ["blocking", "default", "deadline", "remind", "on_deadline", "resume_signal"];

const MAX_ROUNDS: u32 = 100;

/// The minimum interval of reminders.
const LEAST_REMIND: Duration = Duration::from_secs(1);

/// The maximum deadline.
const LONGEST: Duration = Duration::from_secs(10 * 366 * 24 * 3600);

const PLAIN_DEADLINES: [(&str, bool); 2] = [("escalate", false), ("abort", true)];

pub(super) const VERIFY_ABOUT: &str =
    "Asks a person whether something works. The answer is `approved`, or a list of issues with which the work is redone.";
pub(super) const DECISION_ABOUT: &str = "Asks a person to choose. The answer is the id of an option.";
pub(super) const ACTION_ABOUT: &str =
    "Asks a person to do something that no program can do. The answer is `done`, and counts only if `check` succeeds.";

pub(super) static VERIFY: Format = Format {
    name: "verify",
    what: "`verify`",
    known: &[
        Key::optional("built", Shape::Filled, "What was built; a template."),
        Key::optional("steps", Shape::Texts, "How to verify that it works, in order; templates."),
        Key::optional(
            "redo",
            Shape::Texts,
            "The tasks of the same phase to redo if issues are found; if absent, those that it needs. At the end of a phase, the whole phase is repeated.",
        ),
        Key::optional("rounds", Shape::Count(1, MAX_ROUNDS), "How many times they are redone; then the run fails.").default("3"),
    ],
    later: &["url", "command"],
    rule: None,
};

pub(super) static DECISION: Format = Format {
    name: "decision",
    what: "`decision`",
    known: &[
        Key::required("question", Shape::Filled, "The question; a template."),
        Key::optional("context", Shape::Text, "Why it matters; a template."),
        Key::required("options", Shape::List(&DECISION_OPTION, 1), "The options."),
    ],
    later: &["multiple"],
    rule: None,
};

static DECISION_OPTION: Format = Format {
    name: "decision_option",
    what: "an option of a decision",
    known: &[
        Key::required("id", Shape::Id, "The id to answer with."),
        Key::optional("name", Shape::Filled, "The display name; the id if absent."),
        Key::optional("pros", Shape::Text, "Arguments for it; a template."),
        Key::optional("cons", Shape::Text, "Arguments against it; a template."),
    ],
    later: &["description"],
    rule: None,
};

pub(super) static ACTION: Format = Format {
    name: "action",
    what: "`action`",
    known: &[
        Key::optional("automated", Shape::Text, "What was already automated; a template."),
        Key::required("needed", Shape::Filled, "The one thing that is needed; a template."),
        Key::optional("instructions", Shape::Text, "How to do it; a template."),
        Key::optional(
            "check",
            Shape::AnyOf(&CHECK_SHAPES),
            "A command that checks whether it was done. `done` counts only if it succeeds.",
        ),
    ],
    later: &["url"],
    rule: None,
};

static CHECK_SHAPES: [Shape; 2] = [Shape::Filled, Shape::Map(&CHECK)];

static CHECK: Format = Format {
    name: "check",
    what: "`check`",
    known: &[
        Key::required("run", Shape::Filled, "The shell command; a template."),
        Key::optional("timeout", Shape::Duration, "The maximum duration.").default("1m"),
    ],
    later: &["dir", "env", "secrets"],
    rule: None,
};

pub(super) static ON_DEADLINE_SHAPES: [Shape; 2] = [Shape::Words(&words(&PLAIN_DEADLINES)), Shape::Map(&ON_DEADLINE)];

static ON_DEADLINE: Format = Format {
    name: "on_deadline",
    what: "`on_deadline`",
    known: &[
        Key::valued("answer", Shape::Filled, "Answers with this option."),
        Key::valued("escalate", Shape::Text, "Escalates to these people, and keeps waiting."),
        Key::valued("abort", Shape::True, "Ends the run."),
    ],
    later: &["reassign"],
    rule: Some(Rule::OneOf(&["answer", "escalate", "abort"])),
};

pub(super) const BLOCKING_ABOUT: &str =
    "Whether the run waits for the answer. With `false` it continues with `default`, which a person may change later.";
pub(super) const DEFAULT_ABOUT: &str = "The option with which the run continues if `blocking` is `false`, and the answer that `policy` gives. If absent, the first option that continues the run.";
pub(super) const DEADLINE_ABOUT: &str = "How long it waits at most: `30m`, `2h`, `PT8H`.";
pub(super) const REMIND_ABOUT: &str = "The interval in which people are reminded.";
pub(super) const ON_DEADLINE_ABOUT: &str =
    "What happens at the deadline: `{ answer: OPTION }`, `escalate` (or `{ escalate: WHO }`), or `abort`.";
pub(super) const SIGNAL_ABOUT: &str = "Another word that is accepted as `approved` or `done`.";

impl Checker<'_, '_> {
    /// The question of a checkpoint, if it has one of these kinds.
    pub(super) fn question(&mut self, fields: &Fields<'_, '_>, roots: Roots) -> Option<Question> {
        let given: Vec<&str> = QUESTIONS.into_iter().filter(|kind| fields.key(kind).is_some()).collect();
        let kind = match given.as_slice() {
            [] => return None,
            [kind] => *kind,
            [_, second, ..] => {
                let span = fields.key(second).unwrap_or(&fields.span);
                let message = format!("a checkpoint asks one thing; this one has {}", given.join(" and "));
                self.error(ProblemCode::ConflictingKeys, span, message).help("split it into two");
                return None;
            }
        };
        let node = fields.require(self, kind)?;
        match kind {
            "verify" => self.verify(node, roots).map(Question::Verify),
            "decision" => self.decision(node, roots).map(Question::Decision),
            _ => self.action_needed(node, roots).map(Question::Action),
        }
    }

    fn verify(&mut self, node: &Node<'_>, roots: Roots) -> Option<Verify> {
        let fields = self.fields(node, &VERIFY)?;
        let built = fields.get("built").and_then(|node| self.words(node, "`built`", roots));
        if built.is_none() && fields.key("built").is_none() {
            let message = "this verification does not say what was built";
            self.report
                .warning(ProblemCode::NothingToVerify, &fields.span, message)
                .help("describe in `built` what was done, so that the person knows what they approve");
        }
        let steps = fields.get("steps").map(|node| self.one_or_more(node)).unwrap_or_default();
        let steps = steps.iter().filter_map(|node| self.template(node, "`steps`", roots)).collect();
        let redo = fields.get("redo").map(|node| self.one_or_more(node)).unwrap_or_default();
        let redo = redo.iter().filter_map(|node| self.text(node, "`redo`").map(TaskId::from)).collect();
        let rounds = fields.get("rounds").and_then(|node| self.count(node, "`rounds`", 1..=MAX_ROUNDS)).unwrap_or(DEFAULT_ROUNDS);
        Some(Verify { built: built.unwrap_or_default(), steps, redo, rounds })
    }

    fn decision(&mut self, node: &Node<'_>, roots: Roots) -> Option<Decision> {
        let fields = self.fields(node, &DECISION)?;
        let question = fields.require(self, "question").and_then(|node| self.words(node, "`question`", roots));
        let context = fields.get("context").and_then(|node| self.template(node, "`context`", roots));
        let node = fields.require(self, "options")?;
        let items = self.list(node, "`options`")?;
        if items.is_empty() {
            self.error(ProblemCode::EmptyValue, &node.span, "`options` is empty").help("add at least one option");
        }
        let mut options: Vec<DecisionOption> = Vec::new();
        for item in items {
            let Some(way) = self.fields(item, &DECISION_OPTION) else { continue };
            let id_node = way.require(self, "id");
            let id = id_node.and_then(|node| self.id(node, "the id of an option")).map(OptionId::from);
            let name = way.get("name").and_then(|node| self.filled(node, "`name`")).map(str::to_owned);
            let said =
                |checker: &mut Self, key: &str| way.get(key).and_then(|node| checker.template(node, &format!("`{key}`"), roots));
            let (pros, cons) = (said(self, "pros"), said(self, "cons"));
            let (Some(id), Some(id_node)) = (id, id_node) else { continue };
            if options.iter().any(|other| other.id == id) {
                let message = format!("there are two options called `{id}`");
                self.error(ProblemCode::DuplicateId, &id_node.span, message).help("rename one of them");
                continue;
            }
            let name = name.unwrap_or_else(|| id.to_string());
            options.push(DecisionOption { id, name, pros, cons });
        }
        Some(Decision { question: question?, context, options })
    }

    fn action_needed(&mut self, node: &Node<'_>, roots: Roots) -> Option<Action> {
        let fields = self.fields(node, &ACTION)?;
        let said =
            |checker: &mut Self, key: &str| fields.get(key).and_then(|node| checker.template(node, &format!("`{key}`"), roots));
        let (automated, instructions) = (said(self, "automated"), said(self, "instructions"));
        let needed = fields.require(self, "needed").and_then(|node| self.words(node, "`needed`", roots));
        let check = fields.get("check").and_then(|node| self.check(node));
        if fields.get("check").is_none() {
            let message = "nothing checks whether this was done, so `done` counts without proof";
            self.report
                .warning(ProblemCode::UncheckedAction, &fields.span, message)
                .help("add `check: COMMAND`, a command that succeeds once it is done");
        }
        Some(Action { automated, needed: needed?, instructions, check })
    }

    /// A template that is not empty.
    fn words(&mut self, node: &Node<'_>, what: &str, roots: Roots) -> Option<String> {
        self.filled(node, what)?;
        self.template(node, what, roots)
    }

    fn check(&mut self, node: &Node<'_>) -> Option<Check> {
        if let Content::Scalar(_) = &*node.content {
            return self.command(node, "`check`").map(|run| Check { run, timeout: None, description: None });
        }
        let fields = self.fields(node, &CHECK)?;
        let run = fields.require(self, "run").and_then(|node| self.command(node, "`run`"));
        let timeout = fields.get("timeout").and_then(|node| self.timeout(node, "`timeout`"));
        Some(Check { run: run?, timeout, description: None })
    }

    /// A task that is a question.
    pub(super) fn checkpoint_task(&mut self, fields: &Fields<'_, '_>) -> Option<Work> {
        let question = self.question(fields, Roots::Task)?;
        let show_files =
            fields.get("show_files").map(|node| self.paths(node, "the file to show", Roots::Task)).unwrap_or_default();
        // The effect of issues is settled once the needs of all tasks are known.
        let options = options(&question, &Effect::Redo(Vec::new()), self.signal(fields).as_deref());
        let waits = self.waits(fields, &options, Some(&question));
        let show_diff = fields.get("show_diff").and_then(|node| self.show_diff(node, Roots::Task));
        let checkpoint = question_checkpoint(question, options, show_files, waits);
        Some(Work::Checkpoint(Box::new(Checkpoint { show_diff, ..checkpoint })))
    }

    /// A word that is accepted as an approval.
    pub(super) fn signal(&mut self, fields: &Fields<'_, '_>) -> Option<String> {
        let node = fields.get("resume_signal")?;
        let signal = self.filled(node, "`resume_signal`")?;
        if !is_signal(signal) {
            let message = format!("`{}` cannot be used as an approval: it is empty, a number, or another answer", shown(signal));
            self.error(ProblemCode::InvalidValue, &node.span, message).help("choose a distinct word, such as `ship it`");
            return None;
        }
        Some(signal.to_owned())
    }

    /// How a checkpoint waits for its answer.
    pub(super) fn waits(&mut self, fields: &Fields<'_, '_>, options: &[Choice], question: Option<&Question>) -> WaitSettings {
        let person_only = matches!(question, Some(Question::Action(_)));
        let blocking = fields.get("blocking").and_then(|node| self.boolean(node, "`blocking`")).unwrap_or(true);
        let named = fields.get("default").and_then(|node| self.one_of(node, "`default`", options));
        if let Some(span) = fields.key("default").filter(|_| blocking && person_only) {
            let message = "only a person can say that this was done, so `default` is never used";
            self.report.warning(ProblemCode::UnusedKey, span, message).help("remove it");
        }
        if let Some(span) = fields.key("blocking").filter(|_| !blocking && person_only) {
            let message = "only a person can do this, so the run cannot continue without an answer";
            self.error(ProblemCode::ConflictingKeys, span, message).help("remove `blocking: false`");
        }
        let first = || options.iter().find(|choice| choice.action == Effect::Continue).map(|choice| choice.id.clone());
        let default = if blocking { None } else { named.clone().or_else(first) };
        if let Some(node) = fields.get("default").filter(|_| !blocking) {
            self.warn_of_repeats(node, default.as_ref(), options);
        }
        let then = fields.get("on_deadline").and_then(|node| self.on_deadline(node, options, person_only));
        if let (Some(node), Some(OnDeadline::Answer(answer))) = (fields.get("on_deadline"), &then) {
            self.warn_of_repeats(node, Some(answer), options);
        }
        let after = fields.get("deadline").and_then(|node| self.between(node, "`deadline`", Duration::ZERO));
        let remind = fields.get("remind").and_then(|node| self.between(node, "`remind`", LEAST_REMIND));
        if let Some(span) = fields.key("on_deadline").filter(|_| fields.key("deadline").is_none()) {
            self.error(ProblemCode::MissingKey, span, "`on_deadline` without `deadline`").help("add `deadline: 2h`");
        }
        let deadline = after.map(|after| Deadline { after, then: then.unwrap_or(OnDeadline::Escalate(None)) });
        WaitSettings { default, deadline, remind, person_only: false, proposed: named }
    }

    /// Warns about an automatic answer that repeats a phase, because that happens only a few times.
    fn warn_of_repeats(&mut self, node: &Node<'_>, option: Option<&OptionId>, options: &[Choice]) {
        let chosen = options.iter().find(|choice| Some(&choice.id) == option);
        if chosen.is_some_and(|choice| choice.action.repeats()) {
            let message = format!(
                "this answer repeats a phase without a person; after {MAX_AUTOMATIC_REPEATS} times in a row, a person is asked"
            );
            self.report.warning(ProblemCode::AutomaticRepeat, &node.span, message).help("name an option that continues");
        }
    }

    /// A duration that is neither unreasonably short nor unreasonably long.
    fn between(&mut self, node: &Node<'_>, what: &str, least: Duration) -> Option<Duration> {
        let given = self.timeout(node, what)?;
        if given < least || given > LONGEST {
            let message = format!("{what} must be between {} s and ten years", least.as_secs());
            self.error(ProblemCode::InvalidDuration, &node.span, message).help("write it as `30m`, `2h` or `7d`");
            return None;
        }
        Some(given)
    }

    fn on_deadline(&mut self, node: &Node<'_>, options: &[Choice], person_only: bool) -> Option<OnDeadline> {
        if let Content::Scalar(_) = &*node.content {
            let abort = self.word(node, "`on_deadline`", &PLAIN_DEADLINES)?;
            return Some(if abort { OnDeadline::Abort } else { OnDeadline::Escalate(None) });
        }
        let fields = self.fields(node, &ON_DEADLINE)?;
        if let Some(node) = fields.get("answer") {
            if person_only {
                let message = "only a person can say that this was done";
                self.error(ProblemCode::InvalidValue, &node.span, message).help("use `escalate` or `abort`");
                return None;
            }
            return self.one_of(node, "`answer`", options).map(OnDeadline::Answer);
        }
        if let Some(node) = fields.get("escalate") {
            return self
                .text(node, "`escalate`")
                .map(|whom| OnDeadline::Escalate(Some(whom.to_owned()).filter(|whom| whom != "true")));
        }
        if let Some(node) = fields.get("abort") {
            if !self.boolean(node, "`abort`")? {
                self.error(ProblemCode::InvalidValue, &node.span, "`abort` can only be true").help("use `escalate` instead");
                return None;
            }
            return Some(OnDeadline::Abort);
        }
        let message = "`on_deadline` needs one of `answer`, `escalate`, `abort`";
        self.error(ProblemCode::MissingKey, &fields.span, message).help("write `{ answer: OPTION }`, `escalate` or `abort`");
        None
    }

    fn one_of(&mut self, node: &Node<'_>, what: &str, options: &[Choice]) -> Option<OptionId> {
        let named = self.text(node, what)?;
        if let Some(choice) = options.iter().find(|choice| choice.is_selected_by(named)) {
            if choice.requires_feedback {
                let message = format!("`{}` requires feedback, which only a person can give", shown(named));
                self.error(ProblemCode::InvalidValue, &node.span, message).help("name another option");
                return None;
            }
            return Some(choice.id.clone());
        }
        let message = format!("{what} names `{}`, which is not an option here", shown(named));
        let known = options.iter().map(|choice| choice.id.as_str());
        self.none_of(ProblemCode::InvalidValue, &node.span, message, named, known);
        None
    }

    /// Settles which tasks are redone after a verification found issues, once the needs of all tasks are known.
    pub(super) fn redo(&mut self, tasks: &mut [Task], spans: &[Range<usize>], before: Option<&PhaseId>) {
        for index in 0..tasks.len() {
            let Some(redo) = declared_redo(&tasks[index]) else { continue };
            let mut again = Vec::new();
            for name in &redo {
                match tasks.iter().find(|task| task.id == *name) {
                    Some(task) if task.checkpoint().is_none() => again.push(name.clone()),
                    Some(_) => {
                        let message = format!("`{}` is a question, which cannot be redone", shown(name.as_str()));
                        self.error(ProblemCode::InvalidValue, &spans[index], message).help("name tasks that do work");
                    }
                    None => {
                        let message = format!("task `{}` is not defined in this phase", shown(name.as_str()));
                        let others = tasks.iter().map(|task| task.id.as_str());
                        self.none_of(ProblemCode::UnknownTask, &spans[index], message, name.as_str(), others);
                    }
                }
            }
            settle_redo(tasks, index, again, before);
        }
    }
}

/// Whether a word is accepted as an approval: not empty, not a number, and not another answer.
pub(crate) fn is_signal(signal: &str) -> bool {
    let words = plain_words(signal);
    let taken = [option_ids::ISSUES, "report issues", option_ids::ABORT, option_ids::FAILURE, option_ids::ANSWER]
        .contains(&words.as_str());
    !words.is_empty() && !taken && words.parse::<u64>().is_err()
}

fn declared_redo(task: &Task) -> Option<Vec<TaskId>> {
    match &task.checkpoint()?.question {
        Some(Question::Verify(verify)) => Some(verify.redo.clone()),
        Some(Question::Decision(_) | Question::Action(_)) | None => None,
    }
}

/// Sets the effect of issues at a verification among the tasks of a phase: redo the named tasks, or else those that did the work
/// that it needs.
pub fn settle_redo(tasks: &mut [Task], index: usize, named: Vec<TaskId>, before: Option<&PhaseId>) {
    let again = if named.is_empty() { work_before(tasks, index) } else { named };
    let effect = match (again.is_empty(), before) {
        (false, _) => Effect::Redo(again.clone()),
        (true, Some(phase)) => Effect::RepeatPhase(phase.clone()),
        (true, None) => Effect::Fail,
    };
    let Work::Checkpoint(checkpoint) = &mut tasks[index].work else { return };
    for choice in checkpoint.options.iter_mut().filter(|choice| matches!(choice.action, Effect::Redo(_))) {
        choice.action = effect.clone();
    }
    if let Some(Question::Verify(verify)) = &mut checkpoint.question {
        verify.redo = again;
    }
}

/// The nearest tasks before this one that do work, skipping questions in between.
fn work_before(tasks: &[Task], index: usize) -> Vec<TaskId> {
    let mut found: Vec<TaskId> = Vec::new();
    let mut open: Vec<&TaskId> = tasks[index].needs.iter().collect();
    let mut seen: Vec<&TaskId> = Vec::new();
    while let Some(need) = open.pop() {
        if seen.contains(&need) {
            continue;
        }
        seen.push(need);
        let Some(task) = tasks.iter().find(|task| task.id == *need) else { continue };
        match task.checkpoint() {
            Some(_) => open.extend(&task.needs),
            None => found.push(need.clone()),
        }
    }
    found.sort();
    found
}

pub fn options(question: &Question, issues: &Effect, signal: Option<&str>) -> Vec<Choice> {
    match question {
        Question::Verify(_) => verify_options(issues.clone(), signal),
        Question::Decision(decision) => decision_options(&decision.options),
        Question::Action(_) => action_options(signal),
    }
}

pub fn question_checkpoint(question: Question, options: Vec<Choice>, show_files: Vec<String>, waits: WaitSettings) -> Checkpoint {
    let prompt = match &question {
        Question::Verify(verify) if verify.built.is_empty() => "Does it work as it should?".to_owned(),
        Question::Verify(verify) => format!("Does this work as it should? {}", verify.built),
        Question::Decision(decision) => decision.question.clone(),
        Question::Action(action) => action.needed.clone(),
    };
    Checkpoint {
        condition: None,
        on_condition_error: OnConditionError::default(),
        prompt,
        show_files,
        options,
        question: Some(question),
        waits,
        show_diff: None,
    }
}
