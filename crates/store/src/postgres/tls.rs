//! TLS to the server: how much of it the address asks for (`sslmode`), and what of the server's certificate is checked.
//!
//! An address that says nothing asks for TLS, save on this machine, where it is used if the server has it: a password and the facts of runs
//! do not cross a network in the clear unless somebody says so.

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

/// How much TLS an address asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// None.
    Disable,
    /// Whatever the server has.
    Prefer,
    /// TLS, with any certificate.
    Require,
    /// TLS, with a certificate of an authority that is trusted.
    VerifyCa,
    /// The same, made for this server.
    VerifyFull,
}

impl Mode {
    /// Reads the word in an address.
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

    /// What the connection is asked for; the rest is up to the certificate.
    pub(super) fn negotiated(self) -> SslMode {
        match self {
            Self::Disable => SslMode::Disable,
            Self::Prefer => SslMode::Prefer,
            Self::Require | Self::VerifyCa | Self::VerifyFull => SslMode::Require,
        }
    }
}

/// Why connections cannot be encrypted as the address asks for.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsError {
    /// No version of TLS is available.
    #[error(transparent)]
    Versions(Error),
    /// The file of authorities cannot be read.
    #[error("sslrootcert {file} cannot be read: {error}")]
    Unreadable {
        /// Which.
        file: String,
        /// Why.
        error: rustls::pki_types::pem::Error,
    },
    /// The file of authorities holds none.
    #[error("sslrootcert {file} holds no certificate of an authority, as PEM")]
    NoCertificate {
        /// Which.
        file: String,
    },
    /// The system has no authorities, and none are named.
    #[error("this system trusts no authorities; name a file with sslrootcert=FILE")]
    NoAuthorities,
}

/// Makes connections encrypted.
#[derive(Clone, Debug)]
pub(super) struct Tls {
    config: Arc<ClientConfig>,
    /// Whether a server agreed to TLS, so that the handshake began.
    agreed: Arc<AtomicBool>,
}

impl Tls {
    /// For a mode, and a file with the certificates of authorities in place of those that the system trusts.
    pub(super) fn new(mode: Mode, authorities: Option<&str>) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        // Whoever names an authority means it to be looked at.
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
    /// The same for one attempt to connect, which knows nothing of other attempts.
    pub(super) fn for_attempt(&self) -> Self {
        Self { config: self.config.clone(), agreed: Arc::default() }
    }

    /// Whether this attempt failed because the server has no TLS. The library reports that as a text, and all that it reports before
    /// the handshake besides are errors of the system; so what fails before the handshake and is no such error is the refusal.
    pub(super) fn was_declined(&self, config: &Config, error: &tokio_postgres::Error) -> bool {
        let wanted = config.get_ssl_mode() == SslMode::Require && !config.get_hosts().is_empty();
        let is_other = |cause: &(dyn std::error::Error + 'static)| !cause.is::<io::Error>();
        wanted && !self.agreed.load(Ordering::Relaxed) && error.as_db_error().is_none() && error.source().is_some_and(is_other)
    }
}

/// Authorities that are trusted.
#[derive(Debug)]
struct Trusted {
    roots: RootCertStore,
    /// A server whose own certificate is in the file is trusted, too: self-made ones have no authority.
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

/// Checks a server's certificate as far as the address asks for.
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

/// What is wrong with a server's certificate, and what to do about it; nothing when an error is about something else.
pub(super) fn explain(error: &(dyn std::error::Error + 'static)) -> Option<String> {
    let error = error.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref::<Error>()?;
    Some(match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "shows a certificate of an authority that is not trusted here; if it is the right server, name the file with the certificate of \
             its authority in the address: sslrootcert=FILE"
                .to_owned()
        }
        Error::InvalidCertificate(CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }) => {
            "shows a certificate that was made for another host; write the host in the address as the certificate has it".to_owned()
        }
        Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "shows a certificate that has expired; the server needs a new one".to_owned()
        }
        other => format!("cannot be reached by TLS: {other}"),
    })
}

/// Makes one connection encrypted.
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

/// An encrypted connection.
pub(super) struct Encrypted(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for Encrypted {
    /// Passwords are not bound to the certificate; with `verify-full` nobody stands between.
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
