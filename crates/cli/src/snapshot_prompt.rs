//! Asks before a run goes back to a snapshot, or continues in a project that has changed.

use crate::error::CommandError;
use crate::exit::Exit;
use crate::open::Project;
use crate::print;
use crate::prompt::confirm;
use lockgate::code::Code;
use lockgate::recovery::PlannedRewind;
use lockgate::sanitize;
use lockgate::verdict::{Action, Reason, Verdict};
use lockgate::view::resume_command;
use lockgate_engine::id::{RunId, SnapshotId};
use lockgate_engine::plural::counted;
use lockgate_engine::run::command::Channel;
use lockgate_runner::load::load;

/// How many lines of each kind of consequence are shown.
const SHOWN: usize = 20;

/// Goes back to a snapshot after a person has confirmed. Returns an exit if they have not.
pub(crate) async fn go_back(
    project: &Project,
    named: &str,
    from: &str,
    accepted: bool,
    may_ask: bool,
) -> Result<Option<Exit>, CommandError> {
    let planned = project.plan_rewind(named, from).await?;
    let (run, id) = (planned.run.id.clone(), planned.snapshot.id.clone());
    if let Some(exit) = settle(&run, &planned.verdict, Some(&id), accepted, may_ask).await? {
        return Ok(Some(exit));
    }
    if planned.is_current() {
        print::note(format_args!("nothing has happened since {id}"));
        return Ok(None);
    }
    print::talk(&described(&planned));
    if !accepted {
        if !(may_ask && print::is_interactive()) {
            let error = CommandError::new(Code::ChangesNotAccepted, format!("going back to {id} needs your confirmation"));
            let command = resume_command(run.as_str(), ["--from", id.as_str(), "--accept-changes"]);
            return Err(error.help(format!("confirm with `{command}`")));
        }
        if let Some(exit) = confirm(&format!("Go back to {id}?"), None).await?.declined() {
            return Ok(Some(exit));
        }
    }
    let channel = if accepted { Channel::Command } else { Channel::Prompt };
    project.rewind(planned, project.caller(channel)).await?;
    print::say(format_args!("run {run} is back at {id}"));
    Ok(None)
}

/// What going back does, as text.
fn described(planned: &PlannedRewind) -> String {
    let found = &planned.consequences;
    let mut text = format!("going back to {}:\n", planned.snapshot.id);
    let mut list = |what: &str, items: Vec<String>| {
        if items.is_empty() {
            return;
        }
        text.push_str(&format!("  {what}: {}", items.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ")));
        if items.len() > SHOWN {
            text.push_str(&format!(" and {} more", items.len() - SHOWN));
        }
        text.push('\n');
    };
    let mut again: Vec<&String> = found.runs_again.iter().collect();
    let workflow = &planned.run.workflow;
    again.sort_by_key(|address| address.split_once('/').and_then(|(phase, _)| workflow.position(phase)));
    list("runs again", again.into_iter().map(|address| sanitize::line(address).into_owned()).collect());
    list("answers that no longer count", found.voided_answers.iter().map(|answer| answer.hold.to_string()).collect());
    list("questions that are closed", found.voided_holds.iter().map(ToString::to_string).collect());
    list("questions that are asked again", found.asked_again.iter().map(ToString::to_string).collect());
    text.push_str("  files in the project are not touched\n");
    text
}

/// Checks whether a run can continue where it is. Returns an exit if a person says no.
pub(crate) async fn check(project: &Project, run: &RunId, accepted: bool, may_ask: bool) -> Result<Option<Exit>, CommandError> {
    let state = load(project.store(), run).await?;
    match project.resume_verdict(&state).await {
        Some(verdict) => settle(run, &verdict, None, accepted, may_ask).await,
        None => Ok(None),
    }
}

/// Acts on a verdict: warns, asks or refuses.
async fn settle(
    run: &RunId,
    verdict: &Verdict,
    from: Option<&SnapshotId>,
    accepted: bool,
    may_ask: bool,
) -> Result<Option<Exit>, CommandError> {
    let say = |reason: &Reason| print::warn(sanitize::line(&reason.text));
    match verdict.action {
        Action::Resume => return Ok(None),
        Action::ProceedWithWarning => {
            verdict.reasons.iter().for_each(say);
            return Ok(None);
        }
        Action::PromptUser | Action::StartFresh if accepted => {
            verdict.reasons.iter().for_each(say);
            return Ok(None);
        }
        Action::PromptUser | Action::StartFresh => {}
    }
    if may_ask && print::is_interactive() && verdict.action == Action::PromptUser {
        verdict.reasons.iter().for_each(say);
        return Ok(confirm("Continue anyway?", None).await?.declined());
    }
    let what = match verdict.action {
        Action::StartFresh => "cannot continue in this state of the project",
        Action::Resume | Action::ProceedWithWarning | Action::PromptUser => {
            "needs your decision, because the project has changed"
        }
    };
    let reasons: Vec<String> = verdict.reasons.iter().map(|reason| sanitize::line(&reason.text).into_owned()).collect();
    let message = format!("run {run} {what} ({}): {}", counted(reasons.len() as u64, "reason"), reasons.join("; "));
    let again = resume_command(run.as_str(), ["--start-fresh"]);
    let from = from.into_iter().flat_map(|id| ["--from", id.as_str()]);
    let anyway = resume_command(run.as_str(), from.chain(["--accept-changes"]));
    Err(CommandError::new(Code::ChangesNotAccepted, message)
        .help(format!("start a new run with `{again}`"))
        .help(format!("or continue nevertheless with `{anyway}`")))
}
