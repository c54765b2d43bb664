//! TLS to the server: which mode the address requires (`sslmode`), and how the server's certificate is checked.
//!
//! Without `sslmode`, TLS is required over a network and preferred on this machine: passwords and run data do not cross a
//! network unencrypted unless the address says so.

use futures::future::BoxFuture;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use std::error::Error as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::config::SslMode;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_postgres::{Config, Socket};
use tokio_rustls::TlsConnector;

/// The TLS mode of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Disable,
    /// TLS if the server supports it.
    Prefer,
    /// TLS with any certificate.
    Require,
    /// TLS with a certificate from a trusted authority.
    VerifyCa,
    /// The same, issued for this host.
    VerifyFull,
}

impl Mode {
    pub(super) fn named(word: &str) -> Option<Self> {
        match word {
            "disable" => Some(Self::Disable),
            "prefer" => Some(Self::Prefer),
            "require" => Some(Self::Require),
            "verify-ca" => Some(Self::VerifyCa),
            "verify-full" => Some(Self::VerifyFull),
            _ => None,
        }
    }

    /// The mode for the connection's negotiation; the certificate check does the rest.
    pub(super) fn negotiated(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }
}

/// Why TLS cannot be set up as the address requires.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsError {
    #[error(transparent)]
    Versions(Error),
    #[error("sslrootcert {file} cannot be read: {error}")]
    Unreadable { file: String, error: rustls::pki_types::pem::Error },
    #[error("sslrootcert {file} holds no certificate of an authority, as PEM")]
    NoCertificate { file: String },
    /// The system has no trusted authorities, and the address names none.
    #[error("this system trusts no authorities; name a file with sslrootcert=FILE")]
    NoAuthorities,
}

#[derive(Clone, Debug)]
pub(super) struct Tls {
    config: Arc<ClientConfig>,
    /// Whether the server agreed to TLS, so that the handshake started.
    agreed: Arc<AtomicBool>,
}

impl Tls {
    /// For a mode, and a file of authorities that replaces those the system trusts.
    pub(super) fn new(mode: Mode, authorities: Option<&str>) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        // An address that names an authority expects it to be checked.
        let mode = if mode == Mode::Require && authorities.is_some() { Mode::VerifyCa } else { mode };
        let trusted = match mode {
            Mode::Disable | Mode::Prefer | Mode::Require => None,
            Mode::VerifyCa | Mode::VerifyFull => Some(Trusted::read(authorities)?),
        };
        let check = Check { provider: provider.clone(), trusted, name: mode == Mode::VerifyFull };
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Versions)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(check))
            .with_no_client_auth();
        Ok(Self { config: Arc::new(config), agreed: Arc::default() })
    }
}

impl Tls {
    /// A copy for one connection attempt, independent of other attempts.
    pub(super) fn for_attempt(&self) -> Self {
        Self { config: self.config.clone(), agreed: Arc::default() }
    }

    /// Whether this attempt failed because the server has no TLS. The library reports that only as text; any other error
    /// before the handshake is a system error, so a non-system error before the handshake is this refusal.
    pub(super) fn was_declined(&self, config: &Config, error: &tokio_postgres::Error) -> bool {
        let wanted = config.get_ssl_mode() == SslMode::Require && !config.get_hosts().is_empty();
        let is_other = |cause: &(dyn std::error::Error + 'static)| !cause.is::<io::Error>();
        wanted && !self.agreed.load(Ordering::Relaxed) && error.as_db_error().is_none() && error.source().is_some_and(is_other)
    }
}

#[derive(Debug)]
struct Trusted {
    roots: RootCertStore,
    /// A server whose own certificate is in the file is trusted as well, because self-signed ones have no authority.
    certificates: Vec<CertificateDer<'static>>,
}

impl Trusted {
    fn read(file: Option<&str>) -> Result<Self, TlsError> {
        let certificates = match file {
            Some(file) => CertificateDer::pem_file_iter(file)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .map_err(|error| TlsError::Unreadable { file: file.to_owned(), error })?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        let mut roots = RootCertStore::empty();
        let (read, _) = roots.add_parsable_certificates(certificates.iter().cloned());
        match (read, file) {
            (0, Some(file)) => Err(TlsError::NoCertificate { file: file.to_owned() }),
            (0, None) => Err(TlsError::NoAuthorities),
            (1.., _) => Ok(Self { roots, certificates }),
        }
    }
}

/// Checks a server's certificate as strictly as the mode requires.
#[derive(Debug)]
struct Check {
    provider: Arc<CryptoProvider>,
    trusted: Option<Trusted>,
    name: bool,
}

impl ServerCertVerifier for Check {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trusted) = &self.trusted else { return Ok(ServerCertVerified::assertion()) };
        let parsed = ParsedCertificate::try_from(certificate)?;
        if !trusted.certificates.contains(certificate) {
            let algorithms = self.provider.signature_verification_algorithms.all;
            verify_server_cert_signed_by_trust_anchor(&parsed, &trusted.roots, between, now, algorithms)?;
        }
        if self.name {
            verify_server_name(&parsed, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What is wrong with a server's certificate and how to fix it; `None` if the error is about something else.
pub(super) fn explain(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let error = error.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "presents a certificate from an untrusted authority; if it is the right server, add the certificate file of \
             its authority in the address: sslrootcert=FILE"
                .to_owned()
        }
        Error::InvalidCertificate(CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }) => {
            "presents a certificate for another host; use the host name of the certificate in the address".to_owned()
        }
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "presents an expired certificate; the server needs a new one".to_owned()
        }
        other => format!("cannot be reached over TLS: {other}"),
    })
}

pub(super) struct Connecting {
    config: Arc<ClientConfig>,
    agreed: Arc<AtomicBool>,
    host: String,
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = Encrypted;
    type TlsConnect = Connecting;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> io::Result<Connecting> {
        Ok(Connecting { config: self.config.clone(), agreed: self.agreed.clone(), host: host.to_owned() })
    }
}

impl TlsConnect<Socket> for Connecting {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Encrypted>>;

    fn connect(self, stream: Socket) -> Self::Future {
        self.agreed.store(true, Ordering::Relaxed);
        Box::pin(async move {
            let name = ServerName::try_from(self.host).map_err(io::Error::other)?;
            Ok(Encrypted(TlsConnector::from(self.config).connect(name, stream).await?))
        })
    }
}

pub(super) struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    /// Passwords are not bound to the certificate; `verify-full` already rules out a man in the middle.
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
