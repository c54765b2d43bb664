//! When a failed delivery is tried again: soon at first, for an error that passes by itself, then ever later.

use std::time::Duration;

/// How long after each failure, the first one first. After the last one the notice is given up, almost four hours after its event.
const PAUSES: [Duration; 7] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_secs(2 * 60),
    Duration::from_secs(10 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(60 * 60),
    Duration::from_secs(2 * 60 * 60),
];

/// How long to wait after so many failures; nothing when it is time to give up.
pub(super) fn pause(failures: u32) -> Option<Duration> {
    let index = usize::try_from(failures.checked_sub(1)?).ok()?;
    PAUSES.get(index).copied()
}
