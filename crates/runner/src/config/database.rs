//! The database setting.

use lockgate_engine::spec::document::Value;
use lockgate_engine::spec::problem::Problem;
use std::fmt;

/// The environment variable with the database address. It may contain a password, so no task inherits it.
pub const DATABASE_VARIABLE: &str = "LOCKGATE_DATABASE_URL";

/// The address of a database. It may contain a password and is not shown with the other settings.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// Error messages never repeat the address.
    pub(super) fn of(value: &Value<'_>) -> Result<Self, Problem> {
        let url = value.text().map(|text| Self(text.to_owned()));
        url.ok_or_else(|| {
            let help = "write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE".to_owned();
            value.problem("`database` must be the address of a database", Some(help))
        })
    }

    /// The address as it can be shown.
    pub fn without_password(&self) -> String {
        super::effective::without_password(&self.0)
    }

    /// The address itself, for connecting.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl(_)")
    }
}
