//! Checkpoints of a plan as questions: verification, decision, action.

use super::super::{PlanGate, PlanOption, PlanTask, PlanTaskKind, VerifyCommand};
use super::{CHECK_LIMIT, line_span, non_empty, shell};
use lockgate_engine::hold::Action as Effect;
use lockgate_engine::id::OptionId;
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::{Report, question_checkpoint, question_options};
use lockgate_engine::spec::workflow::question::{Action, DEFAULT_ROUNDS, Decision, DecisionOption, Verify};
use lockgate_engine::spec::workflow::{Check, Checkpoint, Question, WaitSettings};
use lockgate_engine::template::escaped;

/// The checkpoint of a task; `owed` lists what else a person verifies.
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
    // The effect of issues is set later, when the dependencies of the task are known.
    let mut options = question_options(&question, &Effect::Redo(Vec::new()), signal);
    if task.kind == PlanTaskKind::Decision && task.options.is_empty() {
        // Without options, the answer is free text.
        options.iter_mut().for_each(|choice| (choice.with_feedback, choice.requires_feedback) = (true, true));
    }
    let first = options.first().filter(|choice| !choice.requires_feedback).map(|choice| choice.id.clone());
    let default = match (task.gate, task.kind) {
        (PlanGate::Blocking | PlanGate::BlockingHuman, _) => None,
        (PlanGate::NonBlocking, PlanTaskKind::Action) => {
            let message = "only a person can do this, so the task waits for a person";
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

/// The option that aborts the run before a task that cannot be undone.
const ABORT: &str = "abort";

/// Asks whether to start a task that cannot be undone. Only a person may answer.
pub(super) fn before_one_way(task: &PlanTask, why: &str) -> Checkpoint {
    let option = |id: &str, name: &str| DecisionOption { id: OptionId::from(id), name: name.to_owned(), pros: None, cons: None };
    let context = [why, &task.precondition, &task.action].into_iter().filter(|text| !text.is_empty());
    let context = context.collect::<Vec<_>>().join("\n\n");
    let decision = Decision {
        question: escaped(&format!("\"{}\" cannot be undone. Start it?", task.name)),
        context: non_empty(&context).map(|text| escaped(&text)),
        options: vec![option("start", "Start the task"), option(ABORT, "Abort")],
    };
    let question = Question::Decision(decision);
    let mut options = question_options(&question, &Effect::Redo(Vec::new()), None);
    options.iter_mut().filter(|choice| choice.id.as_str() == ABORT).for_each(|choice| choice.action = Effect::Abort);
    question_checkpoint(question, options, Vec::new(), WaitSettings { person_only: true, ..WaitSettings::default() })
}

/// The verification after an agent's task that must not continue without a person.
pub(super) fn after_work(source: &str, task: &PlanTask, owed: Vec<String>, report: &mut Report) -> Checkpoint {
    checkpoint(source, &PlanTask { kind: PlanTaskKind::Verify, built: task.name.clone(), ..task.clone() }, owed, report)
}

fn verify(source: &str, task: &PlanTask, owed: Vec<String>, report: &mut Report) -> Verify {
    let built = [&task.built, &task.action, &task.text].into_iter().find(|text| !text.is_empty());
    if built.is_none() {
        let message = "this verification does not say what was built";
        report
            .warning(ProblemCode::NothingToVerify, &line_span(source, task.place.line), message)
            .help("describe the result in `<what-built>`, so that the person knows what to approve");
    }
    let mut steps = numbered(&task.steps);
    steps.extend(numbered(&task.verify.prose));
    steps.extend(non_empty(&task.acceptance_criteria));
    steps.extend(non_empty(&task.done).map(|done| format!("Done when: {done}")));
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
    let question = non_empty(&task.decision).unwrap_or_else(|| task.name.clone());
    let mut options: Vec<DecisionOption> = task.options.iter().map(decision_option).collect();
    if options.is_empty() {
        options.push(DecisionOption { id: OptionId::from("decided"), name: "Decided".to_owned(), pros: None, cons: None });
    }
    Decision { question: escaped(&question), context: non_empty(&context.join("\n\n")).map(|text| escaped(&text)), options }
}

fn decision_option(option: &PlanOption) -> DecisionOption {
    let pros: Vec<&str> = [&option.pros, &option.text].into_iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    DecisionOption {
        id: OptionId::new(option.id.clone()),
        name: option.name.clone(),
        pros: non_empty(&pros.join("\n")).map(|text| escaped(&text)),
        cons: non_empty(&option.cons).map(|text| escaped(&text)),
    }
}

fn action(source: &str, task: &PlanTask, report: &mut Report) -> Action {
    let commands: Vec<&VerifyCommand> = task.verification.commands.iter().chain(&task.verify.commands).collect();
    let said: Vec<&str> = commands.iter().map(|command| command.command.as_str()).collect();
    let run = shell::all_of(said.iter().copied());
    if run.is_none() {
        let message = "no command checks whether this was done, so the answer is trusted";
        report.warning(ProblemCode::UncheckedAction, &line_span(source, task.place.line), message).help(
            "add `<verification><automated>COMMAND</automated></verification>` with a command that succeeds once it is done",
        );
    }
    let how = [&task.instructions, &task.steps, &task.verification.prose, &task.verify.prose, &task.done, &task.text];
    let how: Vec<&str> = how.into_iter().map(String::as_str).filter(|text| !text.is_empty()).collect();
    Action {
        automated: non_empty(&task.built).map(|text| escaped(&text)),
        needed: escaped(&non_empty(&task.action).unwrap_or_else(|| task.name.clone())),
        instructions: non_empty(&how.join("\n\n")).map(|text| escaped(&text)),
        check: run.map(|run| Check { run, timeout: Some(CHECK_LIMIT), description: Some(said.join("\n")) }),
    }
}

/// The items of a numbered list, each with its nested lines; the whole text if it is not a numbered list.
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
            (None, None) => return non_empty(text.trim()).into_iter().collect(),
        }
    }
    items.iter().map(|item| item.trim_end().to_owned()).collect()
}
