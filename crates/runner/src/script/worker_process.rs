//! The evaluator's side of a worker process: starting, calling and ending it.

use super::{
    WorkerCommand,
    message::{ANSWER_LIMIT, READY},
    protocol::{PREFIX, frame_length},
    value_cache::ValueCache,
};
use std::{
    fmt, io,
    os::{
        fd::OwnedFd,
        unix::{net::UnixStream as StdStream, process::CommandExt},
    },
    process::{Child, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    sync::oneshot,
    time::timeout,
};

/// If this variable is set, workers write errors to this program's stderr.
const STDERR_VARIABLE: &str = "LOCKGATE_WORKER_STDERR";
const START_LIMIT: Duration = Duration::from_secs(20);
/// How long to poll for a reply before waiting for it.
const POLL_TIME: Duration = Duration::from_micros(300);
/// Buffers larger than this are freed after a call.
const BUFFER_KEPT: usize = 256 << 10;

/// A process that is killed and reaped on drop.
struct Process(Option<Child>);

impl Process {
    /// How the process ended. Called after its socket has closed, so it is about to end.
    async fn end(&mut self) -> End {
        let Some(mut child) = self.0.take() else { return End::Before };
        let ended = tokio::task::spawn_blocking(move || {
            // It may have closed its socket and be still alive; it is of no use any more.
            let status = match child.try_wait() {
                Ok(Some(status)) => Ok(status),
                Ok(None) | Err(_) => {
                    std::thread::sleep(Duration::from_millis(20));
                    match child.try_wait() {
                        Ok(Some(status)) => Ok(status),
                        Ok(None) | Err(_) => child.kill().and_then(|()| child.wait()),
                    }
                }
            };
            status.map_or_else(End::Lost, End::Exited)
        });
        ended.await.unwrap_or(End::Before)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // This fails only if the process has already ended.
            drop(child.kill());
            // Reaping may take a while if a lot of memory is freed, so it happens on another thread.
            drop(std::thread::Builder::new().name("reap script worker".into()).spawn(move || child.wait()));
        }
    }
}

/// A started process, not yet bound to a runtime.
pub(super) struct Started {
    process: Process,
    socket: StdStream,
}

/// Starts a worker on a separate thread, because starting a process blocks briefly.
///
/// No parent-death signal is set, as that would end the worker with this thread: a worker watches its socket instead.
pub(super) fn start(command: &WorkerCommand) -> oneshot::Receiver<io::Result<Started>> {
    let (give, take) = oneshot::channel();
    let command = command.clone();
    let spawned = std::thread::Builder::new().name("start script worker".into()).spawn(move || {
        // If the receiver is gone, the worker is returned and dropped, which ends it.
        drop(give.send(start_here(&command)));
    });
    // Without a thread the sender is dropped, which reports the failure to the receiver.
    drop(spawned);
    take
}

fn start_here(command: &WorkerCommand) -> io::Result<Started> {
    let (here, there) = StdStream::pair()?;
    here.set_nonblocking(true)?;
    let stderr = if std::env::var_os(STDERR_VARIABLE).is_some() { Stdio::inherit() } else { Stdio::null() };
    let child = Command::new(&command.program)
        .args(&command.args)
        .env_clear()
        .envs(command.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(OwnedFd::from(there)))
        .stdout(Stdio::null())
        .stderr(stderr)
        // A separate process group: Ctrl+C in the terminal is for this program, which then decides.
        .process_group(0)
        .spawn()?;
    Ok(Started { process: Process(Some(child)), socket: here })
}

