//! The diagram as Mermaid text.

use super::edges::{self, Node};
use super::{Drawing, Mark, PhaseBox};

/// Colors that are readable on light and dark pages.
const CLASSES: [(Mark, &str); 8] = [
    (Mark::Done, "fill:#d9f2df,stroke:#2b8a3e,color:#123"),
    (Mark::Skipped, "fill:#eceff1,stroke:#90a4ae,color:#456,stroke-dasharray:4 3"),
    (Mark::Pending, "fill:#f8f9fa,stroke:#90a4ae,color:#345"),
    (Mark::Running, "fill:#dbeafe,stroke:#1c64d1,color:#123"),
    (Mark::Asking, "fill:#fff3cd,stroke:#b7791f,color:#321"),
    (Mark::Interrupted, "fill:#ffe8cc,stroke:#d9480f,color:#321"),
    (Mark::Ended, "fill:#ffe3e3,stroke:#c92a2a,color:#311"),
    (Mark::Failed, "fill:#ffe3e3,stroke:#c92a2a,color:#311"),
];

/// Renders the diagram.
pub fn write(drawing: &Drawing) -> String {
    let mut text = format!("%% {}\nflowchart TD\n", comment(&drawing.title));
    for (at, phase) in drawing.phases.iter().enumerate() {
        subgraph(&mut text, at, phase);
    }
    for at in 0..drawing.phases.len() {
        if at + 1 < drawing.phases.len() {
            text.push_str(&format!("  p{at} --> p{}\n", at + 1));
        }
        for (option, to) in edges::options(drawing, at) {
            let words = drawing.words(&option.leads).map(|words| format!(" ({words})")).unwrap_or_default();
            // The target is a node in the phase, because in Mermaid nothing may point at its own container.
            text.push_str(&format!(
                "  p{at}c -. \"{}\" .-> {}\n",
                escaped(&format!("{}{words}", option.label)),
                first_node(&drawing.phases[to], to)
            ));
        }
    }
    if drawing.status.is_some() {
        for (mark, style) in CLASSES {
            text.push_str(&format!("  classDef {} {style}\n", mark.class()));
        }
    }
    text
}

/// The first node of a phase.
fn first_node(phase: &PhaseBox, at: usize) -> String {
    match (phase.tasks.is_empty(), phase.gates.is_empty(), &phase.checkpoint) {
        (true, false, _) => format!("p{at}g0"),
        (true, true, Some(_)) => format!("p{at}c"),
        (false, _, _) | (true, true, None) => format!("p{at}t0"),
    }
}

fn subgraph(text: &mut String, at: usize, phase: &PhaseBox) {
    let name = phase.name.as_deref().map(|name| format!(": {name}")).unwrap_or_default();
    text.push_str(&format!("  subgraph p{at}[\"{}\"]\n", label(&format!("{}{name}", phase.id), phase.mark)));
    text.push_str("    direction LR\n");
    for (number, task) in phase.tasks.iter().enumerate() {
        text.push_str(&format!("    p{at}t{number}[\"{}\"]{}\n", label(&task.label, task.mark), class(task.mark)));
    }
    for (number, gate) in phase.gates.iter().enumerate() {
        text.push_str(&format!("    p{at}g{number}{{{{\"{}\"}}}}{}\n", label(&gate.label, gate.mark), class(gate.mark)));
    }
    if let Some(checkpoint) = &phase.checkpoint {
        text.push_str(&format!("    p{at}c{{\"{}\"}}{}\n", label(&checkpoint.prompt, checkpoint.mark), class(checkpoint.mark)));
    }
    if phase.tasks.is_empty() && phase.gates.is_empty() && phase.checkpoint.is_none() {
        // Mermaid does not draw an empty subgraph.
        text.push_str(&format!("    p{at}t0[\" \"]\n"));
    }
    for (from, to) in edges::within(phase) {
        text.push_str(&format!("    {} --> {}\n", node(at, from), node(at, to)));
    }
    text.push_str("  end\n");
    if let Some(mark) = phase.mark {
        text.push_str(&format!("  class p{at} {}\n", mark.class()));
    }
}

fn node(phase: usize, node: Node) -> String {
    match node {
        Node::Task(task) => format!("p{phase}t{task}"),
        Node::Gate(gate) => format!("p{phase}g{gate}"),
        Node::Checkpoint => format!("p{phase}c"),
    }
}

fn label(text: &str, mark: Option<Mark>) -> String {
    match mark {
        Some(mark) => format!("{} {} ({})", mark.sign(), escaped(text), mark.as_str()),
        None => escaped(text),
    }
}

fn class(mark: Option<Mark>) -> String {
    mark.map(|mark| format!(":::{}", mark.class())).unwrap_or_default()
}

/// Escapes every character that could have a meaning in Mermaid, Markdown or HTML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_alphanumeric() || matches!(character, ' ' | '.' | ',' | ':' | '?' | '!' | '/' | '+' | '-') {
            escaped.push(character);
        } else {
            escaped.push_str(&format!("#{};", character as u32));
        }
    }
    escaped
}

/// A comment ends at a line break, and Mermaid would read braces in it as settings.
fn comment(text: &str) -> String {
    text.replace(['{', '}', '%'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_completely() {
        assert_eq!(escaped("a\"b"), "a#34;b");
        assert_eq!(escaped("`**x**` <b> #35; ]--> end"), "#96;#42;#42;x#42;#42;#96; #60;b#62; #35;35#59; #93;--#62; end");
        assert_eq!(comment("%%{init: {}}%%"), "___init: _____");
    }
}
