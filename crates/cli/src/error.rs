//! The errors of commands, and how the program prints them.

use crate::exit::Exit;
use crate::print::{self, ERROR, HELP, styled};
use anstyle::Style;
use lockgate::Error;
use lockgate::code::Code;
use lockgate::human_time::localize;
use lockgate::sanitize;
use lockgate_engine::run::Refusal;
use lockgate_engine::run::hash_chain::CommitError;
use lockgate_runner::config::ConfigError;
use lockgate_runner::driver::DriveError;
use lockgate_runner::load::LoadError;
use lockgate_runner::projection::StateFileError;
use lockgate_runner::root::RootError;
use lockgate_store::StoreError;
use serde::Serialize;

/// A library error, and whether it is already on stderr.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandError {
    error: Error,
    reported: bool,
}

/// A [`CommandError`] as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct CommandErrorView {
    code: &'static str,
    message: String,
    help: Vec<String>,
    exit: u8,
}

impl CommandError {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { error: Error::new(code, message), reported: false }
    }

    /// Marks the error as already on stderr, so that [`CommandError::report`] prints nothing.
    #[must_use]
    pub(crate) fn reported(mut self) -> Self {
        self.reported = true;
        self
    }

    #[must_use]
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { error: self.error.help(help), reported: self.reported }
    }

    /// Adds a suggestion if the error has one of these codes.
    #[must_use]
    pub(crate) fn help_for(self, codes: &[Code], help: impl Into<String>) -> Self {
        if codes.contains(&self.error.code()) { self.help(help) } else { self }
    }

    pub(crate) fn error(&self) -> &Error {
        &self.error
    }

    pub(crate) fn exit(&self) -> Exit {
        Exit::of_error(self.error.code())
    }

    /// Prints the error and its suggestions on stderr, once.
    pub(crate) fn report(&self) {
        if self.reported {
            return;
        }
        let code = self.error.code().text();
        let mut text = format!("{} {}\n", heading(ERROR, "error", code), sanitize::lines(&localize(self.error.message())));
        for help in self.error.suggestions() {
            let help = localize(help);
            let help = sanitize::lines(&help);
            let mut lines = help.lines();
            text += &format!("{} {}\n", styled(HELP, "help:"), lines.next().unwrap_or_default());
            text.extend(lines.map(|line| format!("      {line}\n")));
        }
        print::talk(&text);
    }

    pub(crate) fn view(&self) -> CommandErrorView {
        CommandErrorView {
            code: self.error.code().text(),
            message: self.error.message().to_owned(),
            help: self.error.suggestions().to_vec(),
            exit: self.exit().code(),
        }
    }
}

/// The first words of a message, such as `error[invalid-usage]:`. `lockgate explain` describes the code.
pub(crate) fn heading(style: Style, word: &str, code: &str) -> String {
    styled(style, format_args!("{word}[{code}]:"))
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        let help = flag_help(error.code());
        let error = Self { error, reported: false };
        help.into_iter().fold(error, Self::help)
    }
}

/// The flag that resolves an error of the library, which does not know the command line.
fn flag_help(code: Code) -> Option<&'static str> {
    FLAGS.iter().find(|(of, _)| *of == code).map(|(_, help)| *help)
}

const FLAGS: [(Code, &str); 7] = [
    (Code::ProjectNotFound, "name the project with --root DIR"),
    (Code::FeedbackRequired, "describe it with --feedback TEXT"),
    (Code::ReasonRequired, "say why with --reason TEXT"),
    (Code::AgentNotConfigured, "name an agent with --agent COMMAND"),
    (Code::AttemptNotFound, "name one with --iteration N --attempt N"),
    (Code::PipelineExists, "start a new run with --new"),
    (Code::WorkWouldBeLost, "remove it anyway with --force"),
];

/// Implements `From` for the errors of the lower crates, so that `?` converts them.
macro_rules! from_lower_crates {
    ($($error:ty),* $(,)?) => {
        $(impl From<$error> for CommandError {
            fn from(error: $error) -> Self {
                Error::from(error).into()
            }
        })*
    };
}

from_lower_crates!(StoreError, CommitError, LoadError, RootError, ConfigError, StateFileError, DriveError, Refusal);
