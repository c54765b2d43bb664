//! What somebody probably meant.

use super::problem::shown;

/// Longer words are not compared: they are not misspelt but something else.
const LONGEST: usize = 64;

/// The candidate that a misspelt word is nearest to, if any is near.
pub(crate) fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
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

/// The help line for a misspelt word.
pub(crate) fn did_you_mean<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<String> {
    nearest(word, candidates).map(|candidate| format!("did you mean `{}`?", shown(candidate)))
}

/// Upper case, `-` and `_` are no difference that anybody means.
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
    fn a_misspelt_word_is_recognised() {
        let known = ["review", "planning", "on_interrupt", "on_fail"];
        assert_eq!(nearest("reveiw", known), Some("review"));
        assert_eq!(nearest("onInterrupt", known), Some("on_interrupt"));
        assert_eq!(nearest("on-fail", known), Some("on_fail"));
    }

    #[test]
    fn a_different_word_suggests_nothing() {
        assert_eq!(nearest("banana", ["review", "planning"]), None);
        assert_eq!(nearest("", ["a"]), None);
        assert_eq!(nearest(&"x".repeat(1000), ["xxxx"]), None);
    }
}
