//! Pipeline settings.

use crate::projection::is_own;
use lockgate_engine::spec::document::Value;
use lockgate_engine::spec::problem::Problem;
use std::collections::BTreeMap;
use std::path::{Component, Path};

/// Defaults for pipelines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pipelines {
    /// The directory of their state files, relative to the root.
    pub dir: Option<String>,
    /// Whether they need an approving review before they start.
    pub review: bool,
    /// A shell command that runs when all phases are done.
    pub on_complete: Option<String>,
    /// Whether the question between two phases is answered automatically, unless a gate needs a person.
    pub auto_continue: bool,
    /// Commands of gates that EXECUTION-SPECs use by convention without defining them, by name.
    pub gates: BTreeMap<String, String>,
}

impl Pipelines {
    pub(super) fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for setting in
            value.fields("`pipelines`", "{ dir: build/checkpoints }", &["dir", "review", "on_complete", "approve", "gates"])?
        {
            let value = &setting.value;
            let text = |what: &str| {
                let text = value.text().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
                text.ok_or_else(|| value.problem(format!("{what} must be a text"), None))
            };
            match setting.key.as_str() {
                "dir" => {
                    let dir = text("`dir`")?;
                    let inside =
                        Path::new(&dir).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
                    if !inside || is_own(Path::new(&dir)) {
                        let help = "use a path relative to the root, without `..`, outside `.lockgate` and `.git`".to_owned();
                        return Err(value.problem("`dir` must be a directory inside the root", Some(help)));
                    }
                    self.dir = Some(dir);
                }
                "gates" => {
                    let help = "write it as `gates: { lint: npm run lint }`".to_owned();
                    let gates = value.entries().ok_or_else(|| value.problem("`gates` must be a map of commands", Some(help)))?;
                    for gate in gates {
                        let command = gate.value.text().map(str::trim).filter(|text| !text.is_empty());
                        let command = command.ok_or_else(|| gate.value.problem("a gate must have a command", None))?;
                        self.gates.insert(gate.key.clone(), command.to_owned());
                    }
                }
                "review" => self.review = value.boolean("`review`")?,
                "approve" => {
                    self.auto_continue = match value.text() {
                        Some("ask") => false,
                        Some("auto") => true,
                        Some(_) | None => {
                            let help = "write `ask` or `auto`".to_owned();
                            return Err(value.problem("`approve` must say who approves the next phase", Some(help)));
                        }
                    }
                }
                _ => self.on_complete = Some(text("`on_complete`")?),
            }
        }
        Ok(())
    }
}
