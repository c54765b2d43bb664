//! One task of a plan.

mod verify;

use super::layout::Part;
use super::tag::{Markup, Tag};
use super::text::{files, id_from, in_one_line, name_from, unindented, without_number};
use super::{Place, PlanGate, PlanOption, PlanTask, PlanTaskKind, Rating, Reversibility, Section, Verify};
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::{Cursor, Report, shown};
use lockgate_engine::spec::suggest;
use std::ops::Range;

/// The maximum number of options of a decision.
const MAX_OPTIONS: usize = 100;

/// The position of a task and its parts in the file.
#[derive(Debug)]
pub(super) struct Written {
    /// The index of its opening tag.
    pub(super) open: usize,
    pub(super) parts: Vec<Part>,
    /// Text outside of all parts.
    pub(super) loose: Vec<Range<usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Name,
    Files,
    ReadFirst,
    Behavior,
    Action,
    Verify,
    Automated,
    AcceptanceCriteria,
    Done,
    Built,
    Steps,
    Decision,
    Context,
    Options,
    Option,
    Instructions,
    Verification,
    ResumeSignal,
    Precondition,
    Reversibility,
}

impl Known {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "name" => Self::Name,
            "files" => Self::Files,
            "read_first" | "read-first" => Self::ReadFirst,
            "behavior" | "behaviour" => Self::Behavior,
            "action" => Self::Action,
            "verify" => Self::Verify,
            "automated" => Self::Automated,
            "acceptance_criteria" | "acceptance-criteria" => Self::AcceptanceCriteria,
            "done" => Self::Done,
            "what-built" | "what_built" => Self::Built,
            "how-to-verify" | "how_to_verify" => Self::Steps,
            "decision" => Self::Decision,
            "context" => Self::Context,
            "options" => Self::Options,
            "option" => Self::Option,
            "instructions" | "what-to-do" | "what_to_do" => Self::Instructions,
            "verification" => Self::Verification,
            "resume-signal" | "resume_signal" => Self::ResumeSignal,
            "precondition" => Self::Precondition,
            "reversibility" => Self::Reversibility,
            _ => return None,
        })
    }
}

/// The names of parts that are suggested for misspelled ones.
const PARTS: [&str; 16] = [
    "name",
    "files",
    "read_first",
    "behavior",
    "action",
    "verify",
    "acceptance_criteria",
    "done",
    "what-built",
    "how-to-verify",
    "decision",
    "options",
    "instructions",
    "resume-signal",
    "precondition",
    "reversibility",
];

pub(super) fn knows(name: &str) -> bool {
    Known::of(name).is_some()
}

/// Adds a text to one that may be non-empty.
pub(super) fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

struct Reader<'a, 'r> {
    source: &'a str,
    markup: &'r Markup<'a>,
    cursor: &'r mut Cursor<'a>,
    report: &'r mut Report,
}

pub(super) fn read<'a>(
    source: &'a str,
    markup: &Markup<'a>,
    written: &Written,
    number: usize,
    cursor: &mut Cursor<'a>,
    report: &mut Report,
) -> PlanTask {
    let tag = &markup.tags[written.open];
    let mut reader = Reader { source, markup, cursor, report };
    let mut task = PlanTask {
        number,
        place: reader.place(tag.start),
        kind: PlanTaskKind::Auto,
        written_kind: tag.attribute("type").unwrap_or_default().to_owned(),
        gate: PlanGate::Blocking,
        tdd: tag.attribute("tdd").is_some_and(|tdd| tdd.eq_ignore_ascii_case("true")),
        tracer: tag.attribute("type").is_some_and(|word| word.eq_ignore_ascii_case("tracer")),
        precondition: String::new(),
        reversibility: None,
        attributes: tag.attributes().into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
        name: String::new(),
        files: Vec::new(),
        read_first: String::new(),
        behavior: String::new(),
        action: String::new(),
        verify: Verify::default(),
        acceptance_criteria: String::new(),
        done: String::new(),
        built: String::new(),
        steps: String::new(),
        decision: String::new(),
        context: String::new(),
        options: Vec::new(),
        instructions: String::new(),
        verification: Verify::default(),
        resume_signal: String::new(),
        others: Vec::new(),
        text: String::new(),
    };
    for part in &written.parts {
        reader.part(part, &mut task);
    }
    for loose in &written.loose {
        append(&mut task.text, &unindented(&source[loose.clone()]));
    }
    let place = tag.start..tag.end;
    task.kind = kind(&task, &place, reader.report);
    task.gate = gate(tag, &place, reader.report);
    task.name = name(&task, &place, reader.report);
    warn_about_gaps(&task, &place, reader.report);
    task
}

