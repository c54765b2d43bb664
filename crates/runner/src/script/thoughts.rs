//! What an agent was asked and said, and what is still to be asked.
//!
//! A worker cannot ask an agent. It replays: a question that was answered gets its answer, and one that was not ends
//! the evaluation. Whoever called asks the agent, remembers the answer, and evaluates again.

use super::{THOUGHTS_MOST, Thought};
use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
};

/// The questions of one evaluation.
#[derive(Default)]
pub(super) struct Thoughts {
    /// The answers to each prompt, in the order in which they were given; nothing where no agent can be asked.
    remembered: RefCell<Option<HashMap<String, VecDeque<String>>>>,
    /// How many answers there were at the beginning.
    known: Cell<usize>,
    asked: Cell<usize>,
    wanted: RefCell<Option<String>>,
    is_wanting: Cell<bool>,
}

/// Why a question has no answer.
pub(super) enum Unanswered {
    /// There is nobody to ask.
    NotAvailable,
    /// Too much was asked already.
    TooMany,
    /// It is to be asked now: the evaluation ends here.
    Wanted,
}

impl Thoughts {
    /// Begins the evaluation.
    pub(super) fn begin(&self, thoughts: Option<Vec<Thought>>) {
        self.known.set(thoughts.as_ref().map_or(0, Vec::len));
        let remembered = thoughts.map(|thoughts| {
            let mut remembered = HashMap::<String, VecDeque<String>>::new();
            for Thought { prompt, text } in thoughts {
                remembered.entry(prompt).or_default().push_back(text);
            }
            remembered
        });
        self.remembered.replace(remembered);
    }

    /// The answer to a prompt.
    pub(super) fn ask(&self, prompt: String) -> Result<String, Unanswered> {
        // What a script asks after it caught the end changes nothing.
        if self.is_wanting() {
            return Err(Unanswered::Wanted);
        }
        let mut remembered = self.remembered.borrow_mut();
        let Some(remembered) = &mut *remembered else { return Err(Unanswered::NotAvailable) };
        if self.asked.get() == THOUGHTS_MOST {
            return Err(Unanswered::TooMany);
        }
        self.asked.set(self.asked.get() + 1);
        if let Some(text) = remembered.get_mut(&prompt).and_then(VecDeque::pop_front) {
            return Ok(text);
        }
        // One that asks something else each time it is evaluated would never come to an end.
        if self.known.get() >= THOUGHTS_MOST {
            return Err(Unanswered::TooMany);
        }
        self.wanted.replace(Some(prompt));
        self.is_wanting.set(true);
        Err(Unanswered::Wanted)
    }

    /// Whether a question is to be asked before the script can go on.
    pub(super) fn is_wanting(&self) -> bool {
        self.is_wanting.get()
    }

    /// The prompt that is to be asked.
    pub(super) fn wanted(&self) -> Option<String> {
        self.wanted.take()
    }
}
