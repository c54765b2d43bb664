//! The diagram as SVG: phases from top to bottom, tasks from left to right in layers, readable on light and dark pages.

mod layout;

use super::truncate;
use super::{CheckpointBox, Drawing, GateBox, Mark, PhaseBox, layers};
use layout::{Item, Picture, Placed};
use unicode_width::UnicodeWidthStr;

/// The margin around the picture.
const MARGIN: f64 = 24.0;
/// The padding inside a phase.
const PADDING: f64 = 18.0;
/// The gap between phases.
const GAP: f64 = 34.0;
/// The maximum width of a row of boxes.
const ROW: f64 = 860.0;
/// The minimum width of a phase.
const LEAST: f64 = 420.0;
/// The height of a box.
const BOX: f64 = 30.0;
/// The width of a character in a box, and in running text.
const LETTER: f64 = 7.6;
const SENTENCE_LETTER: f64 = 7.1;
/// The maximum number of characters in a box.
const LONGEST: usize = 40;
/// The maximum length of a prompt's line, and the maximum number of lines.
const PROMPT: (usize, usize) = (96, 3);

/// Separates the parts of a heading. Some viewers drop ordinary spaces at the start of a `tspan`.
const DOT: &str = "\u{a0}·\u{a0}";

const STYLE: &str = "\
text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;fill:#1f2933}\
.m{font:12.5px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace}\
.title{font-size:17px;font-weight:600}.head{font-size:14px;font-weight:600}.faint{fill:#66788a}\
.page{fill:#fff}.phase{fill:#f6f8fa;stroke:#cdd6df}.now{stroke:#5b7fb0;stroke-width:2}.box{fill:#fff;stroke:#9fb0c0}.gate{stroke-dasharray:5 3}\
.ask{fill:#fffaf0;stroke:#d9a441}.line{fill:none;stroke:#8a9bac;stroke-width:1.4}.tip{fill:#8a9bac}\
.done{fill:#e6f6ea;stroke:#2b8a3e}.running{fill:#e3eefe;stroke:#1c64d1;stroke-width:2}.asking{fill:#fff3cd;stroke:#b7791f;stroke-width:2}\
.interrupted{fill:#fff0e0;stroke:#d9480f;stroke-width:2}.ended,.failed{fill:#ffe9e9;stroke:#c92a2a;stroke-width:2}\
.pending{fill:#fff;stroke:#b6c2cd}.skipped{fill:#f1f3f5;stroke:#b6c2cd;stroke-dasharray:4 3}\
@media(prefers-color-scheme:dark){text{fill:#e4eaf0}.faint{fill:#93a4b5}.page{fill:#11161c}.phase{fill:#182029;stroke:#33414f}\
.box{fill:#1f2933;stroke:#54677a}.ask{fill:#2a2416;stroke:#a37a24}.line{stroke:#6f8296}.tip{fill:#6f8296}\
.done{fill:#163322;stroke:#4cb56a}.running{fill:#15294a;stroke:#5b9bf5}.asking{fill:#3a2f12;stroke:#e0b040}\
.interrupted{fill:#3c2413;stroke:#f08c4a}.ended,.failed{fill:#3d1a1a;stroke:#ef6a6a}.pending{fill:#1f2933;stroke:#54677a}\
.skipped{fill:#1a222b;stroke:#54677a}}";

/// Renders the diagram.
pub fn write(drawing: &Drawing) -> String {
    let cards: Vec<Card> = drawing.phases.iter().map(|phase| card(drawing, phase)).collect();
    let title = truncate(&drawing.title, 100);
    let least = (title.width() as f64 * 9.5).max(LEAST);
    let width = cards.iter().map(|card| card.width).fold(least, f64::max);
    let mut body = String::new();
    let state = drawing.status.map(|status| format!("{DOT}{} {status}", Mark::of_run(status).sign())).unwrap_or_default();
    body.push_str(&format!(
        "<text class=\"title\" x=\"{MARGIN}\" y=\"{}\">{}<tspan class=\"faint\">{}</tspan></text>\n",
        MARGIN + 16.0,
        escaped(&title),
        escaped(&state)
    ));
    let mut y = MARGIN + 36.0;
    for (at, card) in cards.iter().enumerate() {
        if at > 0 {
            arrow(&mut body, (MARGIN + 40.0, y - GAP), (MARGIN + 40.0, y));
        }
        let class = drawing.phases[at].mark.map_or("phase", phase_class);
        body.push_str(&format!(
            "<rect class=\"{class}\" x=\"{MARGIN}\" y=\"{y}\" width=\"{width}\" height=\"{}\" rx=\"10\"/>\n",
            card.height
        ));
        body.push_str(&format!("<g transform=\"translate({},{})\">\n{}</g>\n", MARGIN + PADDING, y, card.body));
        y += card.height + GAP;
    }
    let (width, height) = (width + 2.0 * MARGIN, y - GAP + MARGIN);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
         <path class=\"tip\" d=\"M0 0.5L8 4L0 7.5z\"/></marker></defs>\n\
         <rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n{body}</svg>\n",
        escaped(&drawing.title)
    )
}

