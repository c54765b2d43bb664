//! Checkpoints of a plan as questions: to verify, to decide, to act.

use super::super::{PlanGate, PlanOption, PlanTask, PlanTaskKind, VerifyCommand};
use super::{CHECK_LIMIT, line_span, shell, told};
use lockgate_engine::hold::Action as Effect;
use lockgate_engine::id::OptionId;
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::{Report, question_checkpoint, question_options};
use lockgate_engine::spec::workflow::question::{Action, DEFAULT_ROUNDS, Decision, DecisionOption, Verify};
use lockgate_engine::spec::workflow::{Check, Checkpoint, Question, WaitSettings};
use lockgate_engine::template::escaped;

/// The checkpoint that a task asks for; `owed` is what else a person finds out at a verification.
pub(super) fn checkpoint(source: &str, task: &PlanTask, owed: Vec<String>, report: &mut Report) -> Checkpoint {
    let question = match task.kind {
        PlanTaskKind::Auto | PlanTaskKind::Verify => Question::Verify(verify(source, task, owed, report)),
        PlanTaskKind::Decision => Question::Decision(decision(task)),
        PlanTaskKind::Action => Question::Action(action(source, task, report)),
    };
    let signal = match task.kind {
        PlanTaskKind::Decision => None,
        PlanTaskKind::Auto | PlanTaskKind::Verify | PlanTaskKind::Action => task.resume_word(),
    };
    // What issues do is settled when it is known what the task needs.
    let mut options = question_options(&question, &Effect::Redo(Vec::new()), signal);
    if task.kind == PlanTaskKind::Decision && task.options.is_empty() {
        // Nothing can be chosen, so a person says it in words.
        options.iter_mut().for_each(|choice| (choice.with_feedback, choice.requires_feedback) = (true, true));
    }
    let first = options.first().filter(|choice| !choice.requires_feedback).map(|choice| choice.id.clone());
    let default = match (task.gate, task.kind) {
        (PlanGate::Blocking | PlanGate::BlockingHuman, _) => None,
        (PlanGate::NonBlocking, PlanTaskKind::Action) => {
            let message = "only a person can do what is needed here, so it waits for a person";
            report
                .warning(ProblemCode::InvalidValue, &line_span(source, task.place.line), message)
                .help("write `gate=\"blocking\"`");
            None
        }
        (PlanGate::NonBlocking, PlanTaskKind::Auto | PlanTaskKind::Verify | PlanTaskKind::Decision) => first,
    };
    let person_only = task.gate == PlanGate::BlockingHuman;
    question_checkpoint(question, options, Vec::new(), WaitSettings { default, person_only, ..WaitSettings::default() })
}

/// The option that ends the run before a task that cannot be undone.
const ABORT: &str = "abort";

/// Whether to start a task that cannot be undone: only a person decides.
pub(super) fn before_one_way(task: &PlanTask, why: &str) -> Checkpoint {
    let way = |id: &str, name: &str| DecisionOption { id: OptionId::from(id), name: name.to_owned(), pros: None, cons: None };
    let context = [why, &task.precondition, &task.action].into_iter().filter(|text| !text.is_empty());
    let context = context.collect::<Vec<_>>().join("\n\n");
    let decision = Decision {
        question: escaped(&format!("\"{}\" cannot be undone. Start it?", task.name)),
        context: told(&context).map(|text| escaped(&text)),
        options: vec![way("start", "Start the task"), way(ABORT, "Abort")],
    };
    let question = Question::Decision(decision);
    let mut options = question_options(&question, &Effect::Redo(Vec::new()), None);
    options.iter_mut().filter(|choice| choice.id.as_str() == ABORT).for_each(|choice| choice.action = Effect::Abort);
    question_checkpoint(question, options, Vec::new(), WaitSettings { person_only: true, ..WaitSettings::default() })
}

/// What a person looks at after a task of an agent that must not go on without one.
pub(super) fn after_work(source: &str, task: &PlanTask, owed: Vec<String>, report: &mut Report) -> Checkpoint {
    checkpoint(source, &PlanTask { kind: PlanTaskKind::Verify, built: task.name.clone(), ..task.clone() }, owed, report)
}

