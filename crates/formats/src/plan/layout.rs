//! Finds out which tags form tasks, parts of tasks, and sections of the plan.

use super::tag::{Markup, Tag};
use super::task::{self, Written};
use super::text::unindented;
use super::{PlanFile, Section};
use lockgate_engine::spec::code::ProblemCode;
use lockgate_engine::spec::reader::{Cursor, Report, shown};
use std::ops::Range;

const SECTIONS: [&str; 6] = ["objective", "execution_context", "context", "verification", "success_criteria", "output"];

/// Content between two tags.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The index of the opening tag.
    pub(super) open: usize,
    pub(super) tags: Range<usize>,
    pub(super) inner: Range<usize>,
}

/// Groups the tags of a file into tasks and sections.
pub(super) fn read(source: &str, markup: &Markup<'_>, report: &mut Report) -> PlanFile {
    let tags = &markup.tags;
    let bounds = Bounds::of(tags);
    let mut plan = PlanFile::default();
    let mut cursor = Cursor::new(source);
    let mut index = 0;
    while let Some(tag) = tags.get(index) {
        index = if bounds.is_task[index] {
            let (written, next) = written_task(source, markup, &bounds, index, report);
            plan.tasks.push(task::read(source, markup, &written, plan.tasks.len() + 1, &mut cursor, report));
            next
        } else if tag.opens("task") {
            warn_text(report, tag);
            index + 1
        } else if tag.ends("task") {
            report
                .warning(ProblemCode::StrayTag, &(tag.start..tag.end), "`</task>` without an open task")
                .help("remove it, or check whether a task is closed too early");
            index + 1
        } else if tag.leads && !tag.closes && !tag.is_empty && tag.name != "tasks" {
            section(source, markup, &bounds, index, &mut plan, report)
        } else {
            index + 1
        };
    }
    plan
}

/// The boundaries of tasks and sections, precomputed for each tag.
struct Bounds {
    is_task: Vec<bool>,
    /// The first tag from here on that starts or ends a task, or ends all tasks.
    task: Vec<usize>,
    /// The first tag from here on that starts a task or all tasks.
    tasks: Vec<usize>,
    /// The first tag from here on that starts a known section.
    section: Vec<usize>,
}