/// Highlights the current phase.
fn phase_class(mark: Mark) -> &'static str {
    match mark {
        Mark::Running | Mark::Asking | Mark::Interrupted | Mark::Ended | Mark::Failed => "phase now",
        Mark::Done | Mark::Skipped | Mark::Pending => "phase",
    }
}

/// A phase, with coordinates relative to its own corner.
struct Card {
    body: String,
    width: f64,
    height: f64,
}

fn card(drawing: &Drawing, phase: &PhaseBox) -> Card {
    let mut card = Card { body: String::new(), width: 0.0, height: 30.0 };
    let sign = phase.mark.map(|mark| format!("{} ", mark.sign())).unwrap_or_default();
    let name = phase.name.as_deref().map(|name| format!("{DOT}{}", truncate(name, 60))).unwrap_or_default();
    let mut rest = name;
    if phase.iteration > 1 {
        rest.push_str(&format!("{DOT}execution {}", phase.iteration));
    }
    rest += &phase.mark.map(|mark| format!("{DOT}{}", mark.as_str())).unwrap_or_default();
    let id = truncate(&phase.id, LONGEST);
    card.body.push_str(&format!(
        "<text class=\"head\" y=\"24\">{}<tspan class=\"faint\">{}</tspan></text>\n",
        escaped(&format!("{sign}{id}")),
        escaped(&rest)
    ));
    card.width = 2.0 * PADDING + (sign.width() + id.width() + rest.width()) as f64 * 8.2;
    if !phase.tasks.is_empty() {
        card.add(8.0, tasks(phase));
    }
    // Gates of single tasks are drawn among the tasks.
    let gates: Vec<Item> = phase.gates.iter().filter(|gate| gate.task.is_none()).map(gate_item).collect();
    if !gates.is_empty() {
        card.add(14.0, layout::row(gates, true));
    }
    if let Some(checkpoint) = &phase.checkpoint {
        checkpoint_panel(&mut card, drawing, checkpoint);
    }
    card.height += PADDING;
    card
}

impl Card {
    /// Appends boxes and lines at the bottom.
    fn add(&mut self, gap: f64, picture: Picture) {
        self.height += gap;
        for points in &picture.lines {
            path(&mut self.body, points, self.height);
        }
        for placed in &picture.boxes {
            boxed(&mut self.body, placed, self.height);
        }
        self.width = self.width.max(picture.width + 2.0 * PADDING);
        self.height += picture.height;
    }
}

fn item(label: &str, longest: usize, mark: Option<Mark>, kind: &'static str) -> Item {
    let sign = mark.map(|mark| format!("{} ", mark.sign())).unwrap_or_default();
    let tooltip = mark.map(|mark| format!("{label}: {}", mark.as_str())).unwrap_or_else(|| label.to_owned());
    let label = format!("{sign}{}", truncate(label, longest));
    Item {
        width: (label.width() as f64).mul_add(LETTER, 24.0),
        label,
        tooltip,
        class: format!("box {kind} {}", mark.map_or("", Mark::class)),
    }
}

fn gate_item(gate: &GateBox) -> Item {
    item(&gate.label, LONGEST + 5, gate.mark, "gate")
}

/// The tasks and their own gates. A gate follows its task, and dependents of the task follow the gate.
fn tasks(phase: &PhaseBox) -> Picture {
    let mut items: Vec<Item> = phase.tasks.iter().map(|task| item(&task.label, LONGEST, task.mark, "task")).collect();
    let mut needs: Vec<Vec<usize>> = phase.tasks.iter().map(|task| task.needs.clone()).collect();
    let mut layers: Vec<usize> = phase.tasks.iter().map(|task| task.layer).collect();
    for (gate, task) in phase.gates.iter().filter_map(|gate| Some((gate, gate.task?))) {
        let node = items.len();
        items.push(gate_item(gate));
        for needed in needs.iter_mut().filter(|needed| needed.contains(&task)) {
            needed.push(node);
        }
        needs.push(vec![task]);
        layers.push(0);
    }
    layers::push_down(&mut layers, &needs);
    let needs = layers::reduced(&needs);
    let is_chain = needs.iter().enumerate().all(|(at, needs)| if at == 0 { needs.is_empty() } else { *needs == [at - 1] });
    if is_chain {
        layout::row(items, true)
    } else if needs.iter().all(Vec::is_empty) {
        layout::row(items, false)
    } else {
        layout::layered(items, &needs, &layers)
    }
}

