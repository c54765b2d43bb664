//! The status of a pipeline, as in its state file, and the allowed transitions.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lifecycle {
    /// The file exists, and nothing has started.
    Initialized,
    /// Workstreams are running.
    InProgress,
    /// A person must decide, or someone stopped the pipeline.
    Paused,
    /// A workstream or a gate failed.
    Failed,
    /// All workstreams are done, and all gates have passed.
    Complete,
}

impl Lifecycle {
    pub const ALL: [Self; 5] = [Self::Initialized, Self::InProgress, Self::Paused, Self::Failed, Self::Complete];

    /// The name in a state file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Initialized => "initialized",
            Self::InProgress => "in_progress",
            Self::Paused => "paused",
            Self::Failed => "failed",
            Self::Complete => "complete",
        }
    }

    /// The status with exactly this name.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == word)
    }

    /// The statuses that may follow.
    pub fn next(self) -> &'static [Self] {
        match self {
            Self::Initialized => &[Self::InProgress],
            Self::InProgress => &[Self::Paused, Self::Failed, Self::Complete],
            Self::Paused => &[Self::InProgress, Self::Failed],
            // Someone fixed the failure: the pipeline continues or is postponed.
            Self::Failed => &[Self::InProgress, Self::Paused],
            Self::Complete => &[],
        }
    }

    /// Whether one status may replace the other. States in between may have passed too quickly to be written.
    pub fn leads_to(self, later: Self) -> bool {
        let mut reached = vec![self];
        let mut looked = 0;
        while let Some(here) = reached.get(looked).copied() {
            looked += 1;
            for next in here.next() {
                if !reached.contains(next) {
                    reached.push(*next);
                }
            }
        }
        reached.contains(&later)
    }
}

#[cfg(test)]
mod tests {
    use super::Lifecycle::{self, *};

    #[test]
    fn transitions_match_the_reference_state_machine() {
        let pairs = Lifecycle::ALL.into_iter().flat_map(|one| Lifecycle::ALL.into_iter().map(move |other| (one, other)));
        let allowed: Vec<_> = pairs.filter(|(one, other)| one.next().contains(other)).collect();
        let expected = [
            (Initialized, InProgress),
            (InProgress, Paused),
            (InProgress, Failed),
            (InProgress, Complete),
            (Paused, InProgress),
            (Paused, Failed),
            (Failed, InProgress),
            (Failed, Paused),
        ];
        assert_eq!(allowed, expected);
    }

    #[test]
    fn completion_is_final_and_nothing_returns_to_the_initial_state() {
        for status in Lifecycle::ALL {
            assert_eq!(Complete.leads_to(status), status == Complete);
            assert_eq!(status.leads_to(Initialized), status == Initialized);
            assert!(status == Complete || status.leads_to(Complete));
            assert_eq!(Lifecycle::of_word(status.as_str()), Some(status));
        }
    }
}
