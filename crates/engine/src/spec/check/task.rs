//! Tasks: units of work.

use super::Checker;
use super::agent::{AGENT_KEYS, BUDGET, BUDGET_ABOUT, MOST_ASKS, SESSIONS, TOOLS};
use super::diff::{SHOW_DIFF_ABOUT, SHOW_DIFF_SHAPES};
use super::fan_out::{FOR_EACH_SHAPES, JOINS};
use super::fields::{Fields, Format, Key, Rule, Shape, words};
use super::git::COMMIT_SHAPES;
use super::loops::UNTIL_SHAPES;
use super::process::{ON_FAIL, ON_FAIL_ABOUT, SHELL_ABOUT};
use super::question::{
    ACTION, ACTION_ABOUT, BLOCKING_ABOUT, DEADLINE_ABOUT, DECISION, DECISION_ABOUT, DEFAULT_ABOUT, ON_DEADLINE_ABOUT,
    ON_DEADLINE_SHAPES, QUESTIONS, REMIND_ABOUT, SIGNAL_ABOUT, VERIFY, VERIFY_ABOUT, WAIT_KEYS,
};
use super::team::{KNOWLEDGE, KNOWLEDGE_ABOUT};
use crate::id::TaskId;
use crate::spec::code::ProblemCode;
use crate::spec::syntax::{Content, Node};
use crate::spec::workflow::{OnInterrupt, Retry, Task, UntilCondition, Work};
use crate::template::Roots;
use std::time::Duration;

const KINDS: [&str; 8] = ["run", "script", "pass", "agent", "prompt", "verify", "decision", "action"];

const ON_INTERRUPT: [(&str, OnInterrupt); 3] =
    [("rerun", OnInterrupt::Rerun), ("ask", OnInterrupt::Ask), ("fail", OnInterrupt::Fail)];

const MAX_ATTEMPTS: u32 = 1000;

