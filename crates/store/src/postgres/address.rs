//! The address of a database, and its display name without the password.

use super::tls::{Mode, Tls};
use crate::error::StoreError;
use std::net::IpAddr;
use std::time::Duration;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

#[derive(Clone, Debug)]
pub(super) struct Address {
    pub(super) config: Config,
    pub(super) tls: Tls,
    /// Its name in messages.
    pub(super) name: String,
}

impl Address {
    /// Parses an address. Error messages never repeat it, because it may contain a password.
    pub(super) fn new(url: &str) -> Result<Self, StoreError> {
        let Encryption { rest, mode, authorities } = Encryption::of(url)?;
        let mut config: Config = rest.parse().map_err(|_| {
            StoreError::Io(
                "the address of the database cannot be read; write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
                    .to_owned(),
            )
        })?;
        let mode = match (host_kind(&config), mode) {
            // Only the local system can read what passes through a Unix socket.
            (HostKind::Socket, _) => Mode::Disable,
            (HostKind::Loopback, mode) => mode.unwrap_or(Mode::Prefer),
            (HostKind::Network, mode) => mode.unwrap_or(Mode::Require),
        };
        config.ssl_mode(mode.negotiated());
        let tls = Tls::new(mode, authorities.as_deref()).map_err(|error| StoreError::Io(error.to_string()))?;
        // A lost connection must be detected before a driver's lease could expire twice, whatever the network does.
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
        Ok(Self { config, tls, name })
    }

    /// Whether the address disables encryption for a connection over a network.
    pub(super) fn in_the_clear(&self) -> bool {
        self.config.get_ssl_mode() == SslMode::Disable && host_kind(&self.config) != HostKind::Socket
    }
}

/// The TLS parameters of an address, and the rest of it.
struct Encryption {
    rest: String,
    mode: Option<Mode>,
    authorities: Option<String>,
}

impl Encryption {
    fn of(url: &str) -> Result<Self, StoreError> {
        let Some((before, parameters)) = url.split_once('?') else {
            return Ok(Self { rest: url.to_owned(), mode: None, authorities: None });
        };
        let (mut mode, mut authorities, mut others) = (None, None, Vec::new());
        for parameter in parameters.split('&') {
            match parameter.split_once('=') {
                Some(("sslmode", word)) => {
                    let message =
                        "sslmode in the address of the database is one of disable, prefer, require, verify-ca, verify-full";
                    mode = Some(Mode::named(word).ok_or_else(|| StoreError::Io(message.to_owned()))?);
                }
                Some(("sslrootcert", "system")) => authorities = None,
                Some(("sslrootcert", file)) => {
                    let message = "sslrootcert in the address of the database is not a valid path; write % as %25";
                    authorities = Some(decoded(file).ok_or_else(|| StoreError::Io(message.to_owned()))?);
                }
                Some(_) | None => others.push(parameter),
            }
        }
        let rest = if others.is_empty() { before.to_owned() } else { format!("{before}?{}", others.join("&")) };
        Ok(Self { rest, mode, authorities })
    }
}

/// Decodes percent-encoding.
fn decoded(text: &str) -> Option<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).ok()
}

/// How the server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum HostKind {
    Socket,
    Loopback,
    Network,
}

/// How the server is reached; with several hosts, the most remote one.
fn host_kind(config: &Config) -> HostKind {
    let near = |address: IpAddr| if address.is_loopback() { HostKind::Loopback } else { HostKind::Network };
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Unix(_) => HostKind::Socket,
        Host::Tcp(host) if host == "localhost" => HostKind::Loopback,
        Host::Tcp(host) => host.parse().map_or(HostKind::Network, near),
    });
    let addresses = config.get_hostaddrs().iter().copied().map(near);
    // An address without a host names a server on this machine.
    hosts.chain(addresses).max().unwrap_or(HostKind::Loopback)
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
    fn network_connections_are_encrypted_unless_the_url_disables_tls() {
        for (url, asked) in [
            ("postgresql://ann@db.example/work", SslMode::Require),
            ("postgresql://ann@10.0.0.1/work?connect_timeout=3", SslMode::Require),
            ("postgresql://ann@db.example/work?sslmode=prefer", SslMode::Prefer),
            ("postgresql://ann@db.example/work?sslmode=disable&connect_timeout=3", SslMode::Disable),
            ("postgresql://ann@localhost/work", SslMode::Prefer),
            ("postgresql://ann@127.0.0.1/work", SslMode::Prefer),
            ("postgresql://ann@localhost/work?sslmode=require", SslMode::Require),
            ("postgresql://ann@localhost,db.example/work", SslMode::Require),
            ("postgresql://ann@%2Ftmp/work?sslmode=require", SslMode::Disable),
        ] {
            assert_eq!(Address::new(url).unwrap().config.get_ssl_mode(), asked, "{url}");
        }
    }

    #[test]
    fn invalid_tls_parameters_are_reported() {
        for (parameters, message) in [
            ("sslmode=full", "disable, prefer, require, verify-ca, verify-full"),
            ("sslmode=verify-full&sslrootcert=%2Fno%2Fsuch.crt", "sslrootcert /no/such.crt cannot be read"),
            ("sslmode=verify-ca&sslrootcert=%2Fdev%2Fnull", "sslrootcert /dev/null holds no certificate"),
            ("sslrootcert=100%", "write % as %25"),
        ] {
            let error = Address::new(&format!("postgresql://ann:s3cret@db.example/work?{parameters}")).unwrap_err().to_string();
            assert!(error.contains(message) && !error.contains("s3cret"), "{error}");
        }
    }

    #[test]
    fn passwords_appear_in_no_name_or_message() {
        let address = Address::new("postgresql://ann:s3cret@db.example:5433/work").unwrap();
        assert_eq!(address.name, "the PostgreSQL database work at db.example");
        assert!(!format!("{address:?}").contains("s3cret"));
        for wrong in ["postgresql://ann:s3cret@db.example:none/work", "s3cret", "mysql://ann:s3cret@db.example/work"] {
            let error = Address::new(wrong).unwrap_err().to_string();
            assert!(!error.contains("s3cret") && error.contains("postgresql://USER"), "{error}");
        }
    }
}
