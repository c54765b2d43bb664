//! Renders a git change: the totals, the files, and the patch in colour.

use crate::columns;
use crate::print::{ERROR, FAINT, GOOD, HELP, STRONG, WARNING, styled};
use lockgate::sanitize;
use lockgate::view::DiffView;
use lockgate_engine::plural::counted;

/// How much of a change is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) files: usize,
    /// Lines of the patch.
    pub(crate) lines: usize,
    /// Columns of each line.
    pub(crate) columns: usize,
}

/// The limit for a change that is shown among other things.
pub(crate) const SHORT: Cut = Cut { files: 12, lines: 24, columns: usize::MAX };

/// The start of a change, up to a limit.
pub(crate) fn cut(diff: &DiffView, indent: &str, cut: Cut) -> String {
    let mut text = format!("{indent}{}\n", headline(diff));
    let wide = cut.columns.saturating_sub(indent.len() + 2);
    let files = diff.files.iter().take(cut.files);
    text.extend(files.map(|file| format!("{indent}  {}\n", columns::fitted(&sanitize::line(&file.line()), wide))));
    let left = usize::try_from(diff.file_count).unwrap_or(usize::MAX).saturating_sub(cut.files.min(diff.files.len()));
    if left > 0 && cut.files > 0 {
        text += &format!("{indent}  {}\n", styled(FAINT, format_args!("… and {}", counted(left, "more file"))));
    }
    let Some(patch) = diff.text.as_deref().filter(|_| cut.lines > 0) else { return text };
    let bar = styled(FAINT, "│");
    text.extend(patch.lines().take(cut.lines).map(|line| format!("{indent}{bar} {}\n", coloured(line, wide))));
    let left = patch.lines().count().saturating_sub(cut.lines);
    if left > 0 {
        text += &format!("{indent}{bar} {}\n", styled(FAINT, format_args!("… and {}", counted(left, "more line"))));
    }
    text
}

pub(crate) fn in_full(diff: &DiffView) -> String {
    let all = Cut { files: usize::MAX, lines: 0, columns: usize::MAX };
    let mut text = cut(diff, "", all);
    if let Some(patch) = diff.text.as_deref().filter(|patch| !patch.is_empty()) {
        text.push('\n');
        text.extend(patch.lines().map(|line| format!("{}\n", coloured(line, usize::MAX))));
    }
    text
}

/// The title of a change, its totals, and the digest that an answer is bound to.
fn headline(diff: &DiffView) -> String {
    let title = styled(STRONG, sanitize::line(&diff.title));
    if let Some(error) = &diff.error {
        return format!("{title} {}", styled(WARNING, format_args!("cannot be shown: {}", sanitize::line(error))));
    }
    let digest = diff.digest.as_deref().map(|digest| digest.get(..12).unwrap_or(digest)).unwrap_or_default();
    let note = diff.text_note.as_deref().map(|note| format!("; patch: {}", sanitize::line(note))).unwrap_or_default();
    format!("{title}: {} ({})", diff.totals(), styled(FAINT, format_args!("digest {digest}{note}")))
}

/// A line of a patch with control characters made visible.
fn coloured(line: &str, wide: usize) -> String {
    let shown = columns::fitted(&sanitize::line(&line.replace('\t', "    ")), wide);
    match line.as_bytes() {
        [b'd', b'i', b'f', b'f', b' ', ..] => styled(STRONG, shown),
        [b'@', b'@', ..] => styled(HELP, shown),
        [b'+', b'+', b'+', b' ', ..] | [b'-', b'-', b'-', b' ', ..] => styled(STRONG, shown),
        [b'+', ..] => styled(GOOD, shown),
        [b'-', ..] => styled(ERROR, shown),
        _ => shown,
    }
}
