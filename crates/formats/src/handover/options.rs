//! Reads the options of a decision from what an agent wrote: a table, a list, headings or prose.
//!
//! The agent only has to list them. A person can always answer in free text, so a text that is not clearly a list of options gives
//! no options rather than wrong ones.

mod label;
mod list;
mod prose;
mod table;

use label::{Label, is_id, slug};
use lockgate_engine::id::OptionId;
use lockgate_engine::spec::workflow::question::DecisionOption;

/// The maximum number of options; a longer list is probably misread text.
pub const MAX_OPTIONS: usize = 20;

const MAX_NAME: usize = 200;
const MAX_REMARK: usize = 2000;

/// An option as found in the text, before it has a unique id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Found {
    label: Label,
    pros: Option<String>,
    cons: Option<String>,
}

/// The options in the details of a block; otherwise those named in the awaited input.
pub(super) fn read(details: &str, awaiting: &str) -> Vec<DecisionOption> {
    let lines: Vec<&str> = details.lines().collect();
    let region = region(&lines);
    let (marked, lines) = match region {
        Some((from, to)) => (true, &lines[from..to]),
        None => (false, &lines[..]),
    };
    let mut found = table::read(lines, marked);
    if found.is_empty() {
        found = list::read(lines, marked);
    }
    let asked = prose::selection(awaiting);
    if found.is_empty() {
        found = prose::read(lines, marked);
    }
    if found.is_empty() {
        found = asked;
    } else {
        take_ids(&mut found, &asked);
    }
    numbered(found)
}

/// The lines below a line such as "Options:", up to the next section.
fn region(lines: &[&str]) -> Option<(usize, usize)> {
    let from = lines.iter().position(|line| label::marks_options(line))?;
    let after = &lines[from + 1..];
    let to = after.iter().position(|line| label::ends_options(line)).map_or(lines.len(), |count| from + 1 + count);
    // The marker line is included, because options may follow on it.
    Some((from, to))
}

/// If the agent describes options by name and asks for them by id, the described options take these ids.
fn take_ids(found: &mut [Found], asked: &[Found]) {
    if found.len() != asked.len() || found.iter().any(|option| option.label.certain) {
        return;
    }
    // In a different order, the positions do not say which id belongs to which option.
    let own = |option: &Found| option.label.id.clone().unwrap_or_else(|| slug(&option.label.name)).to_lowercase();
    let is_elsewhere = |at: usize, id: &str| found.iter().enumerate().any(|(other, option)| other != at && own(option) == id);
    let ids = asked.iter().map(|option| option.label.id.as_deref().unwrap_or_default().to_lowercase());
    if ids.enumerate().any(|(at, id)| is_elsewhere(at, &id)) {
        return;
    }
    for (option, asked) in found.iter_mut().zip(asked) {
        option.label.id = asked.label.id.clone();
    }
}

/// Gives every option a valid and unique id.
fn numbered(found: Vec<Found>) -> Vec<DecisionOption> {
    let mut options: Vec<DecisionOption> = Vec::new();
    for Found { label, pros, cons } in found.into_iter().take(MAX_OPTIONS) {
        let name = one_line(&label.name, MAX_NAME);
        let given = label.id.filter(|id| is_id(id)).unwrap_or_else(|| slug(&name));
        let is_number = given.bytes().all(|byte| byte.is_ascii_digit());
        // A bare number would be taken for a position in the list.
        let base = match () {
            () if given.is_empty() => format!("option-{}", options.len() + 1),
            () if is_number => format!("option-{given}"),
            () => given,
        };
        let same = |id: &str, options: &[DecisionOption]| {
            options.iter().any(|known| known.id.as_str().to_lowercase() == id.to_lowercase())
        };
        if options.iter().any(|known| known.id.as_str() == base && known.name == name) {
            continue;
        }
        let mut id = base.clone();
        let mut count = 1;
        while same(&id, &options) {
            count += 1;
            id = format!("{base}-{count}");
        }
        let name = if name.is_empty() { id.clone() } else { name };
        let remark = |text: Option<String>| text.map(|text| one_line(&text, MAX_REMARK)).filter(|text| !text.is_empty());
        options.push(DecisionOption { id: OptionId::new(id), name, pros: remark(pros), cons: remark(cons) });
    }
    options
}

/// Puts a text on one line, without control characters.
fn one_line(text: &str, most: usize) -> String {
    let plain = text.replace(|sign: char| sign.is_control(), " ");
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ").chars().take(most).collect::<String>().trim_end().to_owned()
}

#[cfg(test)]
mod tests;
