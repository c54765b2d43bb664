//! Suggestions for misspelled words.

use super::problem::shown;

/// Longer words are not compared, because they are unlikely to be misspellings.
const LONGEST: usize = 64;

/// The candidate nearest to a misspelled word, if any is near.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    let folded = fold(word);
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        if candidate.len() > LONGEST {
            continue;
        }
        let likeness = likeness(&folded, &fold(candidate));
        if likeness >= 0.6 && best.is_none_or(|(so_far, _)| likeness > so_far) {
            best = Some((likeness, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The word that this one is a typo of: at most two edits, and only one if the word is short.
pub fn typo_of<'c>(word: &str, known: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    if word.is_empty() || word.len() > LONGEST {
        return None;
    }
    let word = word.to_lowercase();
    let edits = |candidate: &str| strsim::osa_distance(&word, candidate);
    let near = known.into_iter().map(|candidate| (edits(candidate), candidate));
    near.filter(|(edits, candidate)| *edits <= if candidate.len() < 6 { 1 } else { 2 }).min().map(|(_, candidate)| candidate)
}

/// The help line for a misspelled word.
pub fn did_you_mean<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    nearest(word, candidates).map(|candidate| format!("did you mean `{}`?", shown(candidate)))
}

/// The help line for an unknown word: a suggestion, or else the known words. `None` if there are none.
pub fn meant_or_known<'c>(word: &str, candidates: impl Iterator<Item = &'c str> + Clone) -> Option<String> {
    did_you_mean(word, candidates.clone()).or_else(|| known(candidates).map(|known| format!("available: {known}")))
}

/// The first few names, for a message. `None` if there are none.
pub fn known<'c>(candidates: impl Iterator<Item = &'c str>) -> Option<String> {
    const MOST: usize = 8;
    let mut candidates = candidates;
    let first: Vec<String> = candidates.by_ref().take(MOST).map(|candidate| format!("`{}`", shown(candidate))).collect();
    match (first.is_empty(), candidates.count()) {
        (true, _) => None,
        (false, 0) => Some(first.join(", ")),
        (false, more) => Some(format!("{} and {more} more", first.join(", "))),
    }
}

/// Ignores case, `-` and `_`.
fn fold(word: &str) -> String {
    word.to_lowercase().replace(['-', ' '], "_")
}

fn likeness(word: &str, candidate: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(word, candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_is_recognized() {
        let known = ["review", "planning", "on_interrupt", "on_fail"];
        assert_eq!(nearest("reveiw", known), Some("review"));
        assert_eq!(nearest("onInterrupt", known), Some("on_interrupt"));
        assert_eq!(nearest("on-fail", known), Some("on_fail"));
    }

    #[test]
    fn without_a_near_match_the_known_names_are_listed_up_to_a_limit() {
        assert_eq!(meant_or_known("banana", ["review", "plan"].into_iter()), Some("available: `review`, `plan`".into()));
        assert_eq!(meant_or_known("reveiw", ["review", "plan"].into_iter()), Some("did you mean `review`?".into()));
        assert_eq!(meant_or_known("banana", [].into_iter()), None);
        let many: Vec<String> = (0..20).map(|number| format!("phase{number}")).collect();
        let help = meant_or_known("x", many.iter().map(String::as_str)).expect("a list");
        assert!(help.ends_with("`phase7` and 12 more"), "{help}");
    }

    #[test]
    fn an_unrelated_word_suggests_nothing() {
        assert_eq!(nearest("banana", ["review", "planning"]), None);
        assert_eq!(nearest("", ["a"]), None);
        assert_eq!(nearest(&"x".repeat(1000), ["xxxx"]), None);
    }
}
