//! Refused attempts to decide about a run: the first ones are events of the run, the rest are only counted.

use crate::driver::{DriveError, submit};
use crate::load::load;
use crate::root::Root;
use crate::runtime::Runtime;
use lockgate_engine::id::RunId;
use lockgate_engine::run::command::{Actor, Caller, CommandKind, TerminalRule};
use lockgate_engine::run::event::RefusedAttempt;
use lockgate_engine::run::state::REFUSED_ATTEMPTS_KEPT;
use std::fs::OpenOptions;
use std::io::{self, Read, Seek, Write};

/// How a refused attempt was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalRecord {
    /// As an event of the run, with this number.
    AsEvent(u32),
    /// Counted with this number, without an event.
    Counted(u32),
    /// Neither: the run already records the maximum number of events, and the counter cannot be written.
    NotCounted,
}

/// Records a refused attempt in the history of a run. After the first hundred, most attempts are only counted, in a file in
/// the run's directory, so that the history stays bounded.
pub async fn record(
    runtime: &Runtime,
    root: &Root,
    run: &RunId,
    actor: Actor,
    refused: RefusedAttempt,
) -> Result<RefusalRecord, DriveError> {
    let known = load(&*runtime.store, run).await?.refused_attempts;
    let number = if known < REFUSED_ATTEMPTS_KEPT { Ok(known + 1) } else { count(root, run, known) };
    let Ok(number) = number else { return Ok(RefusalRecord::NotCounted) };
    let refused = RefusedAttempt { number, ..refused };
    // Recording decides nothing, so the strictest terminal rule is safe for every project.
    let caller = Caller::new(actor, TerminalRule::Required);
    let now = submit(runtime, run, caller, CommandKind::RecordRefusal(refused)).await?;
    Ok(if now.refused_attempts > known { RefusalRecord::AsEvent(now.refused_attempts) } else { RefusalRecord::Counted(number) })
}

/// The number of this attempt: one more than the last one counted or recorded.
fn count(root: &Root, run: &RunId, known: u32) -> io::Result<u32> {
    let path = root.run_dir(run).join("refused");
    let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    file.lock()?;
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let number = text.trim().parse().unwrap_or(0).max(known).saturating_add(1);
    file.rewind()?;
    file.set_len(0)?;
    write!(file, "{number}")?;
    file.sync_data()?;
    Ok(number)
}
