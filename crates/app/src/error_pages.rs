//! The pages of `docs/errors/`, one for each code.

/// What is known about a code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    /// The code.
    pub(crate) code: &'static str,
    /// The page, as Markdown. Its first line is `# CODE: title`.
    pub(crate) text: &'static str,
}

impl Page {
    /// What the code means, in one line.
    pub(crate) fn title(self) -> &'static str {
        let first = self.text.lines().next().unwrap_or_default();
        first.split_once(": ").map_or(first, |(_, title)| title)
    }
}

/// All pages, in the order of their codes.
pub(crate) fn all() -> impl Iterator<Item = Page> + Clone {
    PAGES.iter().copied()
}

macro_rules! pages {
    ($($code:literal,)+) => {
        &[$(Page { code: $code, text: include_str!(concat!("../../../docs/errors/", $code, ".md")) },)+]
    };
}

const PAGES: &[Page] = pages![
    "already-answered",
    "already-asked",
    "ambiguous-name",
    "answer-conflicts",
    "answer-stands",
    "background-failed",
    "bad-alias",
    "bad-cases",
    "bad-duration",
    "bad-id",
    "bad-input",
    "bad-key",
    "bad-output-dir",
    "bad-preset",
    "bad-settings",
    "bad-state-file",
    "bad-template",
    "bad-usage",
    "bad-var",
    "bad-yaml",
    "bigint",
    "cannot-start",
    "conflicting-keys",
    "damaged-backup",
    "database-damaged",
    "database-exists",
    "database-in-use",
    "database-locked",
    "database-read-only",
    "database-trouble",
    "definition-changed",
    "disk-full",
    "driven-elsewhere",
    "duplicate-id",
    "duplicate-key",
    "duplicate-label",
    "empty-condition",
    "empty-phase",
    "empty-plan",
    "empty-value",
    "env-name",
    "file-exists",
    "file-too-large",
    "git-trouble",
    "history-damaged",
    "hold-closed",
    "in-the-way",
    "inside-task",
    "invalid-workflow",
    "kept-in-postgresql",
    "left-running",
    "main-only",
    "merge-conflict",
    "missing-file",
    "missing-key",
    "missing-value",
    "needs-cycle",
    "newer-format",
    "no-agent",
    "no-checkpoint",
    "no-database",
    "no-folder",
    "no-pipeline",
    "no-project",
    "no-reason",
    "no-such-attempt",
    "no-such-hold",
    "no-such-option",
    "no-such-revision",
    "no-such-run",
    "no-such-task",
    "no-such-worktree",
    "no-terminal",
    "not-a-backup",
    "not-a-file",
    "not-a-person",
    "not-as-written",
    "not-json",
    "not-started",
    "not-supported",
    "not-text",
    "not-under-way",
    "nothing-built",
    "nul-character",
    "open-fence",
    "open-tag",
    "other-format",
    "our-mistake",
    "outcome-unknown",
    "path-outside",
    "phase-order",
    "pipeline-exists",
    "reserved-id",
    "resume-choice",
    "review-blocks",
    "review-refused",
    "revision-needed",
    "root-moved",
    "run-ended",
    "run-not-over",
    "script-syntax",
    "script-too-large",
    "secret-name",
    "several-documents",
    "stale-revision",
    "state-file-trouble",
    "stray-tag",
    "successor-format",
    "taken-over",
    "task-done",
    "task-running",
    "too-deep",
    "too-large",
    "too-many-problems",
    "unchecked-action",
    "uncommitted-changes",
    "unknown-action",
    "unknown-code",
    "unknown-gate",
    "unknown-key",
    "unknown-phase",
    "unknown-task",
    "unknown-var",
    "unplaced-task",
    "unreadable-file",
    "unreadable-log",
    "unused-key",
    "unwritable",
    "value-missing",
    "words-needed",
    "work-would-be-lost",
    "wrong-kind",
    "wrong-value",
    "yaml-tag",
];

#[cfg(test)]
mod tests;
