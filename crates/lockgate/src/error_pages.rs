//! The pages of `docs/errors/`, one per code.

use crate::code::Code;
use crate::error::Error;
use crate::preset_answers::nearest;

/// The documentation of one error code.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// The code, such as `run-not-found`.
    pub code: &'static str,
    /// The page as Markdown. Its first line is `# CODE: title`.
    pub text: &'static str,
}

impl Page {
    /// The title in the first line, without the code.
    pub fn title(self) -> &'static str {
        let first = self.text.lines().next().unwrap_or_default();
        first.split_once(": ").map_or(first, |(_, title)| title)
    }
}

/// Finds a page by its code, ignoring case. Also accepts the form used in messages, `error[CODE]:`.
pub fn find(given: &str) -> Result<Page, Error> {
    let bare = given.split_once('[').map_or(given, |(_, rest)| rest);
    let bare = bare.trim_end_matches(':').trim_end_matches(']').trim().to_lowercase().replace(['_', ' '], "-");
    all().find(|page| page.code == bare).ok_or_else(|| {
        let error = Error::new(Code::UnknownCode, format!("no error code {given:?}"));
        match nearest(&bare, all().map(|page| page.code)) {
            Some(meant) => error.help(format!("did you mean `lockgate explain {meant}`?")),
            None => error.help("`lockgate explain` lists all codes"),
        }
    })
}

/// All pages, sorted by code.
pub fn all() -> impl Iterator<Item = Page> + Clone {
    PAGES.iter().copied()
}

macro_rules! pages {
    ($($code:literal,)+) => {
        &[$(Page { code: $code, text: include_str!(concat!("../../../docs/errors/", $code, ".md")) },)+]
    };
}

const PAGES: &[Page] = pages![
    "agent-not-configured",
    "already-answered",
    "ambiguous-name",
    "answer-conflict",
    "answered-by-person",
    "attempt-not-found",
    "automatic-repeat",
    "background-failed",
    "backup-corrupt",
    "bigint",
    "blocked-by-review",
    "changes-not-accepted",
    "commits-missing",
    "conflict-not-found",
    "conflict-rejected",
    "conflicting-keys",
    "database-corrupt",
    "database-error",
    "database-exists",
    "database-in-use",
    "database-locked",
    "database-not-found",
    "database-read-only",
    "definition-changed",
    "dependency-cycle",
    "disabled-checkpoint",
    "disk-full",
    "driven-elsewhere",
    "duplicate-id",
    "duplicate-key",
    "duplicate-label",
    "empty-condition",
    "empty-phase",
    "empty-plan",
    "empty-value",
    "feedback-required",
    "file-exists",
    "file-too-large",
    "git-error",
    "history-corrupt",
    "hold-closed",
    "hold-not-found",
    "inside-task",
    "integrity-error",
    "internal-error",
    "invalid-alias",
    "invalid-duration",
    "invalid-env-name",
    "invalid-id",
    "invalid-input",
    "invalid-issue",
    "invalid-key",
    "invalid-output-dir",
    "invalid-preset",
    "invalid-secret-name",
    "invalid-settings",
    "invalid-state-file",
    "invalid-template",
    "invalid-test-file",
    "invalid-usage",
    "invalid-value",
    "invalid-var",
    "invalid-workflow",
    "invalid-yaml",
    "knowledge-not-found",
    "lease-lost",
    "main-only",
    "member-not-found",
    "merge-conflict",
    "message-not-found",
    "message-rejected",
    "missing-env-value",
    "missing-file",
    "missing-key",
    "missing-program",
    "multiple-documents",
    "nested-shell",
    "newer-format",
    "no-repository",
    "not-a-backup",
    "not-a-file",
    "not-a-pipeline",
    "not-a-workflow",
    "not-in-current-phase",
    "not-json",
    "not-started",
    "not-supported",
    "not-text",
    "nothing-to-verify",
    "nul-character",
    "option-not-found",
    "orphans-running",
    "outcome-unknown",
    "path-occupied",
    "path-traversal",
    "person-required",
    "phase-order",
    "pipeline-exists",
    "project-not-found",
    "reason-required",
    "reserved-id",
    "resume-flag-required",
    "retry-pending",
    "review-rejected",
    "revision-not-found",
    "revision-required",
    "root-moved",
    "root-not-found",
    "run-ended",
    "run-exists",
    "run-not-ended",
    "run-not-found",
    "script-syntax",
    "script-too-large",
    "snapshot-changed",
    "snapshot-damaged",
    "snapshot-mismatch",
    "snapshot-not-found",
    "snapshots-disabled",
    "sqlite-only",
    "stale-revision",
    "startup-failed",
    "state-file-error",
    "stored-value-missing",
    "stray-tag",
    "successor-format",
    "taken-over",
    "task-done",
    "task-not-found",
    "task-required",
    "task-running",
    "terminal-required",
    "too-deep",
    "too-large",
    "too-many-problems",
    "unchecked-action",
    "unclosed-fence",
    "unclosed-tag",
    "uncommitted-changes",
    "unknown-action",
    "unknown-agent",
    "unknown-code",
    "unknown-gate",
    "unknown-key",
    "unknown-phase",
    "unknown-task",
    "unknown-var",
    "unreadable-file",
    "unreadable-log",
    "unscheduled-task",
    "unused-key",
    "unwritable",
    "verified-too-late",
    "work-would-be-lost",
    "worktree-not-found",
    "wrong-type",
    "yaml-tag",
];
