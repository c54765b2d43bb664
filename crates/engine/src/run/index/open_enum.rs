//! Names in the database: enums in the code, text in rows.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A closed list of values, each with its name in databases and JSON.
pub trait NamedVariants: Copy + Eq + 'static {
    const ALL: &'static [Self];

    fn as_str(self) -> &'static str;
}

/// A name as stored in a row. A newer release may have written one that this release does not know. It is kept as it is, so that
/// lists can show it, and never treated as a known one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[serde(bound = "T: NamedVariants")]
pub enum OpenEnum<T> {
    Known(T),
    /// A name that this release does not know.
    Unknown(String),
}

impl<T: NamedVariants> OpenEnum<T> {
    /// The name as stored.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(known) => known.as_str(),
            Self::Unknown(word) => word,
        }
    }

    /// The value, if this release knows it.
    pub fn known(&self) -> Option<T> {
        match self {
            Self::Known(known) => Some(*known),
            Self::Unknown(_) => None,
        }
    }

    pub fn is(&self, wanted: T) -> bool {
        self.known() == Some(wanted)
    }
}

impl<T: NamedVariants> From<T> for OpenEnum<T> {
    fn from(known: T) -> Self {
        Self::Known(known)
    }
}

impl<T: NamedVariants> From<String> for OpenEnum<T> {
    fn from(word: String) -> Self {
        match T::ALL.iter().find(|known| known.as_str() == word) {
            Some(known) => Self::Known(*known),
            None => Self::Unknown(word),
        }
    }
}

impl<T: NamedVariants> From<OpenEnum<T>> for String {
    fn from(word: OpenEnum<T>) -> Self {
        match word {
            OpenEnum::Known(known) => known.as_str().to_owned(),
            OpenEnum::Unknown(word) => word,
        }
    }
}

impl<T: NamedVariants> fmt::Display for OpenEnum<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::HoldKind;
    use crate::run::Status;
    use crate::run::event::RunKind;
    use crate::run::index::TimerKind;

    fn every_word_is_read_back<T: NamedVariants + Serialize + fmt::Debug>() {
        for known in T::ALL {
            assert_eq!(OpenEnum::from(known.as_str().to_owned()), OpenEnum::Known(*known));
            // JSON uses the same names as the database.
            assert_eq!(serde_json::to_value(known).unwrap(), known.as_str());
        }
    }

    #[test]
    fn every_stored_word_round_trips() {
        every_word_is_read_back::<Status>();
        every_word_is_read_back::<RunKind>();
        every_word_is_read_back::<HoldKind>();
        every_word_is_read_back::<TimerKind>();
    }

    #[test]
    fn an_unknown_word_of_a_newer_release_is_preserved() {
        let word = OpenEnum::<Status>::from("paused".to_owned());
        assert_eq!((word.as_str(), word.known()), ("paused", None));
        assert_eq!(serde_json::to_string(&word).unwrap(), "\"paused\"");
        assert_eq!(serde_json::from_str::<OpenEnum<Status>>("\"paused\"").unwrap(), word);
        assert!(Status::ALL.iter().all(|status| !word.is(*status)));
    }
}
