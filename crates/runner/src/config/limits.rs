//! Limits for scripts, storage and concurrency.

use lockgate_engine::spec::document::Value;
use lockgate_engine::spec::problem::Problem;
use std::num::NonZeroU32;
use std::time::Duration;

const MAX_MEGABYTES: u32 = 1_000_000;

/// The upper bound for `background.max_runs`.
pub const MAX_CONCURRENT_RUNS: u32 = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// How long a script may run.
    pub timeout: Duration,
    /// How long a condition may run.
    pub condition_timeout: Duration,
    /// The memory limit for either, in megabytes.
    pub memory_mb: NonZeroU32,
}

impl Default for Script {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), condition_timeout: Duration::from_secs(5), memory_mb: megabytes(256) }
    }
}

impl Script {
    pub(super) fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for setting in value.fields("`script`", "{ timeout: 30s }", &["timeout", "condition_timeout", "memory_mb"])? {
            match setting.key.as_str() {
                "timeout" => self.timeout = setting.value.duration("`timeout`")?,
                "condition_timeout" => self.condition_timeout = setting.value.duration("`condition_timeout`")?,
                _ => self.memory_mb = megabytes(setting.value.count("`memory_mb`", 1..=MAX_MEGABYTES)?),
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How many megabytes of a task's outputs are stored with the run, so that another machine can continue it; only the
    /// digest of the rest is recorded. Zero stores none.
    pub stored_outputs_mb: u32,
    /// How many megabytes of a task's output are kept in its log.
    pub log_mb: NonZeroU32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { stored_outputs_mb: 16, log_mb: megabytes(64) }
    }
}

impl Limits {
    pub fn stored_outputs_bytes(&self) -> u64 {
        u64::from(self.stored_outputs_mb) * 1_000_000
    }
}

impl Limits {
    pub(super) fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for setting in value.fields("`limits`", "{ log_mb: 64 }", &["stored_outputs_mb", "log_mb"])? {
            match setting.key.as_str() {
                "stored_outputs_mb" => self.stored_outputs_mb = setting.value.count("`stored_outputs_mb`", 0..=MAX_MEGABYTES)?,
                _ => self.log_mb = megabytes(setting.value.count("`log_mb`", 1..=MAX_MEGABYTES)?),
            }
        }
        Ok(())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Background {
    /// How long it keeps running when no run can continue: long enough for a series of answers.
    pub idle_timeout: Duration,
    /// The maximum number of concurrently driven runs.
    pub max_runs: NonZeroU32,
}

impl Default for Background {
    fn default() -> Self {
        Self { idle_timeout: Duration::from_secs(10), max_runs: NonZeroU32::new(64).unwrap_or(NonZeroU32::MIN) }
    }
}

impl Background {
    pub(super) fn set(&mut self, value: &Value<'_>) -> Result<(), Problem> {
        for setting in value.fields("`background`", "{ idle_timeout: 10s }", &["idle_timeout", "max_runs"])? {
            match setting.key.as_str() {
                "idle_timeout" => self.idle_timeout = setting.value.duration("`idle_timeout`")?,
                _ => {
                    let count = setting.value.count("`max_runs`", 1..=MAX_CONCURRENT_RUNS)?;
                    self.max_runs = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
                }
            }
        }
        Ok(())
    }
}

fn megabytes(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
}
