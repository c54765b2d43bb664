//! The rules that a state file must keep, as the source's document says them.

use lockgate_engine::spec::reader::place_of;
use serde::{Serialize, Serializer};
use std::ops::Range;

lockgate_engine::codes! {
    /// A rule that a state file can break. The texts are stable: programs and people rely on them.
    pub enum Rule {
        /// `prd` is not there.
        PrdMissing = "prd-missing",
        /// `prd` is not `PRD-` and three digits.
        PrdPattern = "prd-pattern",
        /// The file is not called by its `prd`.
        PrdFilename = "prd-differs-from-file-name",
        /// `prd_title` is not there.
        TitleMissing = "prd-title-missing",
        /// `prd_title` is no text.
        TitleType = "prd-title-not-a-string",
        /// `current_phase` is not there, or no whole number.
        CurrentPhase = "current-phase-invalid",
        /// `status` is not there.
        StatusMissing = "status-missing",
        /// `status` is none of the five.
        StatusValue = "status-unknown",
        /// `completed_workstreams` is not there.
        CompletedMissing = "completed-workstreams-missing",
        /// `completed_workstreams` is no list of texts.
        CompletedType = "completed-workstreams-not-strings",
        /// `in_progress_workstreams` is not there.
        InProgressMissing = "in-progress-workstreams-missing",
        /// `in_progress_workstreams` is no list of texts.
        InProgressType = "in-progress-workstreams-not-strings",
        /// `pending_workstreams` is not there.
        PendingMissing = "pending-workstreams-missing",
        /// `pending_workstreams` is no list of texts.
        PendingType = "pending-workstreams-not-strings",
        /// `artifacts` is not there.
        ArtifactsMissing = "artifacts-missing",
        /// `artifacts` is no object.
        ArtifactsType = "artifacts-not-an-object",
        /// A value of `artifacts` is no list of texts.
        ArtifactValue = "artifact-paths-not-strings",
        /// A key of `artifacts` is no completed workstream.
        ArtifactKey = "artifact-of-unfinished-workstream",
        /// `gates_passed` is not there.
        GatesPassedMissing = "gates-passed-missing",
        /// `gates_passed` is no list of texts.
        GatesPassedType = "gates-passed-not-strings",
        /// `gates_pending` is not there.
        GatesPendingMissing = "gates-pending-missing",
        /// `gates_pending` is no list of texts.
        GatesPendingType = "gates-pending-not-strings",
        /// `timestamp` is not there.
        TimestampMissing = "timestamp-missing",
        /// `timestamp` is not ISO 8601.
        TimestampFormat = "timestamp-not-iso-8601",
        /// A workstream stands in two lists, or twice in one.
        WorkstreamTwice = "workstream-listed-twice",
        /// In progress, and no workstream is.
        NothingInProgress = "no-workstream-in-progress",
        /// Not in progress, and a workstream is.
        StillInProgress = "workstream-still-in-progress",
        /// Failed, and there is no `error`.
        ErrorMissing = "error-missing",
        /// Not failed, and there is an `error`.
        ErrorUnexpected = "error-without-failure",
        /// `error` does not say workstream and message.
        ErrorShape = "error-incomplete",
        /// Complete, and workstreams are pending.
        CompletePendingWorkstreams = "complete-with-pending-workstreams",
        /// Complete, and gates are pending.
        CompletePendingGates = "complete-with-pending-gates",
        /// The workstreams are not those of the EXECUTION-SPEC.
        SpecWorkstreams = "workstreams-differ-from-spec",
        /// The gates are not those of the EXECUTION-SPEC.
        SpecGates = "gates-differ-from-spec",
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

/// A rule that a file breaks, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// The line, counted from 1.
    pub line: usize,
    /// The column in characters, counted from 1.
    pub column: usize,
    /// What is wrong, in one sentence.
    pub message: String,
    /// What would fix it.
    pub help: String,
}

/// Collects what is found in one file; each rule is told once, with all that breaks it.
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

    /// All of them in the order of the file.
    pub(super) fn finish(mut self) -> Vec<Finding> {
        self.found.sort_by_key(|finding| (finding.line, finding.column));
        self.found
    }
}
