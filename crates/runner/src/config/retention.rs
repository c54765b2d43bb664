//! How long finished runs are kept.

use lockgate_engine::spec::document::Value;
use lockgate_engine::spec::problem::Problem;
use std::time::Duration;

const EXAMPLE: &str = "{ finished: 30d, keep: 100 }";

/// More runs than anyone keeps on purpose.
const MAX_KEPT: u32 = 1_000_000;

/// How long finished runs are kept: complete, aborted and cancelled ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Finished runs are removed after this long; absent keeps them for good.
    pub finished: Option<Duration>,
    /// This many of the newest finished runs are kept, however old they are.
    pub keep: u32,
}

impl Retention {
    pub(super) fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for setting in value.fields("`retention`", EXAMPLE, &["finished", "keep"])? {
            match setting.key.as_str() {
                "finished" => self.finished = Some(setting.value.duration("`finished`")?),
                _ => self.keep = setting.value.count("`keep`", 0..=MAX_KEPT)?,
            }
        }
        if self.keep > 0 && self.finished.is_none() {
            let help = format!("add the age after which finished runs are removed: `{EXAMPLE}`");
            return Err(value.problem("`keep` has no effect without `finished`", Some(help)));
        }
        Ok(())
    }
}
