//! The rules that a state file must keep, as the source's document says them.

use lockgate_engine::spec::reader::place_of;
use serde::{Serialize, Serializer};
use std::ops::Range;

lockgate_engine::codes! {
    /// A rule that a state file can break. The texts are stable: programs and people rely on them.
    pub enum Rule {
        /// `prd` is not there.
        PrdMissing = "D4-prd-missing",
        /// `prd` is not `PRD-` and three digits.
        PrdPattern = "D4-prd-pattern",
        /// The file is not called by its `prd`.
        PrdFilename = "D4-prd-filename",
        /// `prd_title` is not there.
        TitleMissing = "D4-prd-title-missing",
        /// `prd_title` is no text.
        TitleType = "D4-prd-title-type",
        /// `current_phase` is not there, or no whole number.
        CurrentPhase = "D4-current-phase",
        /// `status` is not there.
        StatusMissing = "D4-status-missing",
        /// `status` is none of the five.
        StatusValue = "D4-status-value",
        /// `completed_workstreams` is not there.
        CompletedMissing = "D4-completed-workstreams-missing",
        /// `completed_workstreams` is no list of texts.
        CompletedType = "D4-completed-workstreams-type",
        /// `in_progress_workstreams` is not there.
        InProgressMissing = "D4-in-progress-workstreams-missing",
        /// `in_progress_workstreams` is no list of texts.
        InProgressType = "D4-in-progress-workstreams-type",
        /// `pending_workstreams` is not there.
        PendingMissing = "D4-pending-workstreams-missing",
        /// `pending_workstreams` is no list of texts.
        PendingType = "D4-pending-workstreams-type",
        /// `artifacts` is not there.
        ArtifactsMissing = "D4-artifacts-missing",
        /// `artifacts` is no object.
        ArtifactsType = "D4-artifacts-type",
        /// A value of `artifacts` is no list of texts.
        ArtifactValue = "D4-artifact-value",
        /// A key of `artifacts` is no completed workstream.
        ArtifactKey = "D4-artifact-key",
        /// `gates_passed` is not there.
        GatesPassedMissing = "D4-gates-passed-missing",
        /// `gates_passed` is no list of texts.
        GatesPassedType = "D4-gates-passed-type",
        /// `gates_pending` is not there.
        GatesPendingMissing = "D4-gates-pending-missing",
        /// `gates_pending` is no list of texts.
        GatesPendingType = "D4-gates-pending-type",
        /// `timestamp` is not there.
        TimestampMissing = "D4-timestamp-missing",
        /// `timestamp` is not ISO 8601.
        TimestampFormat = "D4-timestamp-format",
        /// A workstream stands in two lists, or twice in one.
        WorkstreamTwice = "D4-workstream-twice",
        /// In progress, and no workstream is.
        NothingInProgress = "D4-nothing-in-progress",
        /// Not in progress, and a workstream is.
        StillInProgress = "D4-still-in-progress",
        /// Failed, and there is no `error`.
        ErrorMissing = "D4-error-missing",
        /// Not failed, and there is an `error`.
        ErrorUnexpected = "D4-error-unexpected",
        /// `error` does not say workstream and message.
        ErrorShape = "D4-error-shape",
        /// Complete, and workstreams are pending.
        CompletePendingWorkstreams = "D4-complete-pending-workstreams",
        /// Complete, and gates are pending.
        CompletePendingGates = "D4-complete-pending-gates",
        /// The workstreams are not those of the EXECUTION-SPEC.
        SpecWorkstreams = "D4-spec-workstreams",
        /// The gates are not those of the EXECUTION-SPEC.
        SpecGates = "D4-spec-gates",
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
    /// What would mend it.
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
