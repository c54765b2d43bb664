//! `lockgate config`: the settings that apply, and where each of them comes from.

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::print::{self, FAINT, STRONG, styled};
use lockgate::sanitize;
use lockgate_runner::config::{DATABASE_VARIABLE, EffectiveSetting, SettingSource, SettingsFile, effective_settings};
use lockgate_runner::root::Root;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

/// Show the settings and where they come from
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&["lockgate config show", "lockgate config show --json"]))]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Show every setting with its value and where it comes from
    #[command(after_help = examples(&["lockgate config show", "lockgate config show --json"]))]
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// A setting, as JSON.
#[derive(Serialize)]
struct SettingView<'s> {
    key: &'static str,
    value: &'s Value,
    source: &'static str,
    path: Option<String>,
    line: Option<usize>,
    variable: Option<&'static str>,
}

pub(super) fn run(root: Option<&Path>, arguments: &Arguments) -> Result<Exit, CommandError> {
    let Command::Show { json } = arguments.command;
    let root = crate::open::place(root)?;
    let database = std::env::var(DATABASE_VARIABLE).ok();
    let settings = effective_settings(&root, database.as_deref())?;
    if json {
        print::json(&settings.iter().map(|setting| view(setting, &root)).collect::<Vec<_>>());
    } else {
        print::data(&table(&settings, &root));
    }
    Ok(Exit::Done)
}

/// The path of a settings file as it is shown: relative to the root if it is in it.
fn shown_path(file: SettingsFile, root: &Root) -> String {
    let path = file.path(root);
    path.strip_prefix(root.dir()).unwrap_or(&path).to_string_lossy().into_owned()
}

fn view<'s>(setting: &'s EffectiveSetting, root: &Root) -> SettingView<'s> {
    let (source, path, line, variable) = match setting.source {
        SettingSource::Default => ("default", None, None, None),
        SettingSource::File { file, line } => ("file", Some(shown_path(file, root)), Some(line), None),
        SettingSource::Environment(variable) => ("environment", None, None, Some(variable)),
    };
    SettingView { key: setting.key, value: &setting.value, source, path, line, variable }
}

fn table(settings: &[EffectiveSetting], root: &Root) -> String {
    let rows: Vec<[String; 3]> =
        settings.iter().map(|setting| [setting.key.to_owned(), value_text(&setting.value), source(setting, root)]).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    // A long value must not push all sources off the screen.
    let (keys, values) = (width(0), width(1).min(40));
    let line = |[key, value, source]: &[String; 3]| {
        let (key, source) = (styled(STRONG, format_args!("{key:<keys$}")), styled(FAINT, source));
        format!("{key}  {value:<values$}  {source}\n")
    };
    rows.iter().map(line).collect()
}

fn value_text(value: &Value) -> String {
    let text = match value {
        Value::Null => "not set".to_owned(),
        Value::Object(fields) if fields.is_empty() => "not set".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    sanitize::line(&text).into_owned()
}

fn source(setting: &EffectiveSetting, root: &Root) -> String {
    match setting.source {
        SettingSource::Default => "default".to_owned(),
        SettingSource::File { file, line } => sanitize::line(&format!("{}:{line}", shown_path(file, root))).into_owned(),
        SettingSource::Environment(variable) => format!("environment {variable}"),
    }
}