pub(super) static TASK: Format = Format {
    name: "task",
    what: "a task",
    known: &[
        Key::required("id", Shape::Id, "Unique in the phase."),
        Key::optional("name", Shape::Text, "The display name; the id if absent."),
        Key::optional("description", Shape::Text, "A description for people."),
        Key::optional("needs", Shape::Texts, "Tasks of the same phase that must be done first."),
        Key::valued("run", Shape::Filled, "A shell command; a template whose values are quoted for the shell."),
        Key::valued("script", Shape::Filled, "The body of a JavaScript function."),
        Key::valued("pass", Shape::True, "Does nothing: a join, or a placeholder."),
        Key::valued("agent", Shape::Filled, "The agent: a name under `agents`. The default agent is used if none has that name."),
        Key::valued("prompt", Shape::Filled, "The prompt of the agent; a template. If absent, the document `subagents/AGENT.md` next to this file, or else the description of the phase."),
        Key::valued("verify", Shape::Map(&VERIFY), VERIFY_ABOUT),
        Key::valued("decision", Shape::Map(&DECISION), DECISION_ABOUT),
        Key::valued("action", Shape::Map(&ACTION), ACTION_ABOUT),
        Key::optional("show_files", Shape::Texts, "For questions: files and directories that the answer is about; templates."),
        Key::optional("show_diff", Shape::AnyOf(&SHOW_DIFF_SHAPES), SHOW_DIFF_ABOUT),
        Key::optional("resume_signal", Shape::Filled, SIGNAL_ABOUT),
        Key::optional("blocking", Shape::Boolean, BLOCKING_ABOUT).default("true"),
        Key::optional("default", Shape::Filled, DEFAULT_ABOUT),
        Key::optional("deadline", Shape::Duration, DEADLINE_ABOUT),
        Key::optional("remind", Shape::Duration, REMIND_ABOUT),
        Key::optional("on_deadline", Shape::AnyOf(&ON_DEADLINE_SHAPES), ON_DEADLINE_ABOUT).default("escalate"),
        Key::optional("output_path", Shape::Filled, "The file in the output directory that receives the agent's answer; a template."),
        Key::optional("model", Shape::Filled, "The model of the agent."),
        Key::optional(
            "session",
            Shape::Words(&words(&SESSIONS)),
            "The session of the agent: `fresh` starts a new one, `same` continues the last one of the same agent in this run, and `resume` continues that of the previous attempt.",
        )
        .default("fresh"),
        Key::optional("tools", Shape::Map(&TOOLS), "Tools that the agent may use."),
        Key::optional("output_schema", Shape::Values, "The JSON Schema that the agent's answer must match. If it does not, the agent is prompted again with the error."),
        Key::optional("max_asks", Shape::Count(1, MOST_ASKS), "How many times the agent is prompted for an answer that matches.").default("3"),
        Key::optional("idle_timeout", Shape::Duration, "How long the agent may print nothing."),
        Key::optional("when", Shape::Text, "A JavaScript expression. The task is left out unless it is true. With `for_each` it is evaluated for each `item`."),
        Key::optional("join", Shape::Words(&words(&JOINS)), "When it may start: when `all` its needs are done, when `any` of them is, or when all have ended in any way (`done`).").default("all"),
        Key::optional("for_each", Shape::AnyOf(&FOR_EACH_SHAPES), "Runs the task once per item of a list, as `{{item}}`: a list, the name of one in `vars`, or a map with options."),
        Key::optional("until", Shape::AnyOf(&UNTIL_SHAPES), "Repeats the task until this holds: a JavaScript expression, or a map with options."),
        Key::optional("continue_on_error", Shape::Boolean, "Whether the run continues after the task has failed for good.").default("false"),
        Key::optional("budget", Shape::Map(&BUDGET), BUDGET_ABOUT),
        Key::optional("worktree", Shape::Boolean, "Whether it works in its own git worktree and branch.").default("false"),
        Key::optional("commit", Shape::AnyOf(&COMMIT_SHAPES), "Whether to commit its changes with git when it is done: `true`, or a map with options.").default("false"),
        Key::optional("timeout", Shape::Duration, "The maximum duration of one attempt: `30s`, `5m`, `1h 30m` or `PT30M`."),
        Key::optional(
            "retry",
            Shape::CountOrMap(1, MAX_ATTEMPTS, &RETRY),
            "How often a failing task is attempted: a number of attempts, or `{ attempts: 3, backoff: 10s }`.",
        )
        .default("1"),
        Key::optional(
            "on_interrupt",
            Shape::Words(&words(&ON_INTERRUPT)),
            "What happens to an interrupted attempt. The default is `ask` for commands and agents, otherwise `rerun`.",
        ),
        Key::optional("on_fail", Shape::Words(&words(&ON_FAIL)), ON_FAIL_ABOUT).default("fail"),
        Key::optional("outputs", Shape::Texts, "Files that it must write to the output directory; templates."),
        Key::optional("env", Shape::Environment, "Environment variables; the values are templates."),
        Key::optional("secrets", Shape::Variables, "Names of the secrets that it receives, as environment variables."),
        Key::optional("dir", Shape::Filled, "The working directory, relative to the root; a template."),
        Key::optional("shell", Shape::Shell, SHELL_ABOUT),
        Key::optional("knowledge", Shape::Map(&KNOWLEDGE), KNOWLEDGE_ABOUT),
    ],
    later: &["agents", "inputs", "skills", "type", "config", "checkpoint", "gates", "subagent", "uses"],
    rule: Some(Rule::OneGroup(&[
        &["run"],
        &["script"],
        &["pass"],
        &["agent", "prompt"],
        &["verify"],
        &["decision"],
        &["action"],
    ])),
};

static RETRY: Format = Format {
    name: "retry",
    what: "`retry`",
    known: &[
        Key::required("attempts", Shape::Count(1, MAX_ATTEMPTS), "All attempts, including the first."),
        Key::optional("backoff", Shape::Duration, "The delay before the second attempt; doubled before each further one."),
    ],
    later: &["max_backoff", "jitter"],
    rule: None,
};

