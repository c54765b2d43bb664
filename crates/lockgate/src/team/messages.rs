//! Sending, reading and acknowledging messages.

use super::view::MessageView;
use crate::code::Code;
use crate::error::Error;
use crate::project::Project;
use lockgate_engine::id::{MessageId, RunId};
use lockgate_engine::run::command::Caller;
use lockgate_engine::run::team::{Message, MessageDraft, MessageKind, Priority, TeamRefusal, TeamRequest};
use lockgate_engine::run::{Refusal, Run};
use lockgate_engine::stored_value::StoredValue;
use lockgate_runner::load::load;
use serde_json::Value;

/// A message to send.
#[derive(Clone, Debug, PartialEq)]
pub struct NewMessage {
    /// The type.
    pub kind: MessageKind,
    /// The recipient, for a REQUEST or HANDOFF.
    pub to: Option<String>,
    /// The message that a RESPONSE responds to.
    pub reply_to: Option<MessageId>,
    /// The priority.
    pub priority: Priority,
    /// One line for lists and logs.
    pub summary: String,
    /// JSON for the recipient.
    pub payload: Value,
    /// For an ESCALATE: the answers that a person can choose from.
    pub options: Vec<String>,
}

impl Project {
    /// Sends a message in a run.
    pub async fn send_message(&self, run: &RunId, new: NewMessage, caller: Caller) -> Result<MessageView, Error> {
        let summary = new.summary.trim().to_owned();
        if summary.is_empty() {
            return Err(Error::new(Code::InvalidUsage, "the summary is empty").help("say in one line what the message is about"));
        }
        let masks = self.team_masks(run).await?;
        let summary = masks.mask_text(&summary).into_owned();
        let new = NewMessage {
            payload: masks.mask_value(new.payload),
            options: new.options.iter().map(|option| masks.mask_text(option).into_owned()).collect(),
            ..new
        };
        let (payload, stored) = StoredValue::keep(&new.payload);
        let values: Vec<_> = stored.into_iter().collect();
        let draft = MessageDraft {
            kind: new.kind,
            to: new.to,
            correlation: new.reply_to,
            priority: new.priority,
            summary,
            payload,
            options: new.options,
        };
        let (run, _) = self.request(run, TeamRequest::Send(draft), &values, caller).await?;
        // The state is the one that this commit produced, so its last message is the new one.
        let sent = run.team.iter().flat_map(|team| &team.messages).next_back();
        let sent = sent.ok_or_else(|| Error::new(Code::InternalError, "the message was not recorded"))?;
        Ok(MessageView::new(sent, new.payload))
    }

    /// Acknowledges a message as its recipient. Returns whether it was still pending.
    pub async fn acknowledge_message(&self, run: &RunId, message: &MessageId, caller: Caller) -> Result<bool, Error> {
        Ok(self.request(run, TeamRequest::Acknowledge(message.clone()), &[], caller).await?.1)
    }

    /// The messages of a run, in the order in which they were sent.
    pub async fn messages(&self, run: &RunId) -> Result<Vec<MessageView>, Error> {
        let run = load(self.store(), run).await?;
        let mut views = Vec::new();
        for message in run.team.iter().flat_map(|team| &team.messages) {
            views.push(self.message_view(message).await?);
        }
        Ok(views)
    }

    /// A message of a run.
    pub async fn message(&self, run: &RunId, id: &MessageId) -> Result<MessageView, Error> {
        let state: Run = load(self.store(), run).await?;
        let found = state.team.as_ref().and_then(|team| team.message(id.as_str()));
        let found = found.ok_or_else(|| Error::from(Refusal::from(TeamRefusal::MessageNotFound(id.clone()))))?;
        self.message_view(found).await
    }

    async fn message_view(&self, message: &Message) -> Result<MessageView, Error> {
        Ok(MessageView::new(message, self.team_value(&message.payload).await?))
    }

    /// A payload or the content of an entry.
    pub(super) async fn team_value(&self, value: &StoredValue) -> Result<Value, Error> {
        let text = match value {
            StoredValue::Inline(text) => text.clone(),
            StoredValue::Stored { digest, .. } => {
                let found = self.store().values(&[*digest]).await?.into_iter().next().flatten();
                let missing = || Error::new(Code::StoredValueMissing, format!("the stored value {digest} is missing"));
                String::from_utf8_lossy(&found.ok_or_else(missing)?).into_owned()
            }
        };
        serde_json::from_str(&text)
            .map_err(|error| Error::new(Code::IntegrityError, format!("a stored value is not JSON: {error}")))
    }
}
