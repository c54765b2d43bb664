//! Where the database is, and how it is told to people without its password.

use crate::error::StoreError;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::Host;

/// A database that can be connected to.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) config: Config,
    /// Its name in messages.
    pub(super) name: String,
}

impl Place {
    /// Reads an address. What is wrong with one is told without repeating it: it may hold a password.
    pub(super) fn new(url: &str) -> Result<Self, StoreError> {
        let mut config: Config = url.parse().map_err(|_| {
            StoreError::Io(
                "the address of the database cannot be read; write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
                    .to_owned(),
            )
        })?;
        // Whatever the network does, a lost connection is known before the lease of a driver has expired twice.
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(10));
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(Duration::from_secs(20));
        }
        config.keepalives_idle(Duration::from_secs(10));
        if config.get_application_name().is_none() {
            config.application_name("lockgate");
        }
        let name = name(&config);
        Ok(Self { config, name })
    }
}

fn name(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => config.get_hostaddrs().first().map_or_else(|| "nowhere".to_owned(), ToString::to_string),
    };
    let database = config.get_dbname().or(config.get_user()).unwrap_or("postgres");
    format!("the PostgreSQL database {database} at {host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_in_no_name_and_in_no_message() {
        let place = Place::new("postgresql://ann:s3cret@db.example:5433/work").unwrap();
        assert_eq!(place.name, "the PostgreSQL database work at db.example");
        assert!(!format!("{place:?}").contains("s3cret"));
        for wrong in ["postgresql://ann:s3cret@db.example:none/work", "s3cret", "mysql://ann:s3cret@db.example/work"] {
            let error = Place::new(wrong).unwrap_err().to_string();
            assert!(!error.contains("s3cret") && error.contains("postgresql://USER"), "{error}");
        }
    }
}
