//! Asks for the missing inputs of a workflow.

use crate::error::CommandError;
use crate::{line_prompt, print};
use lockgate::inputs::{self, kind, missing};
use lockgate::sanitize;
use lockgate_engine::spec::workflow::{Input, Workflow};
use serde_json::Value;
use std::collections::BTreeMap;

/// Fills in the defaults of the workflow's inputs, and asks for missing ones.
pub(crate) fn complete(given: &mut BTreeMap<String, Value>, workflow: &Workflow, may_ask: bool) -> Result<(), CommandError> {
    let help = "give it with --var NAME=VALUE";
    for (name, input) in inputs::complete(given, workflow).map_err(|error| CommandError::from(error).help(help))? {
        if !may_ask || !print::is_interactive() {
            return Err(CommandError::from(missing(name, input)).help(format!("give it with --var {name}=VALUE")));
        }
        given.insert(name.clone(), ask(name, input)?);
    }
    Ok(())
}

fn ask(name: &str, input: &Input) -> Result<Value, CommandError> {
    if let Some(about) = &input.description {
        print::say(sanitize::lines(about));
    }
    let kind = kind(&input.kind).map(|kind| format!(" ({kind})")).unwrap_or_default();
    loop {
        let question = format!("{}{}: ", sanitize::line(name), sanitize::line(&kind));
        let Some(line) = line_prompt::ask(&question)? else { return Err(missing(name, input).into()) };
        if line.trim().is_empty() {
            print::say("a value is required");
            continue;
        }
        match input.kind.read(&Value::String(line)) {
            Ok(value) => return Ok(value),
            Err(why) => print::say(sanitize::line(&format!("it {why}"))),
        }
    }
}