fn checkpoint_panel(card: &mut Card, drawing: &Drawing, checkpoint: &CheckpointBox) {
    let top = card.height + 14.0;
    let mut inside = Card { body: String::new(), width: 0.0, height: top + 10.0 };
    let sign = checkpoint.mark.map(|mark| format!("{} ", mark.sign())).unwrap_or_default();
    let when = if checkpoint.conditional { "checkpoint, if its condition holds" } else { "checkpoint" };
    let state = checkpoint.mark.map(|mark| format!(": {}", mark.as_str())).unwrap_or_default();
    inside.body.push_str(&format!(
        "<text class=\"faint\" x=\"14\" y=\"{}\">{}</text>\n",
        inside.height + 11.0,
        escaped(&format!("{sign}{when}{state}"))
    ));
    inside.height += 20.0;
    for line in lines(&checkpoint.prompt) {
        inside.body.push_str(&format!("<text x=\"14\" y=\"{}\">{}</text>\n", inside.height + 13.0, escaped(&line)));
        inside.height += 19.0;
        inside.width = inside.width.max((line.width() as f64).mul_add(SENTENCE_LETTER, 28.0));
    }
    let options = checkpoint.options.iter().map(|option| {
        let leads = drawing.words(&option.leads).map(|words| format!(" → {words}")).unwrap_or_default();
        let chosen = checkpoint.chosen.as_ref().is_some_and(|chosen| *chosen == option.label);
        item(&format!("{}{leads}", truncate(&option.label, LONGEST)), 2 * LONGEST, chosen.then_some(Mark::Done), "task")
    });
    let mut row = layout::row(options.collect(), false);
    row.boxes.iter_mut().for_each(|placed| placed.x += 14.0);
    row.width += 28.0 - 2.0 * PADDING;
    inside.add(6.0, row);
    let height = inside.height + 12.0 - top;
    let class = checkpoint.mark.filter(|mark| *mark == Mark::Asking).map_or("ask", Mark::class);
    card.body
        .push_str(&format!("<rect class=\"{class}\" y=\"{top}\" width=\"{}\" height=\"{height}\" rx=\"8\"/>\n", inside.width));
    card.body += &inside.body;
    card.width = card.width.max(inside.width + 2.0 * PADDING);
    card.height = top + height;
}

/// Wraps a prompt into lines.
fn lines(prompt: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in prompt.split(' ') {
        let word = truncate(word, PROMPT.0);
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].width() + 1 + word.width() > PROMPT.0 {
            lines.push(word);
        } else {
            let space = if lines[last].is_empty() { "" } else { " " };
            lines[last].push_str(&format!("{space}{word}"));
        }
    }
    if lines.len() > PROMPT.1 {
        lines.truncate(PROMPT.1);
        lines[PROMPT.1 - 1] += " …";
    }
    lines
}

fn boxed(body: &mut String, placed: &Placed, down: f64) {
    let Placed { item, x, y } = placed;
    let y = y + down;
    body.push_str(&format!(
        "<g><title>{}</title><rect class=\"{}\" x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{BOX}\" rx=\"6\"/>\
         <text class=\"m\" x=\"{}\" y=\"{}\">{}</text></g>\n",
        escaped(&item.tooltip),
        item.class.trim(),
        item.width,
        x + 12.0,
        y + 19.5,
        escaped(&item.label)
    ));
}

/// A smooth curve through some points, horizontal at each of them.
fn path(body: &mut String, points: &[(f64, f64)], down: f64) {
    let mut curve = String::new();
    for (at, (x, y)) in points.iter().enumerate() {
        let y = y + down;
        if at == 0 {
            curve.push_str(&format!("M{x} {y}"));
            continue;
        }
        let (before, height) = (points[at - 1].0, points[at - 1].1 + down);
        let middle = f64::midpoint(before, *x);
        curve.push_str(&format!("C{middle} {height} {middle} {y} {x} {y}"));
    }
    body.push_str(&format!("<path class=\"line\" marker-end=\"url(#tip)\" d=\"{curve}\"/>\n"));
}

fn arrow(body: &mut String, from: (f64, f64), to: (f64, f64)) {
    body.push_str(&format!("<path class=\"line\" marker-end=\"url(#tip)\" d=\"M{} {}L{} {}\"/>\n", from.0, from.1, to.0, to.1));
}

/// Escapes text for XML, and removes characters that XML does not allow.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            '"' => escaped += "&quot;",
            '\'' => escaped += "&#39;",
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}