#[derive(Debug)]
pub(super) enum End {
    Before,
    Exited(ExitStatus),
    Lost(io::Error),
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before => f.write_str("it had ended"),
            Self::Exited(status) => write!(f, "it ended with {status}"),
            Self::Lost(error) => write!(f, "it is gone ({error})"),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum WorkerError {
    #[error("it does not follow the worker protocol")]
    NotAWorker,
    #[error("it was not ready within {START_LIMIT:?}")]
    NotReady,
    #[error("{0}")]
    Ended(End),
    #[error("{error}: {end}")]
    Socket {
        error: io::Error,
        /// How the process ended.
        end: End,
    },
    #[error("its answer is too long")]
    AnswerTooLong,
    #[error("it sent more than one reply")]
    SaysMore,
}

/// Why an exchange gave no reply. The worker cannot be used after any of these.
pub(super) enum Broken {
    /// The call was not sent completely, so nothing was evaluated.
    NotSent(WorkerError),
    /// The worker ended or sent garbage after it had received the call.
    Ended(WorkerError),
    Late,
}

/// A worker that serves one call at a time. Dropping it ends the process.
pub(super) struct Worker {
    process: Process,
    socket: UnixStream,
    pub(super) value_cache: ValueCache,
    /// Whether it has reported that it is ready.
    pub(super) is_ready: bool,
    received: Vec<u8>,
    /// The end of the frame in `received`.
    used: usize,
    /// Whether it ended before it had read the whole call.
    was_unread: bool,
}

impl Worker {
    pub(super) fn adopt(started: Started) -> io::Result<Self> {
        let Started { process, socket } = started;
        let socket = UnixStream::from_std(socket)?;
        let received = Vec::with_capacity(4096);
        Ok(Self { process, socket, value_cache: ValueCache::default(), is_ready: false, received, used: 0, was_unread: false })
    }

    /// Sends a frame and returns the reply frame, without its length.
    ///
    /// The time limit starts once the worker is ready; starting has its own limit.
    pub(super) async fn exchange(&mut self, frame: &[u8], limit: Duration) -> Result<&[u8], Broken> {
        if !self.is_ready {
            match timeout(START_LIMIT, self.receive()).await {
                Ok(Ok(())) if self.frame() == [READY] => self.is_ready = true,
                Ok(Ok(())) => return Err(Broken::NotSent(WorkerError::NotAWorker)),
                Ok(Err(what)) => return Err(Broken::NotSent(what)),
                Err(_) => return Err(Broken::NotSent(WorkerError::NotReady)),
            }
        }
        let asked = async {
            if let Err(error) = self.socket.write_all(frame).await {
                let end = self.process.end().await;
                return Err(Broken::NotSent(WorkerError::Socket { error, end }));
            }
            self.received.clear();
            self.was_unread = false;
            self.poll_briefly();
            self.receive_rest().await.map_err(|what| if self.was_unread { Broken::NotSent(what) } else { Broken::Ended(what) })
        };
        match timeout(limit, asked).await {
            Ok(Ok(())) if self.received.len() == self.used => Ok(self.frame()),
            Ok(Ok(())) => Err(Broken::Ended(WorkerError::SaysMore)),
            Ok(Err(broken)) => Err(broken),
            Err(_) => Err(Broken::Late),
        }
    }

    /// The last received frame, without its length.
    fn frame(&self) -> &[u8] {
        &self.received[PREFIX..self.used]
    }

    async fn receive(&mut self) -> Result<(), WorkerError> {
        self.received.clear();
        self.receive_rest().await
    }

    /// Polls briefly for the reply without sleeping: most scripts finish faster than a sleeping task could be woken. It
    /// yields to other threads on this processor, one of which may be the worker.
    fn poll_briefly(&mut self) {
        self.received.shrink_to(BUFFER_KEPT);
        self.received.reserve(PREFIX);
        let until = Instant::now() + POLL_TIME;
        loop {
            match rustix::io::read(&self.socket, rustix::buffer::spare_capacity(&mut self.received)) {
                Err(rustix::io::Errno::AGAIN) if Instant::now() < until => std::thread::yield_now(),
                // An error is reported only once; a later read sees the end of the stream.
                Err(error) => {
                    self.was_unread = error == rustix::io::Errno::CONNRESET;
                    return;
                }
                Ok(_) => return,
            }
        }
    }

    async fn receive_rest(&mut self) -> Result<(), WorkerError> {
        loop {
            let wanted = match frame_length(&self.received) {
                Some(length) if length > ANSWER_LIMIT => return Err(WorkerError::AnswerTooLong),
                Some(length) if self.received.len() >= PREFIX + length => {
                    self.used = PREFIX + length;
                    return Ok(());
                }
                Some(length) => PREFIX + length,
                None => PREFIX,
            };
            self.received.reserve(wanted - self.received.len());
            match self.socket.read_buf(&mut self.received).await {
                Ok(0) => return Err(WorkerError::Ended(self.process.end().await)),
                Ok(_) => {}
                Err(error) => {
                    // A socket is reset, rather than closed, if its owner left data unread.
                    self.was_unread = error.kind() == io::ErrorKind::ConnectionReset;
                    return Err(WorkerError::Socket { error, end: self.process.end().await });
                }
            }
        }
    }
}
