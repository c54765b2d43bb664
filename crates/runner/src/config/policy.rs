//! Policy settings: which questions may be answered without a person, unless a workflow says otherwise.

use lockgate_engine::spec::document::{Entry, Value};
use lockgate_engine::spec::problem::Problem;
use lockgate_engine::spec::workflow::{Automatic, Policy};

const EXAMPLE: &str = "{ verify: auto, decision: { max_consecutive: 3 }, collect: phase }";
const MAX_CONSECUTIVE: u32 = 1000;

/// The same keys as in a workflow file, except conditions, which belong to workflows.
pub(super) fn read(value: &Value<'_>) -> Result<Policy, Problem> {
    let mut policy = Policy::default();
    for Entry { key, value, .. } in value.fields("`policy`", EXAMPLE, &["checkpoint", "verify", "decision", "collect"])? {
        match key.as_str() {
            "checkpoint" => policy.checkpoint = automatic(&key, &value)?,
            "verify" => policy.verify = automatic(&key, &value)?,
            "decision" => policy.decision = automatic(&key, &value)?,
            _ => policy.collect_phase = word(&key, &value, ["no", "phase"])?,
        }
    }
    Ok(policy)
}

fn automatic(key: &str, value: &Value<'_>) -> Result<Option<Automatic>, Problem> {
    if value.text().is_some() {
        return Ok(word(key, value, ["ask", "auto"])?.then(Automatic::default));
    }
    let mut rule = Automatic::default();
    for Entry { value, .. } in value.fields(&format!("`{key}`"), "{ max_consecutive: 3 }", &["max_consecutive"])? {
        rule.max_consecutive = Some(value.count("`max_consecutive`", 1..=MAX_CONSECUTIVE)?);
    }
    Ok(Some(rule))
}

/// Whether a value is the second of two alternatives.
fn word(key: &str, value: &Value<'_>, [no, yes]: [&str; 2]) -> Result<bool, Problem> {
    match value.text() {
        Some(text) if text == no => Ok(false),
        Some(text) if text == yes => Ok(true),
        Some(_) | None => Err(value.problem(format!("`{key}` must be `{no}` or `{yes}`"), Some(format!("write `{EXAMPLE}`")))),
    }
}
