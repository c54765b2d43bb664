//! The codes of command errors, as a closed list.
//!
//! Problems in workflow files have their own list: [`ProblemCode`](lockgate_engine::spec::code::ProblemCode).
//! Each code of both lists has a page in `docs/errors/`.

lockgate_engine::codes! {
    /// Why a command failed. The texts are stable, because programs match on them.
    pub enum Code {
        /// The command line or an environment variable is wrong.
        InvalidUsage = "invalid-usage",
        /// `lockgate explain` does not know the code.
        UnknownCode = "unknown-code",
        /// The program cannot start, because the operating system refuses a resource.
        StartupFailed = "startup-failed",
        /// Neither this directory nor any above it is a project.
        ProjectNotFound = "project-not-found",
        /// The root directory does not exist.
        RootNotFound = "root-not-found",
        /// Another file occupies a path where Lockgate needs a directory.
        PathOccupied = "path-occupied",
        /// A file or directory cannot be written.
        Unwritable = "unwritable",
        /// The settings file cannot be read or has an error.
        InvalidSettings = "invalid-settings",
        /// A file does not exist or cannot be read.
        UnreadableFile = "unreadable-file",
        /// A path names a directory, a pipe or a device, and a file is needed.
        NotAFile = "not-a-file",
        /// A file is larger than the limit for workflow files.
        FileTooLarge = "file-too-large",
        /// A file is not UTF-8 text.
        NotText = "not-text",
        /// A file is not JSON.
        NotJson = "not-json",
        /// The workflow file has errors.
        InvalidWorkflow = "invalid-workflow",
        /// The files of a run's definition have changed since the run started.
        DefinitionChanged = "definition-changed",
        /// A task needs an agent, and none is configured.
        AgentNotConfigured = "agent-not-configured",
        /// An input is missing or has the wrong type.
        InvalidInput = "invalid-input",
        /// The output directory is not inside the root.
        InvalidOutputDir = "invalid-output-dir",
        /// `--var` is not `NAME=VALUE`, or names a variable twice.
        InvalidVar = "invalid-var",
        /// A preset answer names a phase, task or option that does not exist.
        InvalidPreset = "invalid-preset",
        /// A file of test cases has an error.
        InvalidTestFile = "invalid-test-file",
        /// No run has this id or feature.
        RunNotFound = "run-not-found",
        /// No hold has this id.
        HoldNotFound = "hold-not-found",
        /// The workflow has no such task or gate.
        TaskNotFound = "task-not-found",
        /// The task or gate has no such attempt.
        AttemptNotFound = "attempt-not-found",
        /// The hold has no such option.
        OptionNotFound = "option-not-found",
        /// The hold has no such revision.
        RevisionNotFound = "revision-not-found",
        /// A name or the start of an id matches several things.
        AmbiguousName = "ambiguous-name",
        /// Only a person may do this.
        PersonRequired = "person-required",
        /// A command that runs inside a task may not do this.
        InsideTask = "inside-task",
        /// The project requires a controlling terminal to do this.
        TerminalRequired = "terminal-required",
        /// The hold is closed.
        HoldClosed = "hold-closed",
        /// The same answer is already recorded.
        AlreadyAnswered = "already-answered",
        /// A different answer is already recorded.
        AnswerConflict = "answer-conflict",
        /// The hold was reopened after the revision that was answered.
        StaleRevision = "stale-revision",
        /// The hold shows files, so the answer must name the revision.
        RevisionRequired = "revision-required",
        /// The option requires feedback.
        FeedbackRequired = "feedback-required",
        /// A person gave the answer, so it cannot be changed.
        AnsweredByPerson = "answered-by-person",
        /// The task or gate is not in the current phase.
        NotInCurrentPhase = "not-in-current-phase",
        /// The task or gate is running.
        TaskRunning = "task-running",
        /// The task or gate is already done.
        TaskDone = "task-done",
        /// The task or gate has not started, or the hold has no answer yet.
        NotStarted = "not-started",
        /// The task or gate is already scheduled to run again.
        RetryPending = "retry-pending",
        /// Skipping a task or gate requires a reason.
        ReasonRequired = "reason-required",
        /// The run has ended and cannot be changed.
        RunEnded = "run-ended",
        /// Another process drives the run.
        DrivenElsewhere = "driven-elsewhere",
        /// Another process has taken the run over.
        TakenOver = "taken-over",
        /// The process could not renew its lease on the run in time.
        LeaseLost = "lease-lost",
        /// Processes of an interrupted attempt are still running and cannot be stopped.
        OrphansRunning = "orphans-running",
        /// The process that should drive a run in the background did not start or exited.
        BackgroundFailed = "background-failed",
        /// The project was moved or deleted while a process drove its runs.
        RootMoved = "root-moved",
        /// A log file cannot be read.
        UnreadableLog = "unreadable-log",
        /// The project has no database.
        DatabaseNotFound = "database-not-found",
        /// The disk is full.
        DiskFull = "disk-full",
        /// The database is read-only.
        DatabaseReadOnly = "database-read-only",
        /// Another process holds the lock of the database.
        DatabaseLocked = "database-locked",
        /// The database is damaged, or the file is not a database of Lockgate.
        DatabaseCorrupt = "database-corrupt",
        /// Commits that were recorded are missing from the database.
        CommitsMissing = "commits-missing",
        /// The database or its server reported an error that has no code of its own.
        DatabaseError = "database-error",
        /// A newer release of Lockgate wrote the data.
        NewerFormat = "newer-format",
        /// The history of a run cannot be read.
        HistoryCorrupt = "history-corrupt",
        /// A value that a history refers to is missing.
        StoredValueMissing = "stored-value-missing",
        /// `lockgate db verify` found differences in the database.
        IntegrityError = "integrity-error",
        /// It is unknown whether a commit was recorded.
        OutcomeUnknown = "outcome-unknown",
        /// A bug in Lockgate.
        InternalError = "internal-error",
        /// The file already exists.
        FileExists = "file-exists",
        /// The project already has a database.
        DatabaseExists = "database-exists",
        /// A process drives runs of the database.
        DatabaseInUse = "database-in-use",
        /// The command works only with SQLite, and the runs are in PostgreSQL.
        SqliteOnly = "sqlite-only",
        /// The run or task has no worktree.
        WorktreeNotFound = "worktree-not-found",
        /// Uncommitted changes prevent a merge.
        UncommittedChanges = "uncommitted-changes",
        /// A branch conflicts with the root's branch.
        MergeConflict = "merge-conflict",
        /// Removing a worktree would lose commits or changes.
        WorkWouldBeLost = "work-would-be-lost",
        /// The run has not ended and still needs its worktree.
        RunNotEnded = "run-not-ended",
        /// Git failed.
        GitError = "git-error",
        /// The snapshot does not belong to the run.
        SnapshotMismatch = "snapshot-mismatch",
        /// There is already a run with this id.
        RunExists = "run-exists",
        /// The run is not a pipeline.
        NotAPipeline = "not-a-pipeline",
        /// The pipeline already has a run or a state file.
        PipelineExists = "pipeline-exists",
        /// A review of a pipeline is not accepted.
        ReviewRejected = "review-rejected",
        /// The review says that the pipeline must not start.
        BlockedByReview = "blocked-by-review",
        /// Resuming the pipeline requires `--fixed`, `--continue` or `--restart`.
        ResumeFlagRequired = "resume-flag-required",
        /// A state file does not identify its pipeline, or disagrees with its specification.
        InvalidStateFile = "invalid-state-file",
        /// A state file cannot be written.
        StateFileError = "state-file-error",
        /// The file is a database in use, not a backup.
        NotABackup = "not-a-backup",
        /// The backup is damaged.
        BackupCorrupt = "backup-corrupt",
        /// No snapshot has this id, or the run has none.
        SnapshotNotFound = "snapshot-not-found",
        /// A snapshot is damaged, too old, or has no state to continue from.
        SnapshotDamaged = "snapshot-damaged",
        /// A snapshot was changed after it was written.
        SnapshotChanged = "snapshot-changed",
        /// The file of an issue has an error.
        InvalidIssue = "invalid-issue",
        /// The project has changed since the snapshot, and no one has accepted that.
        ChangesNotAccepted = "changes-not-accepted",
        /// The settings switch snapshots off.
        SnapshotsDisabled = "snapshots-disabled",
        /// The run has no message with this id.
        MessageNotFound = "message-not-found",
        /// The run has no conflict with this id.
        ConflictNotFound = "conflict-not-found",
        /// The project has no knowledge entry with this id.
        KnowledgeNotFound = "knowledge-not-found",
        /// The team of the run has no such member.
        MemberNotFound = "member-not-found",
        /// Only a running task of the run may do this.
        TaskRequired = "task-required",
        /// A message is not accepted.
        MessageRejected = "message-rejected",
        /// A conflict or a vote is not accepted.
        ConflictRejected = "conflict-rejected",
    }
}
