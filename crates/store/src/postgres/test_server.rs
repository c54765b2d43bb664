//! For tests: a private PostgreSQL server on a socket in a temporary directory, which ends with the process that started it.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// Long enough for a server to start on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const USER: &str = "lockgate";

/// Waits for the end of its standard input, which means that the parent process has ended for any reason; then stops the
/// server and removes its directory.
const GUARD: &str = "program=$1; folder=$2; shift 2; \"$program\" -D \"$folder/data\" -k \"$folder\" -c max_connections=300 \
    -c shared_buffers=32MB \"$@\" >\"$folder/log\" 2>&1 & server=$!; \
    read -r _; kill -QUIT $server; wait $server; rm -rf \"$folder\"";

/// Creates a certificate authority, and a certificate for `localhost`.
const CERTIFY: &str = "set -e; umask 077; key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'; \
    openssl req -x509 $key -keyout ca.key -out ca.crt -subj /CN=authority -days 30; \
    openssl req $key -keyout server.key -out server.csr -subj /CN=localhost; echo subjectAltName=DNS:localhost >names; \
    openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -days 30 -extfile names; \
    chmod 755 .; chmod 644 ca.crt server.crt";

/// The password of the user, if the server requires one.
pub const PASSWORD: &str = "s3cret";

#[derive(Debug)]
pub struct Server {
    folder: PathBuf,
    /// Also part of its socket's name.
    port: u16,
    made: AtomicUsize,
    /// Its standard input stays open for as long as this process lives.
    _guard: Child,
}

/// The server of this process, started on first use.
///
/// # Panics
/// If it cannot be started: the message says what to install.
pub fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        Server::start(Reach::Socket, &std::env::temp_dir(), Disk::Spared).unwrap_or_else(|problem| panic!("{problem}"))
    })
}

/// A server on loopback that requires TLS and a password, started on first use.
///
/// # Panics
/// If it cannot be started: the message says what to install.
pub fn encrypted_server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let start = || {
        let server = Server::start(Reach::EncryptedLoopback, &std::env::temp_dir(), Disk::Spared)?;
        server.query("postgres", &format!("ALTER ROLE {USER} PASSWORD '{PASSWORD}'"))?;
        Ok(server)
    };
    SERVER.get_or_init(|| start().unwrap_or_else(|problem: ServerError| panic!("{problem}")))
}

/// Why a server could not be started or a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error("{what}: {error}")]
    Io { what: String, error: io::Error },
    #[error("{program} failed: {printed}")]
    Failed {
        program: &'static str,
        /// What it printed.
        printed: String,
    },
    #[error("PostgreSQL did not start: {error}\n{log}")]
    NotStarted {
        /// What the last attempt came to.
        error: Box<Self>,
        /// What the server wrote.
        log: String,
    },
    #[error("{0:?}")]
    Refused(#[from] tokio_postgres::Error),
    #[error("the thread ended")]
    Panicked,
    #[error("PostgreSQL is not installed; install it: sudo apt-get install postgresql")]
    NotInstalled,
    #[error("there is neither a user postgres nor a user nobody to run PostgreSQL as")]
    NoUser,
}

fn about(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> ServerError {
    let what = what.to_string();
    move |error| ServerError::Io { what, error }
}

/// Whether commits are synced. Tests kill processes in every way, but not the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Disk {
    Synced,
    Spared,
}

/// How a server can be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    Socket,
    EncryptedLoopback,
}

impl Server {
    /// Starts a server with synced commits in a directory inside `parent`. Other users must be able to reach that directory
    /// if this one may not run the server.
    pub fn start_in(parent: &Path) -> Result<Self, ServerError> {
        Self::start(Reach::Socket, parent, Disk::Synced)
    }

