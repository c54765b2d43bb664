//! Why the program could not do what was asked: one message that says what, where and what to do next.

use crate::exit::Exit;
use crate::print::{self, ERROR, HELP, styled};
use crate::{neutral, view};
use lockgate_engine::run::Refusal;
use lockgate_runner::config::ConfigError;
use lockgate_runner::driver::DriveError;
use lockgate_runner::load::LoadError;
use lockgate_runner::root::RootError;
use lockgate_runner::start::FileError;
use lockgate_store::StoreError;

/// Why something could not be done, and how the program ends because of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Trouble {
    /// How the program ends.
    pub(crate) exit: Exit,
    /// What is wrong, in one sentence.
    message: String,
    /// What would mend it.
    help: Vec<String>,
    /// Whether it was told on stderr already.
    told: bool,
}

impl Trouble {
    /// Something that ends the program so.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), help: Vec::new(), told: false }
    }

    /// Bad input.
    pub(crate) fn misuse(message: impl Into<String>) -> Self {
        Self::new(Exit::Misuse, message)
    }

    /// The same, told on stderr already.
    #[must_use]
    pub(crate) fn told(mut self) -> Self {
        self.told = true;
        self
    }

    /// Adds what would mend it.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help.push(help.into());
        self
    }

    /// Tells it on stderr.
    pub(crate) fn tell(&self) {
        if self.told {
            return;
        }
        let mut text = format!("{} {}\n", styled(ERROR, "error:"), neutral::lines(&self.message));
        for help in &self.help {
            let help = neutral::lines(help);
            let mut lines = help.lines();
            text += &format!("{} {}\n", styled(HELP, "help:"), lines.next().unwrap_or_default());
            text.extend(lines.map(|line| format!("      {line}\n")));
        }
        print::talk(&text);
    }

    /// What is wrong and what would mend it, in one text.
    pub(crate) fn whole(&self) -> String {
        std::iter::once(&self.message).chain(&self.help).map(String::as_str).collect::<Vec<_>>().join("; ")
    }

    /// The same for programs.
    pub(crate) fn as_json(&self) -> serde_json::Value {
        serde_json::json!({"error": {"message": self.message, "help": self.help, "exit": self.exit.code()}})
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        let exit = match &error {
            StoreError::NotThere(_) | StoreError::NoRun(_) => Exit::Misuse,
            StoreError::Full(_)
            | StoreError::ReadOnly(_)
            | StoreError::Locked(_)
            | StoreError::Corrupt(_)
            | StoreError::Newer { .. }
            | StoreError::OutcomeUnknown(_)
            | StoreError::Misused(_)
            | StoreError::Io(_) => Exit::Failed,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<LoadError> for Trouble {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Store(error) => error.into(),
            LoadError::History { .. } | LoadError::ValueMissing { .. } => Self::new(Exit::Failed, error.to_string()),
        }
    }
}

impl From<RootError> for Trouble {
    fn from(error: RootError) -> Self {
        let exit = match &error {
            RootError::NoFolder { .. } => Exit::Misuse,
            RootError::InTheWay { .. } | RootError::Unwritable { .. } => Exit::Failed,
        };
        Self::new(exit, error.to_string())
    }
}

impl From<ConfigError> for Trouble {
    fn from(error: ConfigError) -> Self {
        let trouble = Self::misuse(error.to_string());
        match error.help {
            Some(help) => trouble.help(help),
            None => trouble,
        }
    }
}

impl From<FileError> for Trouble {
    fn from(error: FileError) -> Self {
        Self::misuse(error.to_string())
    }
}

impl From<DriveError> for Trouble {
    fn from(error: DriveError) -> Self {
        match error {
            DriveError::DrivenBy { ref run, .. } => {
                let help = format!(
                    "it goes on there; look at it with `lockgate status {run}`; `lockgate inbox` says how to answer what waits"
                );
                Self::new(Exit::Waiting, error.to_string()).help(help)
            }
            DriveError::TakenOver(_) => Self::new(Exit::Waiting, error.to_string()),
            DriveError::Refused(refusal) => refusal.into(),
            DriveError::Load(error) => error.into(),
            DriveError::Store(error) => error.into(),
            DriveError::Orphans { .. } => Self::new(Exit::Failed, error.to_string()),
        }
    }
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        let message = refusal.to_string();
        match refusal {
            Refusal::NotAPerson { .. } => Self::new(Exit::Waiting, message).help("a person does this from a terminal outside any task"),
            Refusal::InsideTask { .. } => Self::new(Exit::Waiting, message)
                .help("a person does this from a terminal outside any task; this attempt is kept in the history"),
            Refusal::NoTerminal { .. } => Self::new(Exit::Waiting, message)
                .help("do it from a terminal, or, where there is none (CI), set in .lockgate/config.yaml:\npeople: { require_terminal: false }"),
            Refusal::NoSuchHold { .. } => Self::misuse(message).help("`lockgate inbox` lists the holds that wait"),
            Refusal::RunEnded { .. } | Refusal::AnswerConflicts { .. } | Refusal::StaleRevision { .. } => {
                Self::new(Exit::Waiting, message)
            }
            Refusal::AlreadyAnswered { .. } => Self::new(Exit::Done, message),
            Refusal::RevisionNeeded { hold, current } => {
                let help = format!("look at what it shows with `lockgate why RUN` (`lockgate inbox` names the run), then answer `{hold}@{current}`");
                Self::misuse(message).help(help)
            }
            Refusal::NoSuchOption { options, .. } => {
                let options: Vec<String> = options.iter().enumerate().map(|(at, choice)| view::option_line(at, choice)).collect();
                Self::misuse(message).help(format!("its options are\n{}", options.join("\n")))
            }
            Refusal::NotUnderWay { .. } => Self::misuse(message)
                .help("only what belongs to the phase under way can be retried or skipped; `lockgate status` shows it"),
            Refusal::StepRunning { .. } => Self::new(Exit::Waiting, message)
                .help("wait until it has ended, or end the run with `lockgate cancel`; `lockgate logs -f` shows what it prints"),
            Refusal::StepDone { .. } => {
                Self::misuse(message).help("what is done runs again only when its phase is repeated, at a checkpoint")
            }
            Refusal::NotStarted { .. } => Self::misuse(message)
                .help("it starts when what it needs is done; `lockgate skip` lets it count as done without running"),
            Refusal::AlreadyAsked { .. } => Self::new(Exit::Done, message),
            Refusal::NoReason { .. } => Self::misuse(message).help("say why with --reason; it is kept in the history"),
            Refusal::Ended { .. } => Self::misuse(message),
        }
    }
}
