//! Everything that only Linux has: notices about files, the table of processes under `/proc`, the clock that counts during sleep.
//! A test of xtask checks that no other module of this crate does such things.
//!
//! | module | contents |
//! | --- | --- |
//! | [`file_events`] | notices about the files of a store |
//! | [`process`] | which process this is, and whether another one has ended |

pub(crate) mod file_events;
pub(crate) mod process;

use rustix::time::ClockId;

/// The clock that also counts while the machine sleeps.
#[cfg(target_os = "linux")]
pub(crate) const CLOCK: ClockId = ClockId::Boottime;
/// The clock that also counts while the machine sleeps.
#[cfg(not(target_os = "linux"))]
pub(crate) const CLOCK: ClockId = ClockId::Monotonic;
