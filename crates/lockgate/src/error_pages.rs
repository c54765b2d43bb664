//! The pages of `docs/errors/`, one for each code.

use crate::code::Code;
use crate::error::Error;
use crate::preset_answers::nearest;

/// What is known about a code.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The code.
    pub code: &'static str,
    /// The page, as Markdown. Its first line is `# CODE: title`.
    pub text: &'static str,
}

impl Page {
    /// What the code means, in one line.
    pub fn title(self) -> &'static str {
        let first = self.text.lines().next().unwrap_or_default();
        first.split_once(": ").map_or(first, |(_, title)| title)
    }
}

/// The page that somebody means, in whatever case, and also with what surrounds the code in a message.
pub fn find(given: &str) -> Result<Page, Error> {
    let bare = given.split_once('[').map_or(given, |(_, rest)| rest);
    let bare = bare.trim_end_matches(':').trim_end_matches(']').trim().to_lowercase().replace(['_', ' '], "-");
    all().find(|page| page.code == bare).ok_or_else(|| {
        let error = Error::new(Code::UnknownCode, format!("there is no code {given:?}"));
        match nearest(&bare, all().map(|page| page.code)) {
            Some(meant) => error.help(format!("did you mean `lockgate explain {meant}`?")),
            None => error.help("`lockgate explain` lists all codes"),
        }
    })
}

/// All pages, in the order of their codes.
pub fn all() -> impl Iterator<Item = Page> + Clone {
    PAGES.iter().copied()
}

macro_rules! pages {
    ($($code:literal,)+) => {
        &[$(Page { code: $code, text: include_str!(concat!("../../../docs/errors/", $code, ".md")) },)+]
    };
}

const PAGES: &[Page] = pages![
    "already-answered",
    "retry-pending",
    "ambiguous-name",
    "answer-conflict",
    "answered-by-person",
    "verified-too-late",
    "background-failed",
    "invalid-alias",
    "invalid-test-file",
    "invalid-duration",
    "invalid-id",
    "invalid-input",
    "invalid-key",
    "invalid-output-dir",
    "invalid-preset",
    "invalid-settings",
    "invalid-state-file",
    "invalid-template",
    "invalid-usage",
    "invalid-var",
    "invalid-yaml",
    "bigint",
    "startup-failed",
    "commits-missing",
    "conflicting-keys",
    "backup-corrupt",
    "database-corrupt",
    "database-exists",
    "database-in-use",
    "database-locked",
    "database-read-only",
    "database-error",
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
    "invalid-env-name",
    "file-exists",
    "file-too-large",
    "git-error",
    "history-corrupt",
    "hold-closed",
    "path-occupied",
    "inside-task",
    "invalid-workflow",
    "sqlite-only",
    "lease-lost",
    "orphans-running",
    "main-only",
    "merge-conflict",
    "missing-file",
    "missing-key",
    "missing-program",
    "missing-env-value",
    "dependency-cycle",
    "nested-shell",
    "newer-format",
    "agent-not-configured",
    "disabled-checkpoint",
    "database-not-found",
    "root-not-found",
    "not-a-pipeline",
    "project-not-found",
    "reason-required",
    "attempt-not-found",
    "hold-not-found",
    "option-not-found",
    "revision-not-found",
    "run-not-found",
    "task-not-found",
    "worktree-not-found",
    "terminal-required",
    "not-a-backup",
    "not-a-file",
    "person-required",
    "integrity-error",
    "not-json",
    "not-started",
    "not-supported",
    "not-text",
    "not-in-current-phase",
    "nothing-to-verify",
    "nul-character",
    "unclosed-fence",
    "unclosed-tag",
    "not-a-workflow",
    "internal-error",
    "outcome-unknown",
    "path-traversal",
    "phase-order",
    "pipeline-exists",
    "automatic-repeat",
    "reserved-id",
    "resume-flag-required",
    "blocked-by-review",
    "review-rejected",
    "revision-required",
    "root-moved",
    "run-ended",
    "run-not-ended",
    "script-syntax",
    "script-too-large",
    "invalid-secret-name",
    "multiple-documents",
    "stale-revision",
    "state-file-error",
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
    "unknown-agent",
    "unknown-code",
    "unknown-gate",
    "unknown-key",
    "unknown-phase",
    "unknown-task",
    "unknown-var",
    "unscheduled-task",
    "unreadable-file",
    "unreadable-log",
    "unused-key",
    "unwritable",
    "stored-value-missing",
    "feedback-required",
    "work-would-be-lost",
    "wrong-type",
    "invalid-value",
    "yaml-tag",
];
