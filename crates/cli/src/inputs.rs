//! The values that a workflow wants when a run begins: read, checked, and asked for where they are missing.

use crate::code::Code;
use crate::trouble::Trouble;
use crate::{line_question, neutral, print};
use lockgate_engine::spec::workflow::{Input, InputKind, Workflow};
use serde_json::Value;
use std::collections::BTreeMap;

/// Completes the values that were given by those that the workflow declares.
pub(crate) fn complete(given: &mut BTreeMap<String, Value>, workflow: &Workflow, may_ask: bool) -> Result<(), Trouble> {
    for (name, input) in &workflow.inputs {
        let value = match given.get(name) {
            Some(value) => input.kind.read(value).map_err(|why| wrong(name, &why))?,
            None => match &input.default {
                Some(default) => default.clone(),
                None if !input.required => continue,
                None if may_ask && print::somebody_is_there() => ask(name, input)?,
                None => return Err(missing(name, input)),
            },
        };
        given.insert(name.clone(), value);
    }
    Ok(())
}

fn wrong(name: &str, why: &str) -> Trouble {
    Trouble::new(Code::BadInput, format!("the input `{name}` {why}")).help(format!("give it with --var {name}=VALUE"))
}

fn missing(name: &str, input: &Input) -> Trouble {
    let about = input.description.as_deref().map(|about| format!(" ({about})")).unwrap_or_default();
    let kind = kind(&input.kind).map(|kind| format!(", {kind}")).unwrap_or_default();
    Trouble::new(Code::BadInput, format!("the workflow needs the input `{name}`{about}"))
        .help(format!("give it with --var {name}=VALUE{kind}"))
}

fn kind(kind: &InputKind) -> Option<String> {
    match kind {
        InputKind::Text => None,
        InputKind::Number => Some("a number".into()),
        InputKind::Truth => Some("true or false".into()),
        InputKind::List => Some("a list such as a,b,c".into()),
        InputKind::Choice(choices) => Some(format!("one of {}", choices.join(", "))),
    }
}

fn ask(name: &str, input: &Input) -> Result<Value, Trouble> {
    if let Some(about) = &input.description {
        print::say(neutral::lines(about));
    }
    let kind = kind(&input.kind).map(|kind| format!(" ({kind})")).unwrap_or_default();
    loop {
        let question = format!("{}{}: ", neutral::line(name), neutral::line(&kind));
        let Some(line) = line_question::ask(&question)? else { return Err(missing(name, input)) };
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
