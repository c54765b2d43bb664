//! Plans: any text gives tasks in the order of the file, each at a tag, with warnings at their positions; no task is lost. Each becomes
//! one task of the workflow, in which nothing of the plan is expanded as a template, and nothing runs that is not a command there.

use crate::spec::has_a_position;
use lockgate_engine::spec::problem::MAX_PROBLEMS;
use lockgate_engine::spec::workflow::{Prompt, Question, Task, UntilCondition, Workflow};
use lockgate_engine::template::mustache::render_document;
use lockgate_engine::template::{Escape, render};
use lockgate_formats::plan::workflow::{PlanText, read_directory, read_workflow};
use lockgate_formats::plan::{PlanTask, Read, read};
use serde_json::json;

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Read { plan, problems } = read(text);
    assert!(problems.len() <= MAX_PROBLEMS + 1, "{} problems are reported", problems.len());
    problems.iter().for_each(|problem| has_a_position(text, problem));
    let starts = line_starts(text);
    let mut last = None;
    for (index, task) in plan.tasks.iter().enumerate() {
        assert_eq!(task.number, index + 1);
        let at = offset(text, &starts, task);
        assert!(text[at..].starts_with("<task"), "{:?} is not a task", &text[at..]);
        assert!(last < Some(at), "tasks are out of order");
        last = Some(at);
        is_well_formed(task);
    }
    becomes_a_workflow(text, plan.tasks.len());
    if is_plain(text) && problems.len() <= MAX_PROBLEMS {
        let prose = problems.iter().filter(|problem| problem.message.contains("read as text")).count();
        assert_eq!(plan.tasks.len() + prose, count(text), "tasks are lost or invented: {problems:?}");
    }
}

/// Properties of the workflow of a plan, alone and in a directory.
fn becomes_a_workflow(text: &str, tasks: usize) {
    if let Some(workflow) = read_workflow(text).workflow {
        assert_eq!(
            workflow.phases.iter().map(|phase| phase.tasks.len()).sum::<usize>(),
            tasks,
            "a task was dropped or duplicated"
        );
        has_no_templates(&workflow);
    }
    let other = "---\nphase: 01-start\nplan: 03\n---\n<task type=\"auto\"><name>a</name><action>x</action></task>\n";
    let both = [("one.md", text), ("other.md", other)].map(|(name, source)| PlanText { name, source, is_done: false });
    if let Some(workflow) = read_directory("both", &both).workflow {
        assert_eq!(workflow.phases.iter().map(|phase| phase.tasks.len()).sum::<usize>(), tasks + 1);
        has_no_templates(&workflow);
    }
}

fn has_no_templates(workflow: &Workflow) {
    for phase in &workflow.phases {
        phase.tasks.iter().for_each(is_kept_as_written);
        phase.gates.iter().for_each(|gate| is_not_a_template(&gate.run));
        phase.checkpoint.iter().filter_map(|checkpoint| checkpoint.question.as_ref()).for_each(is_shown_as_written);
    }
}

fn is_kept_as_written(task: &Task) {
    if let Some(work) = task.agent() {
        let Prompt::Document(prompt) = &work.prompt else { panic!("{:?} is not a document", work.prompt) };
        render_document(prompt, &json!({})).expect("a prompt can be rendered");
    }
    if let Some(UntilCondition::Run(command)) = task.until.as_ref().map(|until| &until.condition) {
        is_not_a_template(command);
    }
    if let Some(checkpoint) = task.checkpoint() {
        render(&checkpoint.prompt, &json!({}), Escape::None).expect("a question can be rendered");
        checkpoint.question.iter().for_each(is_shown_as_written);
        assert!(!checkpoint.options.is_empty(), "there are no options");
        if let Some(Question::Action(action)) = &checkpoint.question {
            action.check.iter().for_each(|check| is_not_a_template(&check.run));
        }
    }
}

fn is_shown_as_written(question: &Question) {
    question.map_texts(&mut |text| {
        render(text, &json!({}), Escape::None).expect("a text of a question contains no template expressions")
    });
}

fn is_not_a_template(command: &str) {
    assert_eq!(render(command, &json!({}), Escape::Shell).as_deref(), Ok(command), "a template expression was expanded");
}