/// A task whose needs have not been resolved yet.
pub(super) struct RawTask<'n, 'a> {
    pub(super) task: Task,
    pub(super) id: &'n Node<'a>,
    /// Absent if the task does not set it.
    pub(super) needs: Option<&'n Node<'a>>,
}

impl Checker<'_, '_> {
    pub(super) fn task<'n, 'a>(&mut self, node: &'n Node<'a>) -> Option<RawTask<'n, 'a>> {
        let fields = self.fields(node, &TASK)?;
        self.here.in_list = Some(fields.get("for_each").is_some());
        let read = self.task_of(&fields);
        self.here.in_list = None;
        read
    }

    fn task_of<'n, 'a>(&mut self, fields: &Fields<'n, 'a>) -> Option<RawTask<'n, 'a>> {
        let id_node = fields.require(self, "id");
        let id = id_node.and_then(|node| self.id(node, "the id of a task"));
        let name = fields.get("name").and_then(|node| self.text(node, "`name`")).map(str::to_owned);
        fields.get("description").map(|node| self.text(node, "`description`"));
        let (shell, (work, until)) = self.with_shell(fields, |checker| (checker.work(fields), checker.until(fields)));
        let timeout = fields.get("timeout").and_then(|node| self.timeout(node, "`timeout`"));
        let retry = fields.get("retry").and_then(|node| self.retry(node)).unwrap_or_default();
        let on_interrupt = fields.get("on_interrupt").and_then(|node| self.word(node, "`on_interrupt`", &ON_INTERRUPT));
        let on_fail = self.on_fail(fields);
        let outputs = fields.get("outputs").map(|node| self.paths(node, "the output", Roots::Task)).unwrap_or_default();
        let (env, secrets, dir) = (self.env(fields), self.secret_names(fields), self.dir(fields));
        // `needs: []` has a meaning: in a sequential phase, the task does not wait for the one before it.
        let needs = fields.get("needs");
        // A task without work was already reported. Treating it as one that does nothing lets its needs and those of others be
        // checked.
        let work = work.unwrap_or(Work::Pass);
        let plain = Task::new(TaskId::new(id?), work);
        let task = Task {
            name,
            timeout,
            retry,
            on_interrupt: on_interrupt.unwrap_or(plain.on_interrupt),
            on_fail,
            outputs,
            env,
            secrets,
            dir,
            when: fields.get("when").and_then(|node| self.expression(node, "`when`")),
            join: fields.get("join").and_then(|node| self.word(node, "`join`", &JOINS)).unwrap_or_default(),
            for_each: self.for_each(fields),
            until,
            continue_on_error: fields
                .get("continue_on_error")
                .is_some_and(|node| self.boolean(node, "`continue_on_error`") == Some(true)),
            budget: self.budget(fields),
            worktree: self.worktree(fields),
            commit: self.commit(fields),
            shell,
            inject: self.inject(fields),
            ..plain
        };
        self.only_for_commands(fields, &task);
        self.only_for_agents(fields, &task);
        self.only_for_questions(fields, &task);
        Some(RawTask { task, id: id_node?, needs })
    }

    /// Reports a `shell` on a task that runs no command.
    fn only_for_commands(&mut self, fields: &Fields<'_, '_>, task: &Task) {
        let checked_by_command = task.until.as_ref().is_some_and(|until| matches!(until.condition, UntilCondition::Run(_)));
        if let Some(span) = fields.key("shell").filter(|_| !matches!(task.work, Work::Run(_)) && !checked_by_command) {
            let message = "`shell` applies to commands, but this task has none";
            self.error(ProblemCode::UnusedKey, span, message).help("remove it; the phase or the workflow can have one");
        }
    }

    /// Reports keys that apply only to agents.
    fn only_for_agents(&mut self, fields: &Fields<'_, '_>, task: &Task) {
        if task.agent().is_some() {
            return;
        }
        for key in AGENT_KEYS.into_iter().chain(["budget"]) {
            if let Some(span) = fields.key(key) {
                let message = format!("`{key}` applies only to agent tasks");
                self.error(ProblemCode::UnusedKey, span, message).help("remove it, or give the task a `prompt`");
            }
        }
    }

