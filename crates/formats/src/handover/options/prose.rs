//! Options in sentences.

use super::Found;
use super::label::{Label, after_marker, bare, is_id, label, split_sides};

/// The options in lines of prose; a single option does not count.
pub(super) fn read(lines: &[&str], marked: bool) -> Vec<Found> {
    let listed = lines.first().filter(|_| marked).and_then(|line| after_marker(line));
    if let Some(found) = listed.as_deref().map(|text| enumerated(text).or_else(|| separated(text))) {
        return found.unwrap_or_default();
    }
    let text = lines.join(" ");
    enumerated(&text).or_else(|| quoted(&text)).or_else(|| either(&text)).unwrap_or_default()
}

/// The options that the awaited input names: "Select: sqlite | postgres", "Reply with `a` or `b`".
pub(super) fn selection(awaiting: &str) -> Vec<Found> {
    let first = awaiting.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let text = bare(first);
    let lower = text.to_lowercase();
    let begins =
        ["select", "choose", "choose one", "select one", "pick", "pick one", "one of", "reply with", "answer", "options"];
    let after = |word: &&str| {
        let rest = lower.strip_prefix(*word)?;
        rest.trim_start().strip_prefix(':').map(|rest| text.len() - rest.len())
    };
    let listed = begins.iter().find_map(after).map(|at| text[at..].trim());
    let found =
        listed.and_then(|text| enumerated(text).or_else(|| separated(text))).or_else(|| quoted(first)).or_else(|| either(first));
    found.unwrap_or_default()
}

/// `Option A: … Option B: …`, `(a) … (b) …`, `1) … 2) …`.
fn enumerated(text: &str) -> Option<Vec<Found>> {
    let named = markers(text, |rest| {
        let word = rest.get(..7).filter(|word| word.eq_ignore_ascii_case("option "))?;
        let after = &rest[word.len()..];
        let end = after.find(|sign: char| !sign.is_ascii_alphanumeric()).unwrap_or(after.len());
        let follows = after[end..].trim_start();
        let follows_on = follows.starts_with([':', '—', '–', '-', '(', '=']) || follows.starts_with("is ");
        let fits = (1..=2).contains(&end) && follows_on;
        fits.then(|| (format!("option-{}", after[..end].to_lowercase()), word.len() + end))
    });
    let lettered = || {
        markers(text, |rest| {
            let inner = rest.strip_prefix('(').unwrap_or(rest);
            let id = inner.chars().next().filter(char::is_ascii_alphanumeric)?;
            let closes = inner[1..].starts_with(')');
            closes.then(|| (id.to_string(), rest.len() - inner.len() + 2))
        })
    };
    let found = named.or_else(lettered)?;
    let is_row = found.iter().zip(found.iter().skip(1)).all(|(before, after)| before.label.id < after.label.id);
    (found.len() > 1 && is_row).then_some(found)
}

/// Splits a text where `id` finds the start of an option; it returns the id and its length.
fn markers(text: &str, id: impl Fn(&str) -> Option<(String, usize)>) -> Option<Vec<Found>> {
    let text = text.replace("**", "");
    let mut starts: Vec<(usize, usize, String)> = Vec::new();
    let mut before = ' ';
    for (at, sign) in text.char_indices() {
        let inside = starts.last().is_some_and(|(_, end, _)| at < *end);
        if !before.is_alphanumeric()
            && !inside
            && let Some((id, long)) = id(&text[at..])
        {
            starts.push((at, at + long, id));
        }
        before = sign;
    }
    let end = |index: usize| starts.get(index + 1).map_or(text.len(), |(next, _, _)| *next);
    let found = starts.iter().enumerate().map(|(index, (_, from, id))| {
        let (name, pros, cons) = split_sides(&text[*from..end(index)]);
        let name = sentence(&name);
        Found { label: Label { id: Some(id.clone()), name, certain: true }, pros, cons }
    });
    let found: Vec<Found> = found.filter(|found| !found.label.name.is_empty()).collect();
    (found.len() > 1).then_some(found)
}

