//! Asking for the inputs of a workflow that were not given.

use crate::trouble::Trouble;
use crate::{line_question, print};
use lockgate::inputs::{self, kind, missing};
use lockgate::neutral;
use lockgate_engine::spec::workflow::{Input, Workflow};
use serde_json::Value;
use std::collections::BTreeMap;

/// Completes the values that were given by those that the workflow declares, and asks for those that are missing.
pub(crate) fn complete(given: &mut BTreeMap<String, Value>, workflow: &Workflow, may_ask: bool) -> Result<(), Trouble> {
    for (name, input) in inputs::complete(given, workflow)? {
        if !may_ask || !print::somebody_is_there() {
            return Err(missing(name, input).into());
        }
        given.insert(name.clone(), ask(name, input)?);
    }
    Ok(())
}

fn ask(name: &str, input: &Input) -> Result<Value, Trouble> {
    if let Some(about) = &input.description {
        print::say(neutral::lines(about));
    }
    let kind = kind(&input.kind).map(|kind| format!(" ({kind})")).unwrap_or_default();
    loop {
        let question = format!("{}{}: ", neutral::line(name), neutral::line(&kind));
        let Some(line) = line_question::ask(&question)? else { return Err(missing(name, input).into()) };
        if line.trim().is_empty() {
            print::say("a value is needed");
            continue;
        }
        match input.kind.read(&Value::String(line)) {
            Ok(value) => return Ok(value),
            Err(why) => print::say(neutral::line(&format!("it {why}"))),
        }
    }
}
