//! Draws a workflow or run for the terminal in at most 80 columns. Similar tasks share a line, so fifty tasks stay readable.

use crate::print::{FAINT, STRONG, styled};
use crate::style::Styled as _;
use lockgate::graph::{CheckpointBox, Drawing, Mark, PhaseBox, TaskBox, truncate};
use std::collections::BTreeMap;
use unicode_width::UnicodeWidthStr;

const WIDTH: usize = 80;
/// Longer lists of needed tasks are abbreviated.
const NEEDS: usize = 44;
/// The maximum number of lines of a prompt.
const PROMPT: usize = 3;
/// The width of a state's name.
const WORD: usize = 11;

/// Draws a workflow or run. Without colour, every state is also named.
pub(crate) fn draw(drawing: &Drawing, colour: bool) -> String {
    let mut text = String::new();
    let title = truncate(&drawing.title, WIDTH - WORD - 2);
    match drawing.status {
        Some(status) => {
            text.push_str(&format!("{}  {}\n", styled(STRONG, title), styled(Mark::of_run(status).style(), status)));
        }
        None => {
            text.push_str(&format!("{}\n", styled(STRONG, title)));
        }
    }
    for (at, phase) in drawing.phases.iter().enumerate() {
        let rail = if at + 1 < drawing.phases.len() { "│" } else { " " };
        phase_lines(&mut text, drawing, phase, rail, colour);
    }
    text
}

fn phase_lines(text: &mut String, drawing: &Drawing, phase: &PhaseBox, rail: &str, colour: bool) {
    let mut head = phase.id.clone();
    if let Some(name) = &phase.name {
        head.push_str(&format!("  {name}"));
    }
    if phase.iteration > 1 {
        head.push_str(&format!("  (execution {})", phase.iteration));
    }
    match phase.mark {
        Some(mark) => {
            let sign = styled(mark.style(), sign_and_word(mark, colour));
            let room = WIDTH - if colour { 2 } else { 3 + WORD };
            text.push_str(&format!("{sign} {}\n", styled(STRONG, truncate(&head, room))));
        }
        None => {
            text.push_str(&format!("○ {}\n", styled(STRONG, truncate(&head, WIDTH - 2))));
        }
    }
    for (group, members) in groups(&phase.tasks) {
        let names: Vec<&str> = members.iter().map(|at| phase.tasks[*at].label.as_str()).collect();
        let needs = needs_words(phase, group.0, &group.1);
        row(text, rail, group.2, &list(&names, needs.as_deref()), None, colour);
    }
    for gate in &phase.gates {
        // A task gate follows its task, not all tasks.
        let task = gate.task.and_then(|task| phase.tasks.get(task)).map(|task| task.id.as_str());
        row(text, rail, gate.mark, &list(&[&gate.label], task), None, colour);
    }
    if let Some(checkpoint) = &phase.checkpoint {
        checkpoint_lines(text, drawing, checkpoint, rail, colour);
    }
    text.push_str(&format!("{}\n", rail.trim_end()));
}

fn checkpoint_lines(text: &mut String, drawing: &Drawing, checkpoint: &CheckpointBox, rail: &str, colour: bool) {
    let when = if checkpoint.conditional { "checkpoint, if its condition holds:" } else { "checkpoint:" };
    let mut words: Vec<String> = when.split(' ').map(str::to_owned).collect();
    words.extend(checkpoint.prompt.split(' ').map(str::to_owned));
    row(text, rail, checkpoint.mark, &words, Some(PROMPT), colour);
    if let Some(chosen) = &checkpoint.chosen {
        text.push_str(&format!("{rail}    {}\n", truncate(&format!("answered: {chosen}"), WIDTH - 5)));
        return;
    }
    for option in &checkpoint.options {
        let leads = drawing.words(&option.leads).map(|words| format!(" → {words}")).unwrap_or_default();
        let line = truncate(&format!("{}{leads}", option.label), WIDTH - 7);
        text.push_str(&format!("{rail}    {} {line}\n", styled(FAINT, "-")));
    }
}

fn sign_and_word(mark: Mark, colour: bool) -> String {
    if colour { mark.sign().to_string() } else { format!("{} {:<WORD$}", mark.sign(), mark.as_str()) }
}

/// Tasks in the same layer with the same needs and the same state.
type Group = (usize, Vec<usize>, Option<Mark>);

fn groups(tasks: &[TaskBox]) -> BTreeMap<Group, Vec<usize>> {
    let mut groups: BTreeMap<Group, Vec<usize>> = BTreeMap::new();
    for (at, task) in tasks.iter().enumerate() {
        let mut needs = task.needs.clone();
        needs.sort_unstable();
        groups.entry((task.layer, needs, task.mark)).or_default().push(at);
    }
    groups
}

fn needs_words(phase: &PhaseBox, layer: usize, needs: &[usize]) -> Option<String> {
    if needs.is_empty() {
        return None;
    }
    let above = phase.tasks.iter().filter(|task| task.layer < layer).count();
    if needs.len() > 2 && needs.len() == above {
        return Some("all above".to_owned());
    }
    let mut words = String::new();
    for (count, need) in needs.iter().enumerate() {
        let more = format!("{}{}", if count == 0 { "" } else { ", " }, phase.tasks[*need].id);
        if count > 0 && words.width() + more.width() > NEEDS {
            words.push_str(&format!(" and {} more", needs.len() - count));
            break;
        }
        words += &more;
    }
    Some(words)
}

