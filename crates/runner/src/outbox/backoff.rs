//! When a failed delivery is retried: soon at first, in case the error is temporary, then at growing intervals.

use std::time::Duration;

/// The delay after each failure. After the last one the notice is given up, almost four hours after its event.
const PAUSES: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(2 * 60 * 60),
];

/// The delay after this many failures; `None` to give up.
pub(super) fn pause(failures: u32) -> Option<Duration> {
    let index = usize::try_from(failures.checked_sub(1)?).ok()?;
    PAUSES.get(index).copied()
}
