//! What can be wrong with a workflow file, as a closed list.

use serde::{Serialize, Serializer};

crate::codes! {
    /// What can be wrong with a workflow file. The texts are stable: programs and people rely on them.
    pub enum ProblemCode {
        /// The file is not YAML.
        InvalidYaml = "invalid-yaml",
        /// The file holds several YAML documents.
        MultipleDocuments = "multiple-documents",
        /// An alias names nothing, or itself.
        InvalidAlias = "invalid-alias",
        /// A YAML tag, which means nothing here.
        YamlTag = "yaml-tag",
        /// A key is not a single value.
        InvalidKey = "invalid-key",
        /// A key stands twice in one place.
        DuplicateKey = "duplicate-key",
        /// A NUL character in a text.
        NulCharacter = "nul-character",
        /// Too much nesting.
        TooDeep = "too-deep",
        /// A file, or what its aliases make of it, is too large.
        TooLarge = "too-large",
        /// More problems than are told.
        TooManyProblems = "too-many-problems",
        /// A key that the format does not have.
        UnknownKey = "unknown-key",
        /// A key that is needed is not there.
        MissingKey = "missing-key",
        /// A key that stands there without effect.
        UnusedKey = "unused-key",
        /// Keys that exclude each other.
        ConflictingKeys = "conflicting-keys",
        /// A key that this release does not support.
        NotSupported = "not-supported",
        /// A file beside this one that is not there, or cannot be used.
        MissingFile = "missing-file",
        /// A file of the successor format.
        SuccessorFormat = "successor-format",
        /// A list where a text is expected, and the like.
        WrongType = "wrong-type",
        /// A value that is none of those that are possible.
        InvalidValue = "invalid-value",
        /// Nothing where something is needed.
        EmptyValue = "empty-value",
        /// An environment variable without a value.
        MissingEnvValue = "missing-env-value",
        /// Something that is no duration, or none that makes sense.
        InvalidDuration = "invalid-duration",
        /// Something that cannot be an id.
        InvalidId = "invalid-id",
        /// Two things of the same id.
        DuplicateId = "duplicate-id",
        /// An id with a meaning of its own.
        ReservedId = "reserved-id",
        /// A phase that does nothing.
        EmptyPhase = "empty-phase",
        /// A phase for the main script alone, with tasks or without the script.
        MainOnly = "main-only",
        /// A task that needs what is not there.
        UnknownTask = "unknown-task",
        DependencyCycle = "dependency-cycle",
        /// A phase that is not defined.
        UnknownPhase = "unknown-phase",
        /// A phase that lies on the wrong side.
        PhaseOrder = "phase-order",
        /// An action that there is not.
        UnknownAction = "unknown-action",
        /// Two options of the same label.
        DuplicateLabel = "duplicate-label",
        /// A checkpoint at which nothing is asked.
        DisabledCheckpoint = "disabled-checkpoint",
        /// A condition that says nothing.
        EmptyCondition = "empty-condition",
        /// JavaScript that cannot be parsed.
        ScriptSyntax = "script-syntax",
        /// JavaScript that is too long or too deep.
        ScriptTooLarge = "script-too-large",
        /// BigInt in JavaScript.
        Bigint = "bigint",
        /// A template that cannot work.
        InvalidTemplate = "invalid-template",
        /// A value that a second shell reads as code.
        NestedShell = "nested-shell",
        /// A variable that nothing declares.
        UnknownVar = "unknown-var",
        /// An agent that nothing declares.
        UnknownAgent = "unknown-agent",
        /// A program that is not installed.
        MissingProgram = "missing-program",
        /// A path that leads out of its folder.
        PathTraversal = "path-traversal",
        /// A name that no environment variable can have, or that is ours.
        InvalidEnvName = "invalid-env-name",
        /// A name that no secret can have.
        InvalidSecretName = "invalid-secret-name",
        /// A verification that does not say what was built.
        NothingToVerify = "nothing-to-verify",
        /// Work that a verification was to come before, and that is done before anybody is asked.
        VerifiedTooLate = "verified-too-late",
        /// Something that a person has to do, and that nothing checks.
        UncheckedAction = "unchecked-action",
        /// An answer without a person that runs a phase again.
        AutomaticRepeat = "automatic-repeat",
        /// A tag of a plan that is not closed.
        UnclosedTag = "unclosed-tag",
        /// A tag of a plan where it means nothing.
        StrayTag = "stray-tag",
        /// A code fence of a plan that is not closed.
        UnclosedFence = "unclosed-fence",
        /// A plan without tasks.
        EmptyPlan = "empty-plan",
        /// A gate that nobody defines.
        UnknownGate = "unknown-gate",
        /// A workstream that stands in no phase.
        UnscheduledTask = "unscheduled-task",
        /// A file of another kind, which cannot be run.
        NotAWorkflow = "not-a-workflow",
    }
}

impl Serialize for ProblemCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}
