//! `lockgate init`: create a first workflow and the settings.

use super::help::examples;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::{current_folder, database_of, open_or_create};
use crate::print;
use lockgate::code::Code;
use lockgate::sanitize;
use lockgate_runner::config::Config;
use lockgate_runner::root::Root;
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

const WORKFLOW: &str = "workflow.yaml";
const SETTINGS_FILE: &str = ".lockgate/config.yaml";

const STARTER: &str = include_str!("init/workflow.yaml");
const SETTINGS: &str = include_str!("init/config.yaml");

/// Create a first workflow and the settings
///
/// Lockgate never overwrites a file.
#[derive(Debug, clap::Args)]
#[command(after_help = examples(&[
    "lockgate init",
    "lockgate init --root services/api",
]))]
pub(super) struct Arguments {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Created {
    root: String,
    files: Vec<CreatedFile>,
}

#[derive(Serialize)]
struct CreatedFile {
    path: &'static str,
    /// False if the file existed before.
    created: bool,
}

impl Created {
    fn is_new(&self, path: &str) -> bool {
        self.files.iter().any(|file| file.path == path && file.created)
    }

    fn print_result(&self, json: bool) {
        if json {
            return print::json(self);
        }
        let line = |file: &CreatedFile| match file.created {
            true => format!("created {}\n", file.path),
            false => format!("kept {}, which already exists\n", file.path),
        };
        print::data(&self.files.iter().map(line).collect::<String>());
    }
}

pub(super) fn run(root: Option<&Path>, arguments: &Arguments) -> Result<Exit, CommandError> {
    let root = match root {
        Some(dir) => Root::at(dir),
        None => Root::at(&current_folder()?),
    };
    let above = root.dir().parent().and_then(Root::find).filter(|_| !root.state_dir().is_dir());
    root.prepare()?;
    if let Some(above) = above {
        let dir = above.dir().to_string_lossy().into_owned();
        print::note(format_args!("this directory is inside the project {}; it is now a separate project", sanitize::line(&dir)));
    }
    let mut created_files = Created { root: root.dir().to_string_lossy().into_owned(), files: Vec::new() };
    for (name, path, content) in [(WORKFLOW, root.dir().join(WORKFLOW), STARTER), (SETTINGS_FILE, root.config_file(), SETTINGS)] {
        match create(&path, content) {
            Ok(created) => created_files.files.push(CreatedFile { path: name, created }),
            Err(error) => {
                if !arguments.json {
                    created_files.print_result(false);
                }
                let message = format!("{} cannot be written: {error}", path.display());
                return Err(CommandError::new(Code::Unwritable, message)
                    .help("make the directory writable, or choose another one with --root"));
            }
        }
    }
    created_files.print_result(arguments.json);
    if created_files.is_new(SETTINGS_FILE) {
        create_database(&root)?;
    }
    print::say(format_args!(
        "Next: read {WORKFLOW}, then start it with `lockgate run {WORKFLOW}`. It stops where you decide.\n\
         Check your changes with `lockgate validate {WORKFLOW}`, draw them with `lockgate graph {WORKFLOW}`,\n\
         and write a schema for your editor with `lockgate schema > workflow.schema.json`."
    ));
    Ok(Exit::Done)
}

/// Creates the database of a new project, so that it can be listed before its first run. A project that has settings may have
/// lost its database, which must not go unnoticed.
fn create_database(root: &Root) -> Result<(), CommandError> {
    match database_of(&Config::default()) {
        Some(_) => Ok(()),
        None => open_or_create(Some(root.dir())).map(drop),
    }
}

/// Creates a file unless it exists, and returns whether it did.
fn create(path: &Path, content: &str) -> io::Result<bool> {
    let mut file = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
        Err(error) => return Err(error),
    };
    let written = file.write_all(content.as_bytes()).and_then(|()| file.sync_all());
    if written.is_err() {
        // An incomplete file would be kept by the next `init`.
        lockgate_store::cleanup::remove_file(path);
    }
    written.map(|()| true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_starter_workflow_has_no_problems() {
        let read = lockgate_engine::spec::read(STARTER);
        assert!(read.workflow.is_some() && read.problems.is_empty(), "{:?}", read.problems);
    }

    #[test]
    fn the_starter_settings_equal_the_defaults_even_when_uncommented() {
        let path = Path::new("config.yaml");
        assert_eq!(Config::parse(SETTINGS, path).unwrap(), Config::default());
        let all: Vec<&str> = SETTINGS.lines().map(|line| line.strip_prefix("#: ").unwrap_or(line)).collect();
        let switched_on = Config::parse(&all.join("\n"), path).unwrap();
        assert_eq!(Config { max_parallel: None, database: None, ..switched_on.clone() }, Config::default());
        assert!(switched_on.max_parallel.is_some() && switched_on.database.is_some(), "every setting is shown");
    }
}