impl Reader<'_, '_> {
    fn place(&mut self, offset: usize) -> Place {
        self.cursor.advance_to(offset);
        Place { line: self.cursor.line, column: self.cursor.column }
    }

    fn part(&mut self, part: &Part, task: &mut PlanTask) {
        let tag = &self.markup.tags[part.open];
        let text = || unindented(&self.source[part.inner.clone()]);
        let Some(known) = Known::of(tag.name) else {
            let has_check = part.tags.clone().any(|index| self.markup.tags[index].opens("automated"));
            let meant = suggest::nearest(tag.name, PARTS).map(|meant| format!("did you mean `{meant}`?"));
            let help = meant.or_else(|| has_check.then(|| "write `<verify>` around `<automated>`".to_owned()));
            if help.is_some() {
                let message = format!("`<{}>` is not a known part of a task; it is only passed to the agent", shown(tag.name));
                self.report.warning(ProblemCode::StrayTag, &(tag.start..tag.end), message).maybe_help(help);
            }
            task.others.push(Section { tag: tag.name.to_owned(), text: text() });
            return;
        };
        match known {
            Known::Name if task.name.is_empty() => task.name = in_one_line(&text()),
            // A second name probably means something else, so the agent gets it as text.
            Known::Name => task.others.push(Section { tag: tag.name.to_owned(), text: text() }),
            Known::Files => task.files.extend(files(&self.source[part.inner.clone()])),
            Known::ReadFirst => append(&mut task.read_first, &text()),
            Known::Behavior => append(&mut task.behavior, &text()),
            Known::Action => append(&mut task.action, &text()),
            Known::Verify => self.verify(part, &mut task.verify),
            Known::Automated => self.automated(part, &mut task.verify),
            Known::AcceptanceCriteria => append(&mut task.acceptance_criteria, &text()),
            Known::Done => append(&mut task.done, &text()),
            Known::Built => append(&mut task.built, &text()),
            Known::Steps => append(&mut task.steps, &text()),
            Known::Decision => append(&mut task.decision, &text()),
            Known::Context => append(&mut task.context, &text()),
            Known::Options => self.options(part, task),
            Known::Option => self.option(part, &mut task.options),
            Known::Instructions => append(&mut task.instructions, &text()),
            Known::Verification => self.verify(part, &mut task.verification),
            Known::ResumeSignal => append(&mut task.resume_signal, &text()),
            Known::Precondition => append(&mut task.precondition, &text()),
            Known::Reversibility => {
                let text = text();
                let rating = rating(tag, self.report);
                // If there are several ratings, the hardest to undo counts.
                let before = task.reversibility.take();
                let harder = before.as_ref().is_some_and(|before| before.rating as u8 > rating as u8);
                let mut said = before.as_ref().map(|before| before.text.clone()).unwrap_or_default();
                append(&mut said, &text);
                let rating = before.filter(|_| harder).map_or(rating, |before| before.rating);
                task.reversibility = Some(Reversibility { rating, text: said });
            }
        }
    }

    fn options(&mut self, part: &Part, task: &mut PlanTask) {
        let tags = &self.markup.tags;
        let mut from = part.inner.start;
        let mut loose = String::new();
        let opens: Vec<usize> =
            part.tags.clone().filter(|index| tags[*index].opens("option") && !tags[*index].is_empty).collect();
        for (position, open) in opens.iter().copied().enumerate() {
            let follows = opens.get(position + 1).copied().unwrap_or(part.tags.end);
            let (close, after) = match self.markup.closed_by[open] {
                Some(close) if close < follows => (tags[close].start, tags[close].end),
                Some(_) | None => {
                    let end = if follows < part.tags.end { tags[follows].start } else { part.inner.end };
                    let place = tags[open].start..tags[open].end;
                    self.report
                        .warning(ProblemCode::UnclosedTag, &place, "`<option>` is not closed")
                        .help("write `</option>` where it ends");
                    (end, end)
                }
            };
            append(&mut loose, &unindented(&self.source[from..tags[open].start]));
            let inside = Part { open, tags: open + 1..follows, inner: tags[open].end..close };
            self.option(&inside, &mut task.options);
            from = after;
        }
        append(&mut loose, &unindented(&self.source[from..part.inner.end]));
        if !loose.is_empty() {
            task.others.push(Section { tag: "options".to_owned(), text: loose });
        }
    }