/// The first sentence of a description, without a trailing conjunction.
fn sentence(text: &str) -> String {
    let text = text.trim_start_matches(|sign: char| sign.is_whitespace() || ":–—-=).".contains(sign));
    let text = text.strip_prefix("is ").unwrap_or(text);
    let end = [". ", "? ", "! "].iter().filter_map(|sign| text.find(sign)).min().unwrap_or(text.len());
    let text = text[..end].trim().trim_end_matches(['.', ',', ';', '?', '!', '|']).trim_end();
    let text = text.strip_suffix(" or").or_else(|| text.strip_suffix(" and")).unwrap_or(text);
    text.trim_end_matches([',', ';']).trim().to_owned()
}

/// `sqlite | postgres`, `[a, b or c]`.
fn separated(text: &str) -> Option<Vec<Found>> {
    let text = text.trim().trim_end_matches('.').trim_matches(['[', ']', '{', '}', '<', '>']);
    let sign = ['|', ';', ','].into_iter().find(|sign| text.contains(*sign));
    let parts: Vec<&str> = match sign {
        Some(sign) => text.split(sign).collect(),
        None => text.split(" or ").collect(),
    };
    let parts = parts.into_iter().flat_map(|part| part.split(" or ")).map(|part| part.trim().trim_start_matches("or ").trim());
    let parts = parts.map(|part| part.trim_matches(['"', '\'', '“', '”', '`']));
    let parts: Vec<&str> = parts.filter(|part| !matches!(*part, "" | "..." | "…" | "etc")).collect();
    let fits = parts.len() > 1 && parts.iter().all(|part| part.split_whitespace().count() <= 6);
    fits.then(|| parts.into_iter().map(plain).collect())
}

/// `` `sqlite`, `redis` or `postgres` ``.
fn quoted(text: &str) -> Option<Vec<Found>> {
    ['`', '"'].into_iter().find_map(|quote| {
        let pieces: Vec<&str> = text.split(quote).collect();
        let mut run: Vec<&str> = Vec::new();
        let mut joined = false;
        for pair in pieces[1..].chunks(2) {
            run.push(pair.first()?);
            let between = pair.get(1).map_or("", |between| between.trim());
            joined |= matches!(between, "or" | ", or" | "vs" | "vs.");
            if !matches!(between, "," | "/" | "|" | "or" | ", or" | "vs" | "vs.") {
                if run.len() > 1 && joined {
                    break;
                }
                (run, joined) = (Vec::new(), false);
            }
        }
        let fits =
            run.len() > 1 && joined && run.iter().all(|word| word.split_whitespace().count() <= 4 && !word.trim().is_empty());
        // Quoted answers to other kinds of checkpoints are not options: "approved" or describe issues.
        fits.then(|| run.into_iter().map(plain).collect())
    })
}

/// `either X or Y`, `between X and Y`.
fn either(text: &str) -> Option<Vec<Found>> {
    let lower = text.to_ascii_lowercase();
    [("either ", " or "), ("between ", " and "), ("between ", " or ")].into_iter().find_map(|(begins, joins)| {
        let from = lower.find(begins)? + begins.len();
        let end = lower[from..].find(['.', '?', '!', ';', ':', '\n']).map_or(text.len(), |end| from + end);
        let (one, other) = text[from..end].split_once(joins)?;
        let other = other.split_once(',').map_or(other, |(other, _)| other);
        let fits = [one, other].iter().all(|part| (1..=4).contains(&part.split_whitespace().count()));
        fits.then(|| vec![plain(one), plain(other)])
    })
}

fn plain(text: &str) -> Found {
    let read = label(text);
    let id = read.id.or_else(|| Some(bare(text)).filter(|id| is_id(id)));
    Found { label: Label { id, ..read }, ..Found::default() }
}
