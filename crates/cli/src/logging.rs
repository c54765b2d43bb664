//! Logs of Lockgate's own work, on request: `-v`, or a filter in [`VARIABLE`].
//!
//! Without either, no subscriber is installed, and a log statement costs one comparison. Log lines are written through [`print`], so
//! that they appear above the live tree and after an open question.

use crate::error::CommandError;
use crate::print::{self, ERROR, FAINT, GOOD, HELP, STRONG, WARNING, styled};
use anstyle::Style;
use lockgate::code::Code;
use lockgate::sanitize;
use lockgate_runner::runtime::{Clock, SystemClock};
use std::fmt;
use std::io;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{DefaultFields, FormatEvent, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatFields, FormattedFields, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

/// The environment variable with the log filter.
pub(crate) const VARIABLE: &str = "LOCKGATE_LOG";

/// Starts logging if the environment or the command line requests it.
pub(crate) fn start(verbose: u8) -> Result<(), CommandError> {
    let Some(filter) = filter(verbose)? else { return Ok(()) };
    let subscriber = tracing_subscriber::fmt().with_env_filter(filter).with_writer(AboveTheTree).event_format(OneLine).finish();
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|error| CommandError::new(Code::StartupFailed, format!("logging cannot start: {error}")))
}

/// The log filter: the variable takes precedence over the flag.
fn filter(verbose: u8) -> Result<Option<EnvFilter>, CommandError> {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.trim().is_empty() => read(text.trim()).map(Some),
        Ok(_) | Err(std::env::VarError::NotPresent) => {
            Ok(level(verbose).map(|level| EnvFilter::new(format!("lockgate={level}"))))
        }
        Err(std::env::VarError::NotUnicode(_)) => Err(unusable("it is not UTF-8 text")),
    }
}

fn level(verbose: u8) -> Option<LevelFilter> {
    match verbose {
        0 => None,
        1 => Some(LevelFilter::INFO),
        2 => Some(LevelFilter::DEBUG),
        3.. => Some(LevelFilter::TRACE),
    }
}

/// Parses a filter. Two mistakes that [`EnvFilter`] accepts are refused: a missing level, which it reads as `trace`, and a misspelled
/// level, which it reads as a module.
fn read(text: &str) -> Result<EnvFilter, CommandError> {
    let has_spans = text.contains('[');
    for part in text.split(',').map(str::trim).filter(|_| !has_spans) {
        if part.ends_with('=') {
            return Err(unusable(&format!("`{part}` has no level")));
        }
        if !part.contains('=') && part.parse::<LevelFilter>().is_err() && !part.starts_with("lockgate") {
            return Err(unusable(&format!("`{part}` is neither a level nor a module of Lockgate")));
        }
    }
    EnvFilter::try_new(text).map_err(|error| unusable(&error.to_string()))
}

fn unusable(why: &str) -> CommandError {
    CommandError::new(Code::InvalidUsage, format!("the environment variable {VARIABLE} does not hold a log filter: {why}")).help(
        format!(
            "give a level (error, warn, info, debug, trace) or modules with levels, as in `{VARIABLE}=info,lockgate_store=debug`"
        ),
    )
}

/// Writes log lines to stderr, above the live tree.
struct AboveTheTree;

impl MakeWriter<'_> for AboveTheTree {
    type Writer = Self;

    fn make_writer(&self) -> Self::Writer {
        Self
    }
}

impl io::Write for AboveTheTree {
    /// Receives each event in one piece.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        print::talk(&String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One line per event: time, level, spans, module, message and fields. All external text is sanitized.
struct OneLine;

impl<S> FormatEvent<S, DefaultFields> for OneLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(&self, context: &FmtContext<'_, S, DefaultFields>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (level, target) = (event.metadata().level(), event.metadata().target());
        let now = SystemClock.now();
        write!(out, "{} {} ", styled(FAINT, now), styled(style(*level), format_args!("{level:>5}")))?;
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<DefaultFields>>().map_or("", |fields| fields.fields.as_str());
            write!(out, "{}{{{}}}: ", styled(STRONG, span.name()), sanitize::line(fields))?;
        }
        let mut text = String::new();
        context.format_fields(Writer::new(&mut text), event)?;
        writeln!(out, "{} {}", styled(FAINT, format_args!("{target}:")), sanitize::line(&text))
    }
}

fn style(level: Level) -> Style {
    match level {
        Level::ERROR => ERROR,
        Level::WARN => WARNING,
        Level::INFO => GOOD,
        Level::DEBUG => HELP,
        Level::TRACE => FAINT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why_not(text: &str) -> String {
        format!("{:?}", read(text).expect_err(text))
    }

    #[test]
    fn levels_modules_and_spans_can_be_filtered() {
        for text in ["debug", "lockgate_store", "warn,lockgate_runner::driver=trace", "[run{id=abc}]=debug", "off", "TRACE"] {
            assert!(read(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_malformed_filter_is_refused() {
        assert!(why_not("bogus=").contains("`bogus=` has no level"));
        assert!(why_not("degub").contains("`degub` is neither a level nor a module"));
        assert!(why_not("lockgate=loud").contains("does not hold a log filter"));
        assert!(why_not("info,[run").contains("does not hold a log filter"));
    }

    #[test]
    fn the_flag_can_be_repeated() {
        let levels: Vec<_> = (0..5).map(level).collect();
        let trace = Some(LevelFilter::TRACE);
        assert_eq!(levels, [None, Some(LevelFilter::INFO), Some(LevelFilter::DEBUG), trace, trace]);
    }
}
