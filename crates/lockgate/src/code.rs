//! What can keep Lockgate from doing what was asked, as a closed list.
//!
//! What can be wrong with a workflow file is a list of its own: [`ProblemCode`](lockgate_engine::spec::code::ProblemCode).
//! Each code of both lists has a page in `docs/errors/`.

lockgate_engine::codes! {
    /// Why something could not be done. The texts are stable: programs and people rely on them.
    pub enum Code {
        /// The words of the command line are wrong.
        BadUsage = "bad-usage",
        /// There is no code of that name.
        Unexplained = "unknown-code",
        /// The program cannot start.
        CannotStart = "cannot-start",
        /// There is no project here.
        NoProject = "no-project",
        /// The root is no folder.
        NoFolder = "no-folder",
        /// Something else stands where a folder is needed.
        InTheWay = "in-the-way",
        /// A file or folder cannot be written.
        Unwritable = "unwritable",
        /// The settings cannot be used.
        BadSettings = "bad-settings",
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
        NoAgent = "no-agent",
        /// An input is missing, or is not what it must be.
        BadInput = "bad-input",
        /// The folder for outputs cannot be used.
        BadOutputDir = "bad-output-dir",
        /// `--var` gives no variable a value.
        BadVar = "bad-var",
        /// An answer in advance fits nothing.
        BadPreset = "bad-preset",
        /// A file of cases cannot be used.
        BadCases = "bad-cases",
        /// There is no such run.
        NoSuchRun = "no-such-run",
        /// There is no such hold.
        NoSuchHold = "no-such-hold",
        /// There is no such task or gate.
        NoSuchTask = "no-such-task",
        /// There is no such attempt.
        NoSuchAttempt = "no-such-attempt",
        /// The hold has no such option.
        NoSuchOption = "no-such-option",
        /// The hold has no such revision.
        NoSuchRevision = "no-such-revision",
        /// A name fits several things.
        AmbiguousName = "ambiguous-name",
        /// Only a person may do this.
        NotAPerson = "not-a-person",
        /// What runs inside a task may not decide.
        InsideTask = "inside-task",
        /// Without a terminal nobody may decide.
        NoTerminal = "no-terminal",
        /// The hold no longer waits.
        HoldClosed = "hold-closed",
        /// The same answer was given before.
        AlreadyAnswered = "already-answered",
        /// Another answer was given before.
        AnswerConflicts = "answer-conflicts",
        /// The hold has been opened again since.
        StaleRevision = "stale-revision",
        /// The answer must say which revision was seen.
        RevisionNeeded = "revision-needed",
        /// The option means nothing without words.
        WordsNeeded = "words-needed",
        /// A person gave the answer, so it stands.
        AnswerStands = "answer-stands",
        /// The task or gate is not in the phase under way.
        NotUnderWay = "not-under-way",
        /// The task or gate is running.
        TaskRunning = "task-running",
        /// The task or gate is done.
        TaskDone = "task-done",
        /// The task or gate has not run yet.
        NotStarted = "not-started",
        /// The task or gate will be tried again already.
        AlreadyAsked = "already-asked",
        /// Whoever skips something says why.
        NoReason = "no-reason",
        /// The run has ended for good.
        RunEnded = "run-ended",
        /// Another process drives the run.
        DrivenElsewhere = "driven-elsewhere",
        /// Another process took the run over.
        TakenOver = "taken-over",
        /// The process could not renew its lease on the run.
        LeaseLost = "lease-lost",
        /// What was left running could not be ended.
        LeftRunning = "left-running",
        /// A run was left to the background, and nothing drives it there.
        BackgroundFailed = "background-failed",
        /// The project is no longer where it was.
        RootMoved = "root-moved",
        /// A log cannot be read.
        UnreadableLog = "unreadable-log",
        /// There is no database.
        NoDatabase = "no-database",
        /// There is no room left.
        DiskFull = "disk-full",
        /// The database cannot be written.
        DatabaseReadOnly = "database-read-only",
        /// Another process keeps the database locked.
        DatabaseLocked = "database-locked",
        /// The database is damaged.
        DatabaseDamaged = "database-damaged",
        /// Commits that were recorded are missing from the database.
        CommitsMissing = "commits-missing",
        /// The database or server said something else.
        DatabaseTrouble = "database-trouble",
        /// A later release wrote this.
        NewerFormat = "newer-format",
        /// A history cannot be read.
        HistoryDamaged = "history-damaged",
        /// A stored value is missing.
        ValueMissing = "value-missing",
        /// The store is not as it was written.
        NotAsWritten = "not-as-written",
        /// It is not known whether something was recorded.
        OutcomeUnknown = "outcome-unknown",
        /// A mistake in Lockgate.
        OurMistake = "our-mistake",
        /// The file is there already.
        FileExists = "file-exists",
        /// There is a database already.
        DatabaseExists = "database-exists",
        /// A process drives runs of the database.
        DatabaseInUse = "database-in-use",
        /// The runs are kept in PostgreSQL.
        KeptInPostgresql = "kept-in-postgresql",
        /// There is no such worktree.
        NoSuchWorktree = "no-such-worktree",
        /// Changes that were not committed stand in the way.
        UncommittedChanges = "uncommitted-changes",
        /// A branch cannot be merged without a person.
        MergeConflict = "merge-conflict",
        /// Commits or changes would be lost.
        WorkWouldBeLost = "work-would-be-lost",
        /// The run can still go on.
        RunNotOver = "run-not-over",
        /// Git could not do what was asked.
        GitTrouble = "git-trouble",
        /// The run is no pipeline.
        NoPipeline = "no-pipeline",
        /// There is a run or a state file of the pipeline already.
        PipelineExists = "pipeline-exists",
        /// A review cannot be taken as it is.
        ReviewRefused = "review-refused",
        /// A review lets nothing begin.
        ReviewBlocks = "review-blocks",
        /// Somebody must say how a pipeline goes on.
        ResumeChoice = "resume-choice",
        /// A file is no state file of a pipeline.
        BadStateFile = "bad-state-file",
        /// A state file cannot be written or read.
        StateFileTrouble = "state-file-trouble",
        /// The file is no backup.
        NotABackup = "not-a-backup",
        /// The backup is not as it was written.
        DamagedBackup = "damaged-backup",
    }
}
