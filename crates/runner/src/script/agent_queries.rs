//! Agent queries of a script: those that were answered, and the next one to ask.
//!
//! A worker cannot query an agent itself. It replays: a query with a recorded reply returns it, and the first one without
//! ends the evaluation. The caller then asks the agent, records the reply, and evaluates the script again.

use super::{AgentReply, MAX_AGENT_QUERIES};
use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
};

#[derive(Default)]
pub(super) struct AgentQueries {
    /// The replies to each prompt, in order; `None` if no agent can be queried.
    recorded_replies: RefCell<Option<HashMap<String, VecDeque<String>>>>,
    /// The number of recorded replies at the start.
    known: Cell<usize>,
    asked: Cell<usize>,
    wanted: RefCell<Option<String>>,
    needs_reply: Cell<bool>,
}

pub(super) enum NoReply {
    NotAvailable,
    TooMany,
    /// It must be asked now: the evaluation ends here.
    Wanted,
}

impl AgentQueries {
    pub(super) fn start(&self, agent_queries: Option<Vec<AgentReply>>) {
        self.known.set(agent_queries.as_ref().map_or(0, Vec::len));
        let recorded_replies = agent_queries.map(|agent_queries| {
            let mut recorded_replies = HashMap::<String, VecDeque<String>>::new();
            for AgentReply { prompt, text } in agent_queries {
                recorded_replies.entry(prompt).or_default().push_back(text);
            }
            recorded_replies
        });
        self.recorded_replies.replace(recorded_replies);
    }

    pub(super) fn ask(&self, prompt: String) -> Result<String, NoReply> {
        // Queries after the script has caught the end change nothing.
        if self.needs_reply() {
            return Err(NoReply::Wanted);
        }
        let mut recorded_replies = self.recorded_replies.borrow_mut();
        let Some(recorded_replies) = &mut *recorded_replies else { return Err(NoReply::NotAvailable) };
        if self.asked.get() == MAX_AGENT_QUERIES {
            return Err(NoReply::TooMany);
        }
        self.asked.set(self.asked.get() + 1);
        if let Some(text) = recorded_replies.get_mut(&prompt).and_then(VecDeque::pop_front) {
            return Ok(text);
        }
        // A script that asks something different each time it is evaluated would never end.
        if self.known.get() >= MAX_AGENT_QUERIES {
            return Err(NoReply::TooMany);
        }
        self.wanted.replace(Some(prompt));
        self.needs_reply.set(true);
        Err(NoReply::Wanted)
    }

    /// Whether a query must be answered before the script can continue.
    pub(super) fn needs_reply(&self) -> bool {
        self.needs_reply.get()
    }

    /// The prompt to send to the agent.
    pub(super) fn wanted(&self) -> Option<String> {
        self.wanted.take()
    }
}
