//! Checks of the notification command and of undelivered notifications.

use super::Check;
use super::agents::can_start;
use lockgate::phrases::first_line;
use lockgate_engine::plural::counted;
use lockgate_runner::config::Config;
use lockgate_store::{OutboxEntry, OutboxFilter, Store};
use std::path::Path;

const CHECK: &str = "notify";

/// Whether the program of `notify.command` exists. This cannot be checked if the command starts with shell syntax.
pub(super) fn command(config: &Config, root: &Path) -> Option<Check> {
    let command = config.notify.command.as_ref()?;
    let program = command.run.split_whitespace().next().unwrap_or_default();
    let is_plain = program.chars().all(|character| character.is_alphanumeric() || "-_./+~".contains(character));
    Some(match !is_plain || can_start(program, root) {
        true => Check::ok(CHECK, format!("`notify.command` is `{}`", first_line(&command.run))),
        false => Check::failed(
            CHECK,
            format!("`notify.command`: `{program}` is not found"),
            "install it, make it executable, or correct `notify.command` in the settings; it runs in the root",
        ),
    })
}

/// Notifications that were given up, or whose delivery failed so far.
pub(super) async fn outbox(store: &dyn Store, is_configured: bool) -> Vec<Check> {
    let mut checks = Vec::new();
    // A database that cannot be read is reported elsewhere.
    let given_up = store.outbox(OutboxFilter::GivenUp, usize::MAX).await.unwrap_or_default();
    if let Some(last) = given_up.last() {
        let found = format!("{} given up, {}", were(given_up.len()), latest(last));
        let fix = "correct `notify.command` in the settings; these are not sent again and are removed after 30 days";
        checks.push(Check::failed(CHECK, found, fix));
    }
    let waiting = store.outbox(OutboxFilter::Undelivered, usize::MAX).await.unwrap_or_default();
    let failing: Vec<&OutboxEntry> = waiting.iter().filter(|entry| entry.attempts > 0).collect();
    if let Some(last) = failing.last() {
        let found = format!("{} not delivered yet, {}", were(failing.len()), latest(last));
        let fix = "correct `notify.command` in the settings; later commands retry them, for example `lockgate tick`";
        checks.push(Check::failed(CHECK, found, fix));
    } else if !waiting.is_empty() && !is_configured {
        let found = format!("{} not delivered, and the settings have no `notify.command`", were(waiting.len()));
        checks.push(Check::failed(CHECK, found, "restore `notify.command` in the settings to send them"));
    }
    checks
}

fn were(count: usize) -> String {
    format!("{} {}", counted(count, "notification"), if count == 1 { "was" } else { "were" })
}

fn latest(entry: &OutboxEntry) -> String {
    let (id, attempts) = (&entry.row.notice, counted(entry.attempts, "attempt"));
    format!("the latest, {id}, after {attempts}: {}", first_line(entry.error.as_deref().unwrap_or("unknown reason")))
}