    fn option(&mut self, part: &Part, options: &mut Vec<PlanOption>) {
        let tag = &self.markup.tags[part.open];
        let place = tag.start..tag.end;
        if options.len() >= MAX_OPTIONS {
            let message = format!("a decision has at most {MAX_OPTIONS} options; this one is ignored");
            self.report.warning(ProblemCode::TooLarge, &place, message).help("split the decision");
            return;
        }
        let mut texts = [String::new(), String::new(), String::new(), String::new()];
        let mut from = part.inner.start;
        for index in part.tags.clone() {
            let inside = &self.markup.tags[index];
            let known = ["name", "pros", "cons"].iter().position(|name| inside.opens(name));
            let close = self.markup.closed_by[index].map(|close| &self.markup.tags[close]);
            if let (Some(known), Some(close)) = (known, close)
                && inside.start >= from
                && close.end <= part.inner.end
            {
                append(&mut texts[3], &unindented(&self.source[from..inside.start]));
                append(&mut texts[known], &unindented(&self.source[inside.end..close.start]));
                from = close.end;
            }
        }
        append(&mut texts[3], &unindented(&self.source[from..part.inner.end]));
        let [mut name, pros, cons, text] = texts;
        if name.is_empty() {
            let said = tag.attribute("name").map(str::to_owned).or_else(|| name_from(&text));
            name = said
                .or_else(|| tag.attribute("id").map(str::to_owned))
                .unwrap_or_else(|| format!("Option {}", options.len() + 1));
        }
        let given = tag.attribute("id").map(str::to_owned);
        if given.is_none() {
            self.report
                .warning(ProblemCode::MissingKey, &place, "this option has no id; one is derived from its name")
                .help("write `<option id=\"…\">` with the word that a person types to choose it");
        }
        let wanted =
            given.unwrap_or_else(|| Some(id_from(&name)).filter(|id| !id.is_empty()).unwrap_or_else(|| "option".to_owned()));
        let is_taken = |id: &str| options.iter().any(|option| option.id == id);
        let mut id = wanted.clone();
        if is_taken(&id) {
            id = (2..).map(|number| format!("{wanted}-{number}")).find(|id| !is_taken(id)).unwrap_or_default();
            self.report
                .warning(
                    ProblemCode::DuplicateId,
                    &place,
                    format!("the option id `{}` is used twice; this one becomes `{}`", shown(&wanted), shown(&id)),
                )
                .help("give each option a unique id");
        }
        options.push(PlanOption { id, name, pros, cons, text });
    }
}

/// Who does the task, and what: from its type, otherwise from its parts. For an unknown type, a person is asked.
fn kind(task: &PlanTask, place: &Range<usize>, report: &mut Report) -> PlanTaskKind {
    const TYPES: [&str; 5] = ["auto", "tracer", "checkpoint:human-verify", "checkpoint:decision", "checkpoint:human-action"];
    let by_parts = if !task.options.is_empty() || !task.decision.is_empty() {
        Some(PlanTaskKind::Decision)
    } else if !task.built.is_empty() || !task.steps.is_empty() {
        Some(PlanTaskKind::Verify)
    } else if !task.instructions.is_empty() {
        Some(PlanTaskKind::Action)
    } else {
        None
    };
    let word = task.written_kind.to_ascii_lowercase().replace('_', "-");
    let kind = match word.as_str() {
        "auto" | "tracer" => return PlanTaskKind::Auto,
        "checkpoint:human-verify" | "checkpoint:verify" => return PlanTaskKind::Verify,
        "checkpoint:decision" | "checkpoint:human-decision" => return PlanTaskKind::Decision,
        "checkpoint:human-action" | "checkpoint:action" => return PlanTaskKind::Action,
        "" => {
            let kind = by_parts.unwrap_or(PlanTaskKind::Auto);
            let message = format!("this task has no type; it is read as {}", describe_kind(kind));
            report.warning(ProblemCode::MissingKey, place, message).help("write `type=\"auto\"` or the type of a checkpoint");
            return kind;
        }
        "human-verify" => PlanTaskKind::Verify,
        "decision" => PlanTaskKind::Decision,
        "human-action" => PlanTaskKind::Action,
        "checkpoint" => by_parts.unwrap_or(PlanTaskKind::Verify),
        _ => PlanTaskKind::Verify,
    };
    let message = format!("`{}` is not a type of task; it is read as {}", shown(&task.written_kind), describe_kind(kind));
    report.warning(ProblemCode::InvalidValue, place, message).maybe_help(suggest::meant_or_known(&word, TYPES.iter().copied()));
    kind
}

