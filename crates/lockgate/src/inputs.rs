//! The inputs of a workflow, whose values are set when a run starts.

use crate::code::Code;
use crate::error::Error;
use lockgate_engine::spec::workflow::{Input, InputKind, Workflow};
use serde_json::Value;
use std::collections::BTreeMap;

/// Checks the given values and fills in defaults. Returns the required inputs that still have no value.
pub fn complete<'w>(given: &mut BTreeMap<String, Value>, workflow: &'w Workflow) -> Result<Vec<(&'w String, &'w Input)>, Error> {
    let mut missing = Vec::new();
    for (name, input) in &workflow.inputs {
        let value = match given.get(name) {
            Some(value) => input.kind.read(value).map_err(|why| wrong(name, &why.to_string()))?,
            None => match &input.default {
                Some(default) => default.clone(),
                None if !input.required => continue,
                None => {
                    missing.push((name, input));
                    continue;
                }
            },
        };
        given.insert(name.clone(), value);
    }
    Ok(missing)
}

fn wrong(name: &str, why: &str) -> Error {
    Error::new(Code::InvalidInput, format!("the input `{name}` {why}"))
}

/// The error for a missing required input.
pub fn missing(name: &str, input: &Input) -> Error {
    let about = input.description.as_deref().map(|about| format!(" ({about})")).unwrap_or_default();
    let error = Error::new(Code::InvalidInput, format!("the workflow needs the input `{name}`{about}"));
    match kind(&input.kind) {
        Some(kind) => error.help(format!("its value is {kind}")),
        None => error,
    }
}

/// Describes valid values of an input kind, unless the kind is obvious.
pub fn kind(kind: &InputKind) -> Option<String> {
    match kind {
        InputKind::String => None,
        InputKind::Number => Some("a number".into()),
        InputKind::Boolean => Some("true or false".into()),
        InputKind::List => Some("a list such as a,b,c".into()),
        InputKind::Choice(choices) => Some(format!("one of {}", choices.join(", "))),
    }
}

/// Warnings about values that no input or variable declares. They are probably misspelled, but the workflow may still use them in
/// an expression.
pub fn unknown_vars(given: &BTreeMap<String, Value>, workflow: &Workflow) -> Vec<String> {
    let near = |name: &str| {
        let likeness = |known: &str| strsim::normalized_damerau_levenshtein(name, known);
        let known = workflow
            .vars
            .keys()
            .chain(workflow.inputs.keys())
            .map(|known| (likeness(known), known))
            .filter(|(likeness, _)| *likeness >= 0.6);
        known.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, known)| known)
    };
    let declared = |name: &String| workflow.vars.contains_key(name) || workflow.inputs.contains_key(name);
    let unknown = given.keys().filter(|name| !declared(name));
    unknown
        .map(|name| match near(name) {
            Some(near) => format!("{name}: the workflow declares no such variable; did you mean {near:?}?"),
            None => format!("{name}: the workflow declares no such variable under `vars`"),
        })
        .collect()
}
