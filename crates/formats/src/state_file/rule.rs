//! The rules for state files, as the reference format defines them.

use lockgate_engine::spec::reader::place_of;
use serde::{Serialize, Serializer};
use std::ops::Range;

lockgate_engine::codes! {
    /// A rule that a state file can violate. The codes are stable, because programs and people rely on them.
    pub enum Rule {
        /// `prd` is missing.
        PrdMissing = "prd-missing",
        /// `prd` is not `PRD-` and three digits.
        PrdPattern = "prd-pattern",
        /// The file is not named after its `prd`.
        PrdFilename = "prd-differs-from-file-name",
        /// `prd_title` is missing.
        TitleMissing = "prd-title-missing",
        /// `prd_title` is not a string.
        TitleType = "prd-title-not-a-string",
        /// `current_phase` is missing or not a whole number.
        CurrentPhase = "current-phase-invalid",
        /// `status` is missing.
        StatusMissing = "status-missing",
        /// `status` is not one of the five known values.
        StatusValue = "status-unknown",
        /// `completed_workstreams` is missing.
        CompletedMissing = "completed-workstreams-missing",
        /// `completed_workstreams` is not a list of strings.
        CompletedType = "completed-workstreams-not-strings",
        /// `in_progress_workstreams` is missing.
        InProgressMissing = "in-progress-workstreams-missing",
        /// `in_progress_workstreams` is not a list of strings.
        InProgressType = "in-progress-workstreams-not-strings",
        /// `pending_workstreams` is missing.
        PendingMissing = "pending-workstreams-missing",
        /// `pending_workstreams` is not a list of strings.
        PendingType = "pending-workstreams-not-strings",
        /// `artifacts` is missing.
        ArtifactsMissing = "artifacts-missing",
        /// `artifacts` is not an object.
        ArtifactsType = "artifacts-not-an-object",
        /// A value of `artifacts` is not a list of strings.
        ArtifactValue = "artifact-paths-not-strings",
        /// A key of `artifacts` is not a completed workstream.
        ArtifactKey = "artifact-of-unfinished-workstream",
        /// `gates_passed` is missing.
        GatesPassedMissing = "gates-passed-missing",
        /// `gates_passed` is not a list of strings.
        GatesPassedType = "gates-passed-not-strings",
        /// `gates_pending` is missing.
        GatesPendingMissing = "gates-pending-missing",
        /// `gates_pending` is not a list of strings.
        GatesPendingType = "gates-pending-not-strings",
        /// `timestamp` is missing.
        TimestampMissing = "timestamp-missing",
        /// `timestamp` is not ISO 8601.
        TimestampFormat = "timestamp-not-iso-8601",
        /// A workstream is listed more than once.
        WorkstreamTwice = "workstream-listed-twice",
        /// The status is `in_progress`, but no workstream is.
        NothingInProgress = "no-workstream-in-progress",
        /// The status is not `in_progress`, but a workstream is.
        StillInProgress = "workstream-still-in-progress",
        /// The status is `failed`, but there is no `error`.
        ErrorMissing = "error-missing",
        /// The status is not `failed`, but there is an `error`.
        ErrorUnexpected = "error-without-failure",
        /// `error` does not contain `workstream` and `message`.
        ErrorShape = "error-incomplete",
        /// The status is `complete`, but workstreams are pending.
        CompletePendingWorkstreams = "complete-with-pending-workstreams",
        /// The status is `complete`, but gates are pending.
        CompletePendingGates = "complete-with-pending-gates",
        /// The workstreams differ from those of the EXECUTION-SPEC.
        SpecWorkstreams = "workstreams-differ-from-spec",
        /// The gates differ from those of the EXECUTION-SPEC.
        SpecGates = "gates-differ-from-spec",
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

/// A violated rule and its position.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub rule: Rule,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// The violation, in one sentence.
    pub message: String,
    /// How to fix it.
    pub help: String,
}

/// Collects the violations in one file. Each rule is reported once, with everything that violates it.
pub(super) struct Findings<'s> {
    pub(super) source: &'s str,
    found: Vec<Finding>,
}

impl<'s> Findings<'s> {
    pub(super) fn new(source: &'s str) -> Self {
        Self { source, found: Vec::new() }
    }

    pub(super) fn add(&mut self, rule: Rule, span: &Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        let (line, column) = place_of(self.source, span.start);
        self.found.push(Finding { rule, line, column, message: message.into(), help: help.into() });
    }

    /// All findings, in the order of the file.
    pub(super) fn finish(mut self) -> Vec<Finding> {
        self.found.sort_by_key(|finding| (finding.line, finding.column));
        self.found
    }
}