/// Names separated by commas, followed by their needs, as words between which a line can break.
fn list(names: &[&str], needs: Option<&str>) -> Vec<String> {
    let mut words: Vec<String> = names.iter().map(|name| format!("{name},")).collect();
    if let Some(last) = words.last_mut() {
        last.pop();
    }
    if let Some(needs) = needs {
        let mut first = true;
        for word in needs.split(' ') {
            words.push(if std::mem::take(&mut first) { format!("← {word}") } else { word.to_owned() });
        }
    }
    words
}

/// A row, wrapped into as many lines as it needs or as are allowed.
fn row(text: &mut String, rail: &str, mark: Option<Mark>, words: &[String], most_lines: Option<usize>, colour: bool) {
    let sign = mark.map_or_else(|| "·".to_owned(), |mark| sign_and_word(mark, colour));
    let indent = rail.width() + 2 + sign.width() + 1;
    let room = WIDTH - indent;
    let mut lines: Vec<String> = vec![String::new()];
    for word in words {
        let word = truncate(word, room);
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].width() + 1 + word.width() > room {
            lines.push(word);
        } else {
            if !lines[last].is_empty() {
                lines[last].push(' ');
            }
            lines[last] += &word;
        }
    }
    if let Some(most) = most_lines.filter(|most| lines.len() > *most) {
        lines.truncate(most);
        lines[most - 1] = truncate(&format!("{} …", lines[most - 1]), room);
    }
    for (number, line) in lines.iter().enumerate() {
        if number == 0 {
            let shown = mark.map_or_else(|| styled(FAINT, &sign), |mark| styled(mark.style(), &sign));
            text.push_str(&format!("{rail}  {shown} {line}\n"));
        } else {
            text.push_str(&format!("{rail}{:width$}{line}\n", "", width = indent - rail.width()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(source: &str) -> String {
        let read = lockgate_engine::spec::read(source);
        let workflow = read.workflow.unwrap_or_else(|| panic!("{:?}", read.problems));
        anstream::adapter::strip_str(&draw(&Drawing::of_workflow(&workflow), false)).to_string()
    }

    #[test]
    fn fifty_tasks_fit_a_few_lines_of_eighty_columns() {
        let tasks: Vec<String> = (1..=50).map(|number| format!("{{ id: task-number-{number}, pass: true }}")).collect();
        let source = format!(
            "name: wide\nphases:\n  - id: a\n    tasks: [{}]\n    main_agent: {{ script: return 1 }}\n    gates: [{{ id: {}, run: x }}]\n",
            tasks.join(", "),
            "g".repeat(100),
        );
        let text = drawn(&source);
        assert!(text.lines().count() < 20, "{text}");
        assert!(text.lines().all(|line| line.width() <= WIDTH), "{text}");
        assert!(text.contains("main ← all above"), "{text}");
    }

    #[test]
    fn wide_and_hostile_text_stays_on_its_line() {
        let source = format!(
            "name: \"\\e[2J{}\"\nphases:\n  - id: a\n    name: \"日本語{}\\u202e\"\n    checkpoint: {{ prompt: \"{} \\n\\n x\", options: [{{ label: \"\\a{}\", on_select: {{ action: abort }} }}] }}\n",
            "n".repeat(200),
            "語".repeat(60),
            "very long ".repeat(60),
            "l".repeat(200),
        );
        let text = drawn(&source);
        assert!(text.lines().all(|line| line.width() <= WIDTH), "{text}");
        assert!(!text.contains(|character: char| character != '\n' && lockgate::sanitize::is_control(character)), "{text:?}");
        assert!(text.lines().count() < 12, "{text}");
    }

    const OF_A_TASK: &str = "
name: flow
phases:
  - id: build
    name: Build it
    tasks: [{ id: make, run: x }, { id: other, run: x }, { id: pack, needs: [make], run: x }]
    gates: [{ id: lint, task: make, run: x }, { id: tests, run: x }]
    checkpoint: { prompt: 'Is {{feature.name}} good?' }
";

    #[test]
    fn a_task_gate_follows_its_task_and_a_template_shows_its_value() {
        let text = drawn(OF_A_TASK);
        assert!(text.contains("gate lint ← make\n") && text.contains("gate tests\n"), "{text}");
        assert!(text.contains("Is ‹feature.name› good?") && !text.contains("{{"), "{text}");
    }

    #[test]
    fn the_graph_chains_only_phase_gates_and_keeps_its_spacing() {
        let read = lockgate_engine::spec::read(OF_A_TASK);
        let workflow = read.workflow.unwrap_or_else(|| panic!("{:?}", read.problems));
        let picture = lockgate::graph::svg::write(&Drawing::of_workflow(&workflow));
        // make to lint, and lint to pack.
        assert_eq!(picture.matches("marker-end").count(), 2, "{picture}");
        assert!(picture.contains("build<tspan class=\"faint\">\u{a0}·\u{a0}Build it"), "{picture}");
    }
}
