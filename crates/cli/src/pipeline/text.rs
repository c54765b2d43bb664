//! A pipeline as text.

use crate::print::{ERROR, FAINT, HELP, STRONG, WARNING, styled};
use crate::style::Styled as _;
use lockgate::pipeline::{GateView, PipelineView, WorkstreamStatus, WorkstreamView};
use lockgate::view::lockgate;
use lockgate::{human_time, sanitize};
use lockgate_engine::time::Timestamp;

/// The maximum number of artifacts listed for a workstream.
const FEW: usize = 5;

pub(crate) fn text(view: &PipelineView, now: Timestamp) -> String {
    let title = sanitize::line(&format!("{} {}", view.prd, view.title)).into_owned();
    let status = styled(view.status.style(), view.status.as_str());
    let mut text = format!("{} is {status}, in phase {} of {}\n", styled(STRONG, title), view.current_phase, view.phases.len());
    text += &format!("  file {}\n", styled(FAINT, sanitize::line(&view.file)));
    if let Some(review) = &view.review {
        let why = review.override_reason.as_deref().map(|why| format!(": {}", sanitize::line(why))).unwrap_or_default();
        let (verdict, p0, p1) = (review.verdict.as_str(), review.p0, review.p1);
        text += &format!("  review {verdict} (attempt {}, {p0} P0, {p1} P1){why}\n", review.attempt);
    }
    if view.waits_for_review {
        let command = lockgate(["pipeline", "review", &view.prd, "--verdict", "ship", "--p0", "0", "--p1", "0"]);
        let waits = styled(WARNING, "it starts only after a review permits it");
        text += &format!("  {waits}: {}\n", styled(HELP, sanitize::line(&command)));
    }
    if let Some(error) = &view.error {
        let location = error.file.as_ref().map(|file| match error.line {
            Some(line) => format!(" ({file}:{line})"),
            None => format!(" ({file})"),
        });
        let failure = format!("{}: {}{}", error.workstream, error.message, location.unwrap_or_default());
        text += &format!("  {} {}\n", styled(ERROR, "failed:"), sanitize::line(&failure));
    }
    for phase in &view.phases {
        let numbered = phase.name.to_lowercase().starts_with("phase");
        let name = if numbered { phase.name.clone() } else { format!("Phase {}: {}", phase.number, phase.name) };
        text += &format!("  {}\n", sanitize::line(&name));
        for workstream in &phase.workstreams {
            text += &workstream_text(workstream, now);
        }
        for gate in &phase.gates {
            text += &gate_text(gate, "    ");
        }
    }
    text
}

fn workstream_text(view: &WorkstreamView, now: Timestamp) -> String {
    let status = styled(view.status.style(), format_args!("{:<11}", view.status.words()));
    let name = if view.name.is_empty() { view.id.clone() } else { format!("{}: {}", view.id, view.name) };
    let time = match (view.started_at, view.ended_at, view.status) {
        (Some(started), Some(ended), _) => format!("  {}", human_time::duration(ended.since(started))),
        (Some(started), None, WorkstreamStatus::InProgress) => format!("  for {}", human_time::duration(now.since(started))),
        (Some(_), None, _) | (None, _, _) => String::new(),
    };
    let mut text = format!("    {status} {}{}\n", sanitize::line(&name), styled(FAINT, time));
    for gate in &view.gates {
        text += &gate_text(gate, "      ");
    }
    if !view.artifacts.is_empty() {
        let more = view.artifacts.len().saturating_sub(FEW);
        let mut names: Vec<String> = view.artifacts.iter().take(FEW).map(|path| sanitize::line(path).into_owned()).collect();
        if more > 0 {
            names.push(format!("and {more} more"));
        }
        text += &format!("      {}\n", styled(FAINT, names.join(", ")));
    }
    text
}

fn gate_text(gate: &GateView, indent: &str) -> String {
    let status = styled(gate.status.style(), format_args!("{:<9}", gate.status.words()));
    let took = gate
        .duration_ms
        .map(|took| format!("  {}", human_time::duration(std::time::Duration::from_millis(took))))
        .unwrap_or_default();
    let again = if gate.attempts > 1 { format!(" (attempt {})", gate.attempts) } else { String::new() };
    format!("{indent}{status} gate {}{again}{}\n", sanitize::line(&gate.name), styled(FAINT, took))
}
