//! Leases on PostgreSQL: a driver that was frozen or lost its connection runs nothing that another driver may run.

use crate::project::{Output, Project, finish, lives, signal, until, without_terminal};
use lockgate_store::postgres::test_server::server;
use rustix::process::Signal;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first task ends when `go` exists. The deployment runs until `release` exists, so that a second one would be noticed.
const FLOW: &str = "
name: flow
phases:
  - id: build
    tasks: [{ id: wait, on_interrupt: rerun, run: 'echo $$ >> waiting; until test -e go; do sleep 0.05; done' }]
  - id: ship
    tasks: [{ id: deploy, on_interrupt: rerun, run: 'echo $$ >> \"$TARGET\"; until test -e release; do sleep 0.05; done' }]
";

fn lines(project: &Project, file: &str) -> usize {
    project.read(file).lines().count()
}

/// A machine with a copy of the project. Two of them share a database and a deployment target, but do not see each other's
/// processes.
struct Host<'a> {
    project: Project,
    url: &'a str,
    target: PathBuf,
}

impl<'a> Host<'a> {
    fn new(url: &'a str, target: PathBuf) -> Self {
        let project = Project::on_sqlite();
        project.write("flow.yaml", FLOW);
        Self { project, url, target }
    }

    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.project.command(arguments);
        without_terminal(&mut command);
        command.env("LOCKGATE_DATABASE_URL", self.url).env("TARGET", &self.target).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        finish(self.start(arguments))
    }

    fn deployments(&self) -> usize {
        std::fs::read_to_string(&self.target).unwrap_or_default().lines().count()
    }
}

/// A driver is frozen during its first task, its lease expires, and another host takes over the run and deploys. When the first
/// driver thaws, it must stop, and the other one completes the run.
fn deploys_once_when_frozen(expire: impl FnOnce(&str)) {
    let url = server().database();
    let shared = tempfile::tempdir().unwrap();
    let hosts = [(); 2].map(|()| Host::new(&url, shared.path().join("deployed")));
    let mut first = hosts[0].start(&["run", "flow.yaml", "login"]);
    until("the first task starts", || lines(&hosts[0].project, "waiting") == 1);
    signal(&first, Signal::STOP);
    expire(&url);
    hosts[1].project.write("go", "");
    let mut second = hosts[1].start(&["resume", "login"]);
    until("the second host deploys", || {
        if second.try_wait().unwrap().is_some_and(|status| status.code() == Some(3)) {
            // The first host's lease has not expired yet.
            second = hosts[1].start(&["resume", "login"]);
        }
        hosts[1].deployments() == 1
    });
    signal(&first, Signal::CONT);
    until("the first driver stops or deploys", || first.try_wait().unwrap().is_some() || hosts[0].deployments() > 1);
    assert_eq!(hosts[0].deployments(), 1, "the first driver ran the deployment of the second one again");
    let stopped = finish(first);
    assert!(stopped.code == Some(3) && stopped.stderr.contains("error[taken-over]"), "{stopped:?}");
    assert!(!lives(&hosts[0].project.read("waiting")), "its own task was stopped");
    hosts[1].project.write("release", "");
    let completed = finish(second);
    assert_eq!(completed.code, Some(0), "{completed:?}");
    assert_eq!(hosts[1].deployments(), 1);
    assert_eq!(hosts[1].run(&["db", "verify"]).code, Some(0));
}

#[test]
fn a_driver_whose_lease_expired_while_frozen_starts_nothing_that_another_recorded() {
    deploys_once_when_frozen(|_| {});
}

/// The database's clock jumps. The first driver trusts its lease, and learns only from the history that another driver took over.
#[test]
fn a_driver_stops_when_another_took_over() {
    deploys_once_when_frozen(|url| {
        server().perform(url, "UPDATE lockgate.drivers SET expires_at = clock_timestamp() - interval '1 second'");
    });
}

/// A connection to the database that can be cut: data sent afterwards is held back.
struct Proxy {
    dir: tempfile::TempDir,
    cut: Arc<AtomicBool>,
}

impl Proxy {
    fn to(socket: PathBuf) -> Self {
        let proxy = Self { dir: tempfile::tempdir().unwrap(), cut: Arc::default() };
        let listener = UnixListener::bind(proxy.dir.path().join(".s.PGSQL.5432")).unwrap();
        let cut = proxy.cut.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), UnixStream::connect(&socket).unwrap());
                forward(client.try_clone().unwrap(), server.try_clone().unwrap(), cut.clone());
                forward(server, client, cut.clone());
            }
        });
        proxy
    }

    fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }

    fn address(&self, url: &str) -> String {
        let dir = self.dir.path().to_str().unwrap().replace('/', "%2F");
        let (user, _) = url.split_once('@').unwrap();
        format!("{user}@{dir}:5432/{}", url.rsplit('/').next().unwrap())
    }
}

fn forward(mut from: UnixStream, mut to: UnixStream, cut: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 64 * 1024];
        while let Ok(count) = from.read(&mut bytes) {
            while cut.load(Ordering::SeqCst) {
                std::thread::park();
            }
            if count == 0 || to.write_all(&bytes[..count]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
}

/// The socket of the server at this address.
fn socket(url: &str) -> PathBuf {
    let host = url.split_once('@').unwrap().1.split('/').next().unwrap();
    let (dir, port) = host.rsplit_once(':').unwrap();
    PathBuf::from(dir.replace("%2F", "/").replace("%25", "%")).join(format!(".s.PGSQL.{port}"))
}

/// The task ignores requests to end.
const STUBBORN: &str = "
name: flow
phases:
  - id: ship
    tasks: [{ id: deploy, on_interrupt: rerun, run: 'trap \"\" TERM; echo $$ >> \"$TARGET\"; until test -e go; do sleep 0.05; done' }]
";

#[test]
fn a_driver_that_cannot_reach_the_database_stops_its_tasks_before_its_lease_expires() {
    let url = server().database();
    let proxy = Proxy::to(socket(&url));
    let shared = tempfile::tempdir().unwrap();
    let through_proxy = proxy.address(&url);
    let mut host = Host::new(&through_proxy, shared.path().join("deployed"));
    host.project.write("flow.yaml", STUBBORN);
    let first = host.start(&["run", "flow.yaml", "login"]);
    until("the task starts", || host.deployments() == 1);
    let task = std::fs::read_to_string(&host.target).unwrap();
    proxy.cut();
    until("the task is killed", || !lives(&task));
    // Fails once no lease is valid any more.
    server().perform(
        &url,
        "DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM lockgate.drivers WHERE expires_at > clock_timestamp()) THEN \
         RAISE EXCEPTION 'the task ran for longer than the lease'; END IF; END $$",
    );
    let Output { code, stderr, .. } = finish(first);
    assert!(code == Some(1) && stderr.contains("error[lease-lost]") && stderr.contains("lockgate resume"), "{code:?} {stderr}");
    host.project.write("go", "");
    host.url = &url;
    let resumed = host.run(&["resume", "login"]);
    assert_eq!(resumed.code, Some(0), "{resumed:?}");
    assert_eq!(host.deployments(), 2, "the task that was stopped ran once more");
}
