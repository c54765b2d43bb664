//! The closed list of problems in a workflow file.

use serde::{Serialize, Serializer};

crate::codes! {
    /// The kinds of problems in a workflow file. The texts are stable: programs and people rely on them.
    pub enum ProblemCode {
        InvalidYaml = "invalid-yaml",
        /// The file holds several YAML documents.
        MultipleDocuments = "multiple-documents",
        /// An alias refers to nothing, or to itself.
        InvalidAlias = "invalid-alias",
        /// A YAML tag. The format does not use tags.
        YamlTag = "yaml-tag",
        /// A key is not a single value.
        InvalidKey = "invalid-key",
        /// A key appears twice in a map.
        DuplicateKey = "duplicate-key",
        /// A NUL character in a text.
        NulCharacter = "nul-character",
        /// Too much nesting.
        TooDeep = "too-deep",
        /// A file is too large, or becomes too large when its aliases are expanded.
        TooLarge = "too-large",
        /// There are more problems than are listed.
        TooManyProblems = "too-many-problems",
        /// A key that the format does not have.
        UnknownKey = "unknown-key",
        /// A required key is missing.
        MissingKey = "missing-key",
        /// A key has no effect here.
        UnusedKey = "unused-key",
        /// Keys that exclude each other.
        ConflictingKeys = "conflicting-keys",
        /// A key that this release does not support.
        NotSupported = "not-supported",
        /// A file next to this one does not exist or cannot be used.
        MissingFile = "missing-file",
        /// A file in the successor format.
        SuccessorFormat = "successor-format",
        /// For example, a list instead of text.
        WrongType = "wrong-type",
        /// A value that is not one of the allowed ones.
        InvalidValue = "invalid-value",
        /// An empty value where one is required.
        EmptyValue = "empty-value",
        /// An environment variable without a value.
        MissingEnvValue = "missing-env-value",
        /// A value that is not a duration, or not a sensible one.
        InvalidDuration = "invalid-duration",
        /// A value that is not a valid id.
        InvalidId = "invalid-id",
        /// Two elements with the same id.
        DuplicateId = "duplicate-id",
        /// An id that has a special meaning.
        ReservedId = "reserved-id",
        EmptyPhase = "empty-phase",
        /// A phase in `main_only` mode that has tasks or lacks the script.
        MainOnly = "main-only",
        /// A task that needs a task that does not exist.
        UnknownTask = "unknown-task",
        DependencyCycle = "dependency-cycle",
        /// A phase that is not defined.
        UnknownPhase = "unknown-phase",
        /// A phase that comes too early or too late in the workflow.
        PhaseOrder = "phase-order",
        /// An action that does not exist.
        UnknownAction = "unknown-action",
        /// Two options with the same label.
        DuplicateLabel = "duplicate-label",
        /// A checkpoint that asks nothing.
        DisabledCheckpoint = "disabled-checkpoint",
        EmptyCondition = "empty-condition",
        ScriptSyntax = "script-syntax",
        /// JavaScript that is too long or too deep.
        ScriptTooLarge = "script-too-large",
        Bigint = "bigint",
        InvalidTemplate = "invalid-template",
        /// A value that a nested shell would read as code.
        NestedShell = "nested-shell",
        /// A variable that is not declared.
        UnknownVar = "unknown-var",
        /// An agent that is not declared.
        UnknownAgent = "unknown-agent",
        /// A program that is not installed.
        MissingProgram = "missing-program",
        /// A git change is to be shown outside of any repository.
        NoRepository = "no-repository",
        /// A path that leads out of its directory.
        PathTraversal = "path-traversal",
        /// A name that is not valid for an environment variable, or is reserved.
        InvalidEnvName = "invalid-env-name",
        /// A name that is not valid for a secret.
        InvalidSecretName = "invalid-secret-name",
        /// A verification that does not say what was built.
        NothingToVerify = "nothing-to-verify",
        /// Work that would run before the verification that should precede it.
        VerifiedTooLate = "verified-too-late",
        /// An action of a person without a check.
        UncheckedAction = "unchecked-action",
        /// An automatic answer that repeats a phase.
        AutomaticRepeat = "automatic-repeat",
        /// An unclosed tag in a plan.
        UnclosedTag = "unclosed-tag",
        /// A tag of a plan in a place where it has no meaning.
        StrayTag = "stray-tag",
        /// An unclosed code fence in a plan.
        UnclosedFence = "unclosed-fence",
        EmptyPlan = "empty-plan",
        /// A gate that is not defined.
        UnknownGate = "unknown-gate",
        /// A workstream that belongs to no phase.
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