impl Bounds {
    fn of(tags: &[Tag<'_>]) -> Self {
        let is_task: Vec<bool> =
            tags.iter().map(|tag| tag.opens("task") && (tag.leads || tag.attribute("type").is_some())).collect();
        let first = |holds: &dyn Fn(usize, &Tag<'_>) -> bool| {
            let mut next = tags.len();
            let mut firsts = vec![next; tags.len() + 1];
            for (index, tag) in tags.iter().enumerate().rev() {
                if holds(index, tag) {
                    next = index;
                }
                firsts[index] = next;
            }
            firsts
        };
        let task = first(&|index, tag| is_task[index] || (tag.leads && (tag.ends("task") || tag.ends("tasks"))));
        let tasks = first(&|index, tag| is_task[index] || (tag.leads && tag.opens("tasks")));
        let section = first(&|_, tag| tag.leads && !tag.closes && SECTIONS.contains(&tag.name));
        Self { is_task, task, tasks, section }
    }
}

/// The start of a tag, or the end of the file.
fn start_of(source: &str, tags: &[Tag<'_>], index: usize) -> usize {
    tags.get(index).map_or(source.len(), |tag| tag.start)
}

/// Finds the parts of a task, and returns the tag after it.
fn written_task(source: &str, markup: &Markup<'_>, bounds: &Bounds, open: usize, report: &mut Report) -> (Written, usize) {
    let tags = &markup.tags;
    let tag = &tags[open];
    let place = tag.start..tag.end;
    if !tag.is_whole {
        report
            .warning(ProblemCode::UnclosedTag, &place, "this tag has no `>`; the task is read as starting after it")
            .help("write `>`");
    }
    let mut written = Written { open, parts: Vec::new(), loose: Vec::new() };
    let mut from = tag.end;
    let mut index = open + 1;
    if tag.is_empty {
        return (written, index);
    }
    loop {
        let Some(next) = tags.get(index) else {
            warn_unclosed(report, &place, "the file ends");
            written.loose.push(from..source.len());
            return (written, index);
        };
        if bounds.is_task[index] || (next.leads && next.ends("tasks")) {
            let ends = if next.closes { "the tasks end" } else { "the next task starts" };
            warn_unclosed(report, &place, ends);
            written.loose.push(from..next.start);
            return (written, index);
        }
        if next.ends("task") {
            written.loose.push(from..next.start);
            return (written, index + 1);
        }
        let known = task::knows(next.name);
        if next.opens("task") {
            warn_text(report, next);
        }
        if next.closes || next.is_empty || !(known || next.leads) {
            index += 1;
            continue;
        }
        let bound = bounds.task[index + 1];
        let part = match markup.closed_by[index] {
            Some(close) if close < bound => Some((index + 1..close, tags[close].start, tags[close].end, close + 1)),
            Some(_) | None if known && next.leads => {
                // The part ends where the next one starts.
                let follows = |tag: &Tag<'_>| tag.leads && !tag.closes && task::knows(tag.name);
                let end = (index + 1..bound).find(|index| follows(&tags[*index])).unwrap_or(bound);
                let until = start_of(source, tags, end);
                report
                    .warning(
                        ProblemCode::UnclosedTag,
                        &(next.start..next.end),
                        format!("`<{}>` is not closed in its task", next.name),
                    )
                    .help(format!("write `</{}>` where it ends", next.name));
                Some((index + 1..end, until, until, end))
            }
            Some(_) | None => None,
        };
        match part {
            None => index += 1,
            Some((inside, end, after, next_index)) => {
                tags[inside.clone()].iter().filter(|tag| tag.opens("task")).for_each(|tag| warn_text(report, tag));
                written.loose.push(from..next.start);
                written.parts.push(Part { open: index, tags: inside, inner: next.end..end });
                from = after;
                index = next_index;
            }
        }
    }
}

/// A `<task>` inside a line and without a type is probably prose about tasks.
fn warn_text(report: &mut Report, tag: &Tag<'_>) {
    let message = "this `<task>` is inside a line and has no type, so it is read as text";
    report
        .warning(ProblemCode::StrayTag, &(tag.start..tag.end), message)
        .help("if it is a task, put it on its own line with a `type`; otherwise put backticks around it");
}

fn warn_unclosed(report: &mut Report, place: &Range<usize>, ends: &str) {
    report
        .warning(ProblemCode::UnclosedTag, place, format!("this task is not closed before {ends}"))
        .help("write `</task>` where it ends");
}

/// Reads a section, and returns the tag after it.
fn section(source: &str, markup: &Markup<'_>, bounds: &Bounds, open: usize, plan: &mut PlanFile, report: &mut Report) -> usize {
    let tags = &markup.tags;
    let tag = &tags[open];
    let place = tag.start..tag.end;
    let known = SECTIONS.contains(&tag.name);
    let bound = bounds.tasks[open + 1];
    let (end, next) = match markup.closed_by[open] {
        Some(close) if close < bound && (known || close < bounds.section[open + 1]) => (tags[close].start, close + 1),
        Some(_) | None if known => {
            let next = bound.min(bounds.section[open + 1]);
            report
                .warning(ProblemCode::UnclosedTag, &place, format!("`<{}>` is not closed", tag.name))
                .help(format!("write `</{}>` where it ends", tag.name));
            (start_of(source, tags, next), next)
        }
        // The tag encloses several sections, or is not a section.
        Some(_) | None => return open + 1,
    };
    tags[open + 1..next].iter().filter(|tag| tag.opens("task")).for_each(|tag| warn_text(report, tag));
    let text = unindented(&source[tag.end..end]);
    let place_for = match tag.name {
        "objective" => &mut plan.objective,
        "execution_context" => &mut plan.execution_context,
        "context" => &mut plan.context,
        "verification" => &mut plan.verification,
        "success_criteria" => &mut plan.success_criteria,
        "output" => &mut plan.output,
        name => {
            if task::knows(name) {
                report
                    .warning(ProblemCode::StrayTag, &place, format!("`<{}>` is outside of any task", shown(name)))
                    .help("move it into a task");
            }
            plan.others.push(Section { tag: name.to_owned(), text });
            return next;
        }
    };
    task::append(place_for, &text);
    next
}
