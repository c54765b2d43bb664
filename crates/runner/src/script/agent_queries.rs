//! What an agent was asked and said, and what is still to be asked.
//!
//! A worker cannot ask an agent. It replays: a question that was answered gets its answer, and one that was not ends
//! the evaluation. Whoever called asks the agent, remembers the answer, and evaluates again.

use super::{AgentReply, MAX_AGENT_QUERIES};
use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
};

/// The questions of one evaluation.
#[derive(Default)]
pub(super) struct AgentQueries {
    /// The answers to each prompt, in the order in which they were given; nothing where no agent can be asked.
    recorded_replies: RefCell<Option<HashMap<String, VecDeque<String>>>>,
    /// How many answers there were at the beginning.
    known: Cell<usize>,
    asked: Cell<usize>,
    wanted: RefCell<Option<String>>,
    needs_reply: Cell<bool>,
}

/// Why a question has no answer.
pub(super) enum NoReply {
    /// There is nobody to ask.
    NotAvailable,
    /// Too much was asked already.
    TooMany,
    /// It is to be asked now: the evaluation ends here.
    Wanted,
}

impl AgentQueries {
    /// Begins the evaluation.
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

    /// The answer to a prompt.
    pub(super) fn ask(&self, prompt: String) -> Result<String, NoReply> {
        // What a script asks after it caught the end changes nothing.
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
        // One that asks something else each time it is evaluated would never come to an end.
        if self.known.get() >= MAX_AGENT_QUERIES {
            return Err(NoReply::TooMany);
        }
        self.wanted.replace(Some(prompt));
        self.needs_reply.set(true);
        Err(NoReply::Wanted)
    }

    /// Whether a question is to be asked before the script can go on.
    pub(super) fn needs_reply(&self) -> bool {
        self.needs_reply.get()
    }

    /// The prompt that is to be asked.
    pub(super) fn wanted(&self) -> Option<String> {
        self.wanted.take()
    }
}
