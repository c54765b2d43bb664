//! How much work may use, how much of it is kept, and how much is done at once.

use lockgate_engine::spec::document::Value;
use lockgate_engine::spec::problem::Problem;
use std::num::NonZeroU32;
use std::time::Duration;

/// Larger than any machine's memory or disk that somebody would give to one task.
const MOST_MEGABYTES: u32 = 1_000_000;

/// More runs than one process should drive side by side.
pub const MOST_RUNS_AT_ONCE: u32 = 10_000;

/// What scripts and conditions may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// How long a script may compute.
    pub time: Duration,
    /// How long a condition may compute.
    pub condition_time: Duration,
    /// How much memory either may use, in megabytes.
    pub memory_mb: NonZeroU32,
}

impl Default for Script {
    fn default() -> Self {
        Self { time: Duration::from_secs(30), condition_time: Duration::from_secs(5), memory_mb: megabytes(256) }
    }
}

impl Script {
    pub(super) fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for setting in value.fields("`script`", "{ time: 30s }", &["time", "condition_time", "memory_mb"])? {
            match setting.key.as_str() {
                "time" => self.time = setting.value.duration("`time`")?,
                "condition_time" => self.condition_time = setting.value.duration("`condition_time`")?,
                _ => self.memory_mb = megabytes(setting.value.count("`memory_mb`", 1..=MOST_MEGABYTES)?),
            }
        }
        Ok(())
    }
}

/// How much is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many megabytes of a task's outputs are stored with the run, so that another machine can go on; of the rest only
    /// the digest is known. Zero stores none.
    pub output_keep_mb: u32,
    /// How many megabytes of what a task prints are kept in its log.
    pub log_mb: NonZeroU32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { output_keep_mb: 16, log_mb: megabytes(64) }
    }
}

impl Limits {
    /// How many bytes of a task's outputs are stored with the run.
    pub fn output_keep_bytes(&self) -> u64 {
        u64::from(self.output_keep_mb) * 1_000_000
    }
}

impl Limits {
    pub(super) fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for setting in value.fields("`limits`", "{ log_mb: 64 }", &["output_keep_mb", "log_mb"])? {
            match setting.key.as_str() {
                "output_keep_mb" => self.output_keep_mb = setting.value.count("`output_keep_mb`", 0..=MOST_MEGABYTES)?,
                _ => self.log_mb = megabytes(setting.value.count("`log_mb`", 1..=MOST_MEGABYTES)?),
            }
        }
        Ok(())
    }
}

/// The process that drives in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Background {
    /// How long it stays when nothing can go on: long enough for the next answer in a row of them.
    pub stay: Duration,
    /// How many runs it drives side by side at most.
    pub at_once: NonZeroU32,
}

impl Default for Background {
    fn default() -> Self {
        Self { stay: Duration::from_secs(10), at_once: NonZeroU32::new(64).unwrap_or(NonZeroU32::MIN) }
    }
}

impl Background {
    pub(super) fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for setting in value.fields("`background`", "{ stay: 10s }", &["stay", "at_once"])? {
            match setting.key.as_str() {
                "stay" => self.stay = setting.value.duration("`stay`")?,
                _ => {
                    let count = setting.value.count("`at_once`", 1..=MOST_RUNS_AT_ONCE)?;
                    self.at_once = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
                }
            }
        }
        Ok(())
    }
}

fn megabytes(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
}
