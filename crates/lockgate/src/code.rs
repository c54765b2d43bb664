//! What can keep Lockgate from doing what was asked, as a closed list.
//!
//! What can be wrong with a workflow file is a list of its own: [`ProblemCode`](lockgate_engine::spec::code::ProblemCode).
//! Each code of both lists has a page in `docs/errors/`.

lockgate_engine::codes! {
    /// Why something could not be done. The texts are stable: programs and people rely on them.
    pub enum Code {
        /// The words of the command line are wrong.
        InvalidUsage = "invalid-usage",
        /// There is no code of that name.
        UnknownCode = "unknown-code",
        /// The program cannot start.
        StartupFailed = "startup-failed",
        /// There is no project here.
        ProjectNotFound = "project-not-found",
        /// The root is no folder.
        RootNotFound = "root-not-found",
        /// Something else stands where a folder is needed.
        PathOccupied = "path-occupied",
        /// A file or folder cannot be written.
        Unwritable = "unwritable",
        /// The settings cannot be used.
        InvalidSettings = "invalid-settings",
        /// A file is not there or cannot be read.
        UnreadableFile = "unreadable-file",
        /// A folder, a pipe or a device where a file is needed.
        NotAFile = "not-a-file",
        /// A file is larger than any of its kind.
        FileTooLarge = "file-too-large",
        /// A file is not UTF-8 text.
        NotText = "not-text",
        /// A file is not JSON.
        NotJson = "not-json",
        /// The workflow file has errors.
        InvalidWorkflow = "invalid-workflow",
        /// The files of a run's definition have changed.
        DefinitionChanged = "definition-changed",
        /// No agent is configured for a task that needs one.
        AgentNotConfigured = "agent-not-configured",
        /// An input is missing, or is not what it must be.
        InvalidInput = "invalid-input",
        /// The folder for outputs cannot be used.
        InvalidOutputDir = "invalid-output-dir",
        /// `--var` gives no variable a value.
        InvalidVar = "invalid-var",
        /// An answer in advance fits nothing.
        InvalidPreset = "invalid-preset",
        /// A file of cases cannot be used.
        InvalidTestFile = "invalid-test-file",
        /// There is no such run.
        RunNotFound = "run-not-found",
        /// There is no such hold.
        HoldNotFound = "hold-not-found",
        /// There is no such task or gate.
        TaskNotFound = "task-not-found",
        /// There is no such attempt.
        AttemptNotFound = "attempt-not-found",
        /// The hold has no such option.
        OptionNotFound = "option-not-found",
        /// The hold has no such revision.
        RevisionNotFound = "revision-not-found",
        /// A name fits several things.
        AmbiguousName = "ambiguous-name",
        /// Only a person may do this.
        PersonRequired = "person-required",
        /// What runs inside a task may not decide.
        InsideTask = "inside-task",
        /// Without a terminal nobody may decide.
        TerminalRequired = "terminal-required",
        /// The hold no longer waits.
        HoldClosed = "hold-closed",
        /// The same answer was given before.
        AlreadyAnswered = "already-answered",
        /// Another answer was given before.
        AnswerConflict = "answer-conflict",
        /// The hold has been opened again since.
        StaleRevision = "stale-revision",
        /// The answer must say which revision was seen.
        RevisionRequired = "revision-required",
        /// The option means nothing without words.
        FeedbackRequired = "feedback-required",
        /// A person gave the answer, so it stands.
        AnsweredByPerson = "answered-by-person",
        /// The task or gate is not in the phase under way.
        NotInCurrentPhase = "not-in-current-phase",
        /// The task or gate is running.
        TaskRunning = "task-running",
        /// The task or gate is done.
        TaskDone = "task-done",
        /// The task or gate has not run yet.
        NotStarted = "not-started",
        /// The task or gate will be tried again already.
        RetryPending = "retry-pending",
        /// Whoever skips something says why.
        ReasonRequired = "reason-required",
        /// The run has ended for good.
        RunEnded = "run-ended",
        /// Another process drives the run.
        DrivenElsewhere = "driven-elsewhere",
        /// Another process took the run over.
        TakenOver = "taken-over",
        /// The process could not renew its lease on the run.
        LeaseLost = "lease-lost",
        /// What was left running could not be ended.
        OrphansRunning = "orphans-running",
        /// A run was left to the background, and nothing drives it there.
        BackgroundFailed = "background-failed",
        /// The project is no longer where it was.
        RootMoved = "root-moved",
        /// A log cannot be read.
        UnreadableLog = "unreadable-log",
        /// There is no database.
        DatabaseNotFound = "database-not-found",
        /// There is no room left.
        DiskFull = "disk-full",
        /// The database cannot be written.
        DatabaseReadOnly = "database-read-only",
        /// Another process keeps the database locked.
        DatabaseLocked = "database-locked",
        /// The database is damaged.
        DatabaseCorrupt = "database-corrupt",
        /// Commits that were recorded are missing from the database.
        CommitsMissing = "commits-missing",
        /// The database or server said something else.
        DatabaseError = "database-error",
        /// A later release wrote this.
        NewerFormat = "newer-format",
        /// A history cannot be read.
        HistoryCorrupt = "history-corrupt",
        /// A stored value is missing.
        StoredValueMissing = "stored-value-missing",
        /// The store is not as it was written.
        IntegrityError = "integrity-error",
        /// It is not known whether something was recorded.
        OutcomeUnknown = "outcome-unknown",
        /// A mistake in Lockgate.
        InternalError = "internal-error",
        /// The file is there already.
        FileExists = "file-exists",
        /// There is a database already.
        DatabaseExists = "database-exists",
        /// A process drives runs of the database.
        DatabaseInUse = "database-in-use",
        /// The runs are kept in PostgreSQL.
        SqliteOnly = "sqlite-only",
        /// There is no such worktree.
        WorktreeNotFound = "worktree-not-found",
        /// Changes that were not committed stand in the way.
        UncommittedChanges = "uncommitted-changes",
        /// A branch cannot be merged without a person.
        MergeConflict = "merge-conflict",
        /// Commits or changes would be lost.
        WorkWouldBeLost = "work-would-be-lost",
        /// The run can still go on.
        RunNotEnded = "run-not-ended",
        /// Git could not do what was asked.
        GitError = "git-error",
        /// The run is no pipeline.
        NotAPipeline = "not-a-pipeline",
        /// There is a run or a state file of the pipeline already.
        PipelineExists = "pipeline-exists",
        /// A review cannot be taken as it is.
        ReviewRejected = "review-rejected",
        /// A review lets nothing begin.
        BlockedByReview = "blocked-by-review",
        /// Somebody must say how a pipeline goes on.
        ResumeFlagRequired = "resume-flag-required",
        /// A file is no state file of a pipeline.
        InvalidStateFile = "invalid-state-file",
        /// A state file cannot be written or read.
        StateFileError = "state-file-error",
        /// The file is no backup.
        NotABackup = "not-a-backup",
        /// The backup is not as it was written.
        BackupCorrupt = "backup-corrupt",
    }
}