fn describe_kind(kind: PlanTaskKind) -> &'static str {
    match kind {
        PlanTaskKind::Auto => "work for an agent",
        PlanTaskKind::Verify => "a verification by a person",
        PlanTaskKind::Decision => "a decision by a person",
        PlanTaskKind::Action => "an action by a person",
    }
}

fn gate(tag: &Tag<'_>, place: &Range<usize>, report: &mut Report) -> PlanGate {
    let Some(gate) = tag.attribute("gate") else { return PlanGate::Blocking };
    match gate.to_ascii_lowercase().replace('_', "-").as_str() {
        "blocking" => PlanGate::Blocking,
        "non-blocking" | "nonblocking" => PlanGate::NonBlocking,
        "blocking-human" => PlanGate::BlockingHuman,
        word => {
            let message = format!("`{}` is not a gate; it waits for a person", shown(gate));
            let help = suggest::meant_or_known(word, ["blocking", "non-blocking", "blocking-human"].into_iter());
            report.warning(ProblemCode::InvalidValue, place, message).maybe_help(help);
            PlanGate::Blocking
        }
    }
}

/// How hard it is to undo a task. An unknown rating asks a person first.
fn rating(tag: &Tag<'_>, report: &mut Report) -> Rating {
    let written = tag.attribute("rating").unwrap_or_default();
    let word = written.to_ascii_lowercase().replace('_', "-");
    match word.as_str() {
        "reversible" => Rating::Reversible,
        "costly" => Rating::Costly,
        "one-way" => Rating::OneWay,
        _ => {
            let message = format!("`{}` is not a rating; a person is asked before the task", shown(written));
            let help = suggest::meant_or_known(&word, ["reversible", "costly", "one-way"].into_iter());
            report.warning(ProblemCode::InvalidValue, &(tag.start..tag.end), message).maybe_help(help);
            Rating::OneWay
        }
    }
}

/// The name of a task, derived from its content if it has none.
fn name(task: &PlanTask, place: &Range<usize>, report: &mut Report) -> String {
    let given = without_number(&task.name);
    if !given.is_empty() {
        return given.to_owned();
    }
    let says = match task.kind {
        PlanTaskKind::Auto => [&task.action, &task.done, &task.built],
        PlanTaskKind::Verify => [&task.built, &task.action, &task.steps],
        PlanTaskKind::Decision => [&task.decision, &task.context, &task.action],
        PlanTaskKind::Action => [&task.action, &task.instructions, &task.built],
    };
    let made = says.into_iter().chain([&task.text]).find_map(|text| name_from(text));
    let made = made.unwrap_or_else(|| format!("Task {}", task.number));
    // In most plans, checkpoints have no names.
    if task.kind == PlanTaskKind::Auto {
        let message = format!("this task has no name; it is called `{}`", shown(&made));
        report.warning(ProblemCode::MissingKey, place, message).help("write `<name>` … `</name>`");
    }
    made
}

/// Warns about a task without content.
fn warn_about_gaps(task: &PlanTask, place: &Range<usize>, report: &mut Report) {
    let says = |texts: &[&String]| texts.iter().any(|text| !text.is_empty()) || !task.text.is_empty();
    let verifies = |verify: &Verify| !verify.commands.is_empty() || !verify.prose.is_empty();
    let (missing, help) = match task.kind {
        PlanTaskKind::Auto if !says(&[&task.action, &task.behavior]) => ("nothing to do", "write `<action>` … `</action>`"),
        PlanTaskKind::Verify if !says(&[&task.built, &task.steps, &task.action, &task.done]) && !verifies(&task.verify) => {
            ("nothing to verify", "write `<what-built>` and `<how-to-verify>`")
        }
        PlanTaskKind::Decision if task.options.is_empty() => {
            ("no options", "write `<options>` with an `<option id=\"…\">` for each")
        }
        PlanTaskKind::Action if !says(&[&task.instructions, &task.action]) => {
            ("nothing to do", "write `<instructions>` … `</instructions>`")
        }
        PlanTaskKind::Auto | PlanTaskKind::Verify | PlanTaskKind::Decision | PlanTaskKind::Action => return,
    };
    report.warning(ProblemCode::EmptyValue, place, format!("this task has {missing}")).help(help);
}