/// Properties of every task.
fn is_well_formed(task: &PlanTask) {
    fits_a_line(&task.name);
    let mut ids: Vec<&str> = task.options.iter().map(|option| option.id.as_str()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), task.options.len(), "two options have the same id");
    for command in task.verify.commands.iter().chain(&task.verification.commands) {
        assert!(!command.command.trim().is_empty(), "a command is empty");
        assert!(command.place.line >= task.place.line, "a command is before its task");
    }
    if let Some(word) = task.resume_word() {
        assert!(!word.is_empty() && task.resume_signal.contains(word));
    }
}

fn fits_a_line(name: &str) {
    assert!(!name.trim().is_empty() && !name.contains(char::is_control), "{name:?} is not a name");
}

fn line_starts(text: &str) -> Vec<usize> {
    std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// The offset of a task, from its line and column.
fn offset(text: &str, starts: &[usize], task: &PlanTask) -> usize {
    let start = starts[task.place.line - 1];
    let mark = usize::from(task.place.line == 1 && text.starts_with('\u{feff}'));
    let column = task.place.column - 1 + mark;
    start + text[start..].char_indices().nth(column).map_or(text.len() - start, |(at, _)| at)
}

/// Whether nothing in a text can hide a tag: no code, comment or frontmatter.
fn is_plain(text: &str) -> bool {
    !text.contains(['`', '~']) && !text.contains("<!--") && !text.contains("---")
}

/// Counts the opening tags of tasks one by one.
fn count(text: &str) -> usize {
    let is_tag = |(at, _): &(usize, &str)| {
        let before = text[..*at].chars().next_back();
        let after = text[at + 5..].chars().next();
        before.is_none_or(|before| !before.is_alphanumeric() && before != '_')
            && after.is_none_or(|after| after.is_whitespace() || matches!(after, '>' | '/'))
    };
    text.match_indices("<task").filter(is_tag).count()
}

/// A complete plan, and unusual ones.
pub fn seeds() -> Vec<Vec<u8>> {
    let whole = "---\nphase: 01-start\nplan: 02\nwave: 1\ndepends_on: [\"01-01\"]\nautonomous: false\nmust_haves:\n  truths: [\"It runs\"]\n  artifacts:\n    - path: a.rs\n      min_lines: 3\n  key_links:\n    - from: a.rs\n      to: b.rs\n      pattern: \"\\d\"\n---\n\n<objective>\nGo.\n</objective>\n\n<tasks>\n<task type=\"auto\" tdd=\"true\">\n  <name>Task 1: Build</name>\n  <files>a.rs, b.rs</files>\n  <action>\n```rust\nif a < b && c {}\n```\n  </action>\n  <verify>\n    <automated>make test && make</automated>\n```bash\nmake\n```\n  </verify>\n  <done>It is built</done>\n</task>\n\n<task type=\"checkpoint:decision\" gate=\"blocking\">\n  <decision>Which?</decision>\n  <options>\n    <option id=\"a\"><name>A</name><pros>p</pros><cons>c</cons></option>\n    <option id=\"b\"><name>B</name></option>\n  </options>\n  <resume-signal>Select: a or b</resume-signal>\n</task>\n</tasks>\n<output>x</output>\n";
    let plain = "<tasks>\n<task type=\"auto\">\n<name>a</name>\n<action>x\n<task type='checkpoint:human-verify' gate=soft>\n<what-built>y</what-built>\n</task>\n</task>\nsee <task> or Vec<task>\n<task\n type=auto\n<task/>\n</tasks>\n";
    let odd = "<task type=\"auto\">\n<action>\n```ts\nx\n</action>\n</task>\n<!-- <task> -->\n`<task type=\"auto\">`\n<task type=\"\">\n<verify>\n<automated>MISSING\n</verify>\n<how-to-verify>\n";
    let braces = "---\nplan: 1\nmust_haves:\n  artifacts:\n    - path: a'b\n      contains: '{{vars.x}}'\n---\n<task type=\"auto\"><name>{{a}}</name><action>\\{{{{ b }} {{#if c}}</action><verify><automated>echo '{{vars.x}}' \"{{{item}}}\" {{</automated></verify><done>{{d</done></task>\n<task type=\"checkpoint:human-action\"><action>{{e}}</action><verification><automated>f {{outputs.g}}</automated></verification></task>\n<task type=\"checkpoint:decision\"><decision>{{h</decision></task>\n";
    [whole, plain, odd, braces].iter().map(|seed| seed.as_bytes().to_vec()).collect()
}
