//! Records what a person chose at the prompt, and prints what became of it.

use crate::error::CommandError;
use crate::open::Project;
use crate::{print, progress};
use lockgate::answer::{Answer, Answered};
use lockgate::code::Code;
use lockgate::human_time::localize;
use lockgate::sanitize;
use lockgate::select::{self, HoldName};
use lockgate_engine::hold::Hold;
use lockgate_engine::id::OptionId;
use lockgate_engine::run::Refusal;
use lockgate_engine::run::command::Caller;

/// Records the choice, bound to the revision that was shown. Returns whether it is recorded: another process may have answered the hold
/// meanwhile, or its content may have changed.
pub(crate) async fn record(
    project: &Project,
    caller: Caller,
    hold: &Hold,
    option: OptionId,
    feedback: Option<String>,
) -> Result<bool, CommandError> {
    let label = hold.choice(&option).map_or(option.as_str(), |choice| choice.label.as_str());
    let text = progress::answered(label, Some(caller.actor()), feedback.as_deref());
    let named = HoldName { id: hold.id.to_string(), revision: None };
    let row = select::hold(project.store(), &named).await?.row;
    let answer = Answer { revision: Some(hold.revision), option: option.to_string(), feedback };
    match project.answer(&row, answer, caller).await {
        Ok(Answered::Recorded { .. }) => {
            print::talk(&text);
            return Ok(true);
        }
        Ok(Answered::Before { by, at }) => note(&Refusal::AlreadyAnswered { by, at }.to_string()),
        Err(error)
            if [Code::AnswerConflict, Code::StaleRevision, Code::HoldClosed, Code::HoldNotFound].contains(&error.code()) =>
        {
            note(error.message());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(false)
}

fn note(message: &str) {
    print::note(sanitize::line(&localize(message)));
}