fn verify(source: &str, task: &PlanTask, owed: Vec<String>, report: &mut Report) -> Verify {
    let built = [&task.built, &task.action, &task.text].into_iter().find(|text| !text.is_empty());
    if built.is_none() {
        let message = "nothing is said to be built that a person could verify";
        report
            .warning(ProblemCode::NothingToVerify, &line_span(source, task.place.line), message)
            .help("say in `<what-built>` what was done, so that whoever answers knows what they approve");
    }
    let mut steps = numbered(&task.steps);
    steps.extend(numbered(&task.verify.prose));
    steps.extend(told(&task.acceptance_criteria));
    steps.extend(told(&task.done).map(|done| format!("It is done when: {done}")));
    steps.extend(owed);
    Verify {
        built: escaped(built.unwrap_or(&task.name)),
        steps: steps.iter().map(|step| escaped(step)).collect(),
        redo: Vec::new(),
        rounds: DEFAULT_ROUNDS,
    }
}

fn decision(task: &PlanTask) -> Decision {
    let context = [&task.context, &task.action, &task.text].into_iter().filter(|text| !text.is_empty());
    let context: Vec<&str> = context.map(String::as_str).collect();
    let question = told(&task.decision).unwrap_or_else(|| task.name.clone());
    let mut options: Vec<DecisionOption> = task.options.iter().map(way).collect();
    if options.is_empty() {
        options.push(DecisionOption { id: OptionId::from("decided"), name: "Decided".to_owned(), pros: None, cons: None });
    }
    Decision { question: escaped(&question), context: told(&context.join("\n\n")).map(|text| escaped(&text)), options }
}

fn way(option: &PlanOption) -> DecisionOption {
    let pros: Vec<&str> = [&option.pros, &option.text].into_iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    DecisionOption {
        id: OptionId::new(option.id.clone()),
        name: option.name.clone(),
        pros: told(&pros.join("\n")).map(|text| escaped(&text)),
        cons: told(&option.cons).map(|text| escaped(&text)),
    }
}

fn action(source: &str, task: &PlanTask, report: &mut Report) -> Action {
    let commands: Vec<&VerifyCommand> = task.verification.commands.iter().chain(&task.verify.commands).collect();
    let said: Vec<&str> = commands.iter().map(|command| command.command.as_str()).collect();
    let run = shell::all_of(said.iter().copied());
    if run.is_none() {
        let message = "nothing finds out whether this was done, so the answer is believed as it is";
        report
            .warning(ProblemCode::UncheckedAction, &line_span(source, task.place.line), message)
            .help("add `<verification><automated>COMMAND</automated></verification>`, a command that succeeds once it was done");
    }
    let how = [&task.instructions, &task.steps, &task.verification.prose, &task.verify.prose, &task.done, &task.text];
    let how: Vec<&str> = how.into_iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    Action {
        automated: told(&task.built).map(|text| escaped(&text)),
        needed: escaped(&told(&task.action).unwrap_or_else(|| task.name.clone())),
        instructions: told(&how.join("\n\n")).map(|text| escaped(&text)),
        check: run.map(|run| Check { run, timeout: Some(CHECK_LIMIT), told: Some(said.join("\n")) }),
    }
}

/// The items of a numbered list, each with what stands under it; the whole where it is no such list.
pub(super) fn numbered(text: &str) -> Vec<String> {
    let after_number = |line: &str, number: usize| -> Option<String> {
        let rest = line.strip_prefix(&number.to_string())?.strip_prefix(['.', ')'])?;
        rest.strip_prefix(' ').map(|rest| rest.trim().to_owned())
    };
    let mut items: Vec<String> = Vec::new();
    let mut in_fence = false;
    for line in text.lines() {
        in_fence ^= line.trim_start().starts_with("```");
        let next = after_number(line, items.len() + 1).filter(|_| !in_fence);
        match (next, items.last_mut()) {
            (Some(item), _) => items.push(item),
            (None, Some(last)) => {
                last.push('\n');
                last.push_str(line.trim_end());
            }
            (None, None) => return told(text.trim()).into_iter().collect(),
        }
    }
    items.iter().map(|item| item.trim_end().to_owned()).collect()
}