    fn start(reach: Reach, parent: &Path, disk: Disk) -> Result<Self, ServerError> {
        let programs = programs()?;
        let folder = parent.join(format!("lockgate-pg-{:016x}", rand::random::<u64>()));
        fs::create_dir(&folder).map_err(about(folder.display()))?;
        let owner = unprivileged()?;
        if let Some((user, group)) = owner {
            chown(&folder, Some(user), Some(group)).map_err(about(folder.display()))?;
        }
        let mut initialise = Command::new(programs.join("initdb"));
        initialise
            .args(["--no-sync", "--auth=trust", "--encoding=UTF8", "--locale=C", "-U", USER, "-D"])
            .arg(folder.join("data"));
        let made = as_owner(&mut initialise, owner, &folder).output().map_err(about("initdb"))?;
        if !made.status.success() {
            return Err(failed("initdb", &made));
        }
        let port = match reach {
            Reach::Socket => 5432,
            Reach::EncryptedLoopback => free_port()?,
        };
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "sh"]).arg(programs.join("postgres")).arg(&folder).args(["-p", &port.to_string()]);
        guard.args(["-c", if disk == Disk::Synced { "fsync=on" } else { "fsync=off" }]);
        match reach {
            Reach::Socket => drop(guard.args(["-c", "listen_addresses="])),
            Reach::EncryptedLoopback => {
                let mut certify = Command::new("sh");
                let made = as_owner(certify.args(["-c", CERTIFY]), owner, &folder).output();
                let made = made.map_err(about("sh"))?;
                if !made.status.success() {
                    return Err(failed("openssl", &made));
                }
                let who = "local all all trust\nhostssl all all all scram-sha-256\n";
                fs::write(folder.join("data/pg_hba.conf"), who).map_err(about("pg_hba.conf"))?;
                for setting in
                    ["listen_addresses=localhost", "ssl=on", "ssl_cert_file=../server.crt", "ssl_key_file=../server.key"]
                {
                    guard.args(["-c", setting]);
                }
            }
        }
        guard.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let guard = as_owner(&mut guard, owner, &folder).spawn().map_err(about("sh"))?;
        let server = Self { folder, port, made: AtomicUsize::new(0), _guard: guard };
        server.wait()?;
        Ok(server)
    }

    fn wait(&self) -> Result<(), ServerError> {
        let begun = Instant::now();
        loop {
            match self.query("postgres", "SELECT 1") {
                Ok(()) => return Ok(()),
                Err(error) if begun.elapsed() > START_TIMEOUT => {
                    let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                    return Err(ServerError::NotStarted { error: Box::new(error), log });
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
    }

    /// The address of a new, empty database.
    ///
    /// # Panics
    /// If it cannot be created.
    pub fn database(&self) -> String {
        // Concurrent creations would block each other on the template.
        static MAKING: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        let name = format!("test{}", self.made.fetch_add(1, Ordering::Relaxed));
        self.query("postgres", &format!("CREATE DATABASE {name}")).unwrap_or_else(|error| panic!("{name}: {error}"));
        self.url(&name)
    }

    /// Executes statements in the database at this address, bypassing Lockgate.
    ///
    /// # Panics
    /// If they fail.
    pub fn perform(&self, url: &str, statements: &str) {
        let name = url.split('/').nth(3).and_then(|rest| rest.split('?').next()).unwrap_or("postgres");
        self.query(name, statements).unwrap_or_else(|error| panic!("{statements}: {error}"));
    }

    fn url(&self, database: &str) -> String {
        let folder = self.folder.to_string_lossy().replace('%', "%25").replace('/', "%2F");
        format!("postgresql://{USER}@{folder}:{}/{database}", self.port)
    }

    /// The address of a new database over TCP, with this host name and these parameters.
    pub fn database_at(&self, host: &str, parameters: &str) -> String {
        let url = self.database();
        let name = url.rsplit('/').next().unwrap_or_default();
        format!("postgresql://{USER}:{PASSWORD}@{host}:{}/{name}?{parameters}", self.port)
    }

    /// The path of the authority's certificate, as an address parameter.
    pub fn authority(&self) -> String {
        self.folder.join("ca.crt").to_string_lossy().replace('%', "%25")
    }

    fn query(&self, database: &str, statements: &str) -> Result<(), ServerError> {
        let (url, statements) = (self.url(database), statements.to_owned());
        // A separate thread, because the caller may already be in a runtime.
        let work = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(about("runtime"))?;
            runtime.block_on(async {
                let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
                tokio::spawn(connection);
                Ok(client.batch_execute(&statements).await?)
            })
        };
        std::thread::spawn(work).join().unwrap_or_else(|_| Err(ServerError::Panicked))
    }
}

fn failed(program: &'static str, made: &Output) -> ServerError {
    ServerError::Failed { program, printed: String::from_utf8_lossy(&made.stderr).into_owned() }
}

fn free_port() -> Result<u16, ServerError> {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| listener.local_addr());
    taken.map(|address| address.port()).map_err(about("there is no free port"))
}

/// The directory with the programs of the newest installed PostgreSQL.
fn programs() -> Result<PathBuf, ServerError> {
    let mut folders: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    folders.sort();
    let newest = folders.pop().map(|(_, folder)| folder);
    let on_path = std::env::var_os("PATH").map(|path: OsString| std::env::split_paths(&path).collect::<Vec<_>>());
    let mut places = newest.into_iter().chain(on_path.into_iter().flatten());
    places.find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file()).ok_or(ServerError::NotInstalled)
}

/// PostgreSQL refuses to run as root, so it runs as the user that its package creates, or as `nobody`.
fn unprivileged() -> Result<Option<(u32, u32)>, ServerError> {
    if !rustix::process::geteuid().is_root() {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(about("/etc/passwd"))?;
    let ids = |name: &str| {
        let mut fields = users.lines().find(|line| line.split(':').next() == Some(name))?.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    let found = ids("postgres").or_else(|| ids("nobody"));
    found.map(Some).ok_or(ServerError::NoUser)
}

fn as_owner<'a>(command: &'a mut Command, owner: Option<(u32, u32)>, folder: &Path) -> &'a mut Command {
    if let Some((user, group)) = owner {
        command.uid(user).gid(group);
    }
    command.current_dir(folder).env_remove("PGDATA").env("LC_ALL", "C")
}