    /// Reports keys that apply only to questions, and keys that do not apply to them.
    fn only_for_questions(&mut self, fields: &Fields<'_, '_>, task: &Task) {
        let is_question = QUESTIONS.iter().any(|kind| fields.key(kind).is_some());
        if is_question && task.for_each.is_some() {
            let span = fields.key("for_each").unwrap_or(&fields.span);
            self.error(ProblemCode::ConflictingKeys, span, "a question cannot be asked per item of a list")
                .help("ask once about all of them, in a task that needs the list");
        }
        let keys: &[&str] = match is_question {
            true => &[
                "timeout",
                "retry",
                "outputs",
                "env",
                "secrets",
                "dir",
                "shell",
                "until",
                "on_interrupt",
                "on_fail",
                "worktree",
                "commit",
            ],
            false => &WAIT_KEYS,
        };
        let shown: &[&str] = if is_question { &[] } else { &["show_files", "show_diff"] };
        for key in keys.iter().chain(shown).copied() {
            if let Some(span) = fields.key(key) {
                let message = match is_question {
                    true => format!("`{key}` does not apply to questions"),
                    false => format!("`{key}` applies only to questions"),
                };
                self.error(ProblemCode::UnusedKey, span, message).help("remove it");
            }
        }
    }

    fn work(&mut self, fields: &Fields<'_, '_>) -> Option<Work> {
        let mut given: Vec<&str> = KINDS.into_iter().filter(|kind| fields.key(kind).is_some()).collect();
        if given == ["agent", "prompt"] {
            given.pop();
        }
        let kind = match given.as_slice() {
            [] => {
                let message = "a task needs one of `run`, `script`, `pass`, `agent`, `prompt`, `verify`, `decision`, `action`";
                self.error(ProblemCode::MissingKey, &fields.span, message).help("use `pass: true` for a task that does nothing");
                return None;
            }
            [kind] => *kind,
            [_, second, ..] => {
                let message =
                    format!("a task is a command, a script, an agent's work or a question; this one has {}", given.join(" and "));
                let span = fields.key(second).unwrap_or(&fields.span);
                self.error(ProblemCode::ConflictingKeys, span, message)
                    .help("split it into two tasks, one of which needs the other");
                for kind in &given {
                    fields.get(kind).map(|node| self.work_of(kind, node));
                }
                return None;
            }
        };
        let node = fields.require(self, kind)?;
        match kind {
            "agent" | "prompt" => Some(Work::Agent(Box::new(self.agent_work(fields)))),
            "verify" | "decision" | "action" => self.checkpoint_task(fields),
            _ => self.work_of(kind, node),
        }
    }

    fn work_of(&mut self, kind: &str, node: &Node<'_>) -> Option<Work> {
        match kind {
            "run" => self.command(node, "`run`").map(Work::Run),
            "script" => self.script(node, "`script`").map(Work::Script),
            "agent" | "prompt" => {
                self.filled(node, &format!("`{kind}`"));
                None
            }
            "verify" | "decision" | "action" => None,
            _ => {
                if !self.boolean(node, "`pass`")? {
                    self.error(ProblemCode::InvalidValue, &node.span, "`pass` can only be true")
                        .help("remove it and use `run` or `script`");
                    return None;
                }
                Some(Work::Pass)
            }
        }
    }

    fn retry(&mut self, node: &Node<'_>) -> Option<Retry> {
        if let Content::Scalar(_) = &*node.content {
            let attempts = self.count(node, "`retry`", 1..=MAX_ATTEMPTS)?;
            return Some(Retry { attempts, backoff: Duration::ZERO });
        }
        let fields = self.fields(node, &RETRY)?;
        let attempts = fields.require(self, "attempts").and_then(|node| self.count(node, "`attempts`", 1..=MAX_ATTEMPTS));
        let backoff = match fields.get("backoff") {
            Some(node) => self.duration(node, "`backoff`"),
            None => Some(Duration::ZERO),
        };
        Some(Retry { attempts: attempts?, backoff: backoff? })
    }
}
