//! The worker's side: serves calls from its socket until that closes.

use super::{
    Failed, Returned, ScriptError,
    globals::CachedValue,
    message::{CALL_LIMIT, READY, Request, read_call, write_answer},
    protocol::{PREFIX, Writer, frame_length},
    sandbox::Sandbox,
};
use lockgate_engine::digest::Digest;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Resource, Rlimit, setrlimit},
};
use std::{
    collections::HashMap,
    io::{self, ErrorKind, Read, Write},
    net::Shutdown,
    os::{fd::AsFd, unix::net::UnixStream},
    process::ExitCode,
    time::{Duration, Instant},
};

/// The stack of the thread that evaluates: room for the largest stack that a call may ask for, and for the engine's
/// own functions, which look at the limit only now and then.
const THREAD_STACK: usize = 16 << 20;
/// All the memory that a worker can ever get, whatever goes wrong in it.
const ADDRESS_SPACE: u64 = 8 << 30;
/// How long the next call is looked for before it is waited for.
const POLL_TIME: Duration = Duration::from_micros(1000);
/// An evaluation that took no longer than this leaves little to clear away, which can be done after the answer. The next
/// call would have to wait for more.
const CLEARED_LATER: Duration = Duration::from_millis(2);
/// Buffers that grew beyond this for one large call are given back.
const BUFFER_KEPT: usize = 1 << 20;

/// Serves calls that arrive on standard input, which must be a Unix stream socket, until it closes.
pub fn worker_main() -> ExitCode {
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else { return ExitCode::FAILURE };
    if socket.peer_addr().is_err() {
        return ExitCode::FAILURE;
    }
    // Both are nets below the engine's own limits: without them a worker works as well.
    let limit = |bytes| Rlimit { current: Some(bytes), maximum: Some(bytes) };
    for (resource, bytes) in [(Resource::As, ADDRESS_SPACE), (Resource::Core, 0)] {
        if let Err(error) = setrlimit(resource, limit(bytes)) {
            tracing::debug!(?resource, %error, "the limit of the system is not set");
        }
    }

    let Ok(serving) = socket.try_clone() else { return ExitCode::FAILURE };
    let thread = std::thread::Builder::new().name("evaluate".into()).stack_size(THREAD_STACK);
    let spawned = thread.spawn(move || {
        let serving = Serving(serving);
        // An error means that the other side is gone or talks nonsense: either way there is nothing left to do.
        drop(serve(&serving.0));
    });
    if spawned.is_err() {
        return ExitCode::FAILURE;
    }
    // Returning ends the process, also in the middle of an evaluation that listens to nothing.
    wait_until_closed(&socket)
}

/// Closes the socket when the thread that serves ends, by whatever way, so that the one that waits ends too.
struct Serving(UnixStream);

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.0.shutdown(Shutdown::Both));
    }
}

fn wait_until_closed(socket: &UnixStream) -> ExitCode {
    loop {
        let mut watched = [PollFd::new(socket, PollFlags::RDHUP)];
        match poll(&mut watched, None) {
            Ok(_) if watched[0].revents().is_empty() => {}
            Ok(_) => return ExitCode::SUCCESS,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return ExitCode::FAILURE,
        }
    }
}

fn serve(mut socket: &UnixStream) -> io::Result<()> {
    let mut sandbox = Sandbox::prepare();
    let mut ready = Writer::with_capacity(1);
    ready.byte(READY);
    socket.write_all(&ready.finish(1).unwrap_or_default())?;

    let mut value_cache = HashMap::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        poll_briefly(socket);
        let Some(frame) = receive(socket, &mut buffer)? else { return Ok(()) };
        let request = read_call(frame).map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
        let start = Instant::now();
        let answer = evaluate(&sandbox, request, &mut value_cache);
        let used = (start.elapsed() <= CLEARED_LATER).then_some(sandbox);
        let frame = write_answer(&answer).or_else(|| write_answer(&failed(ScriptError::TooLarge)));
        socket.write_all(&frame.unwrap_or_default())?;
        // Cleared away and made anew while the answer travels, so that the next call finds it ready.
        drop(used);
        sandbox = Sandbox::prepare();
        if buffer.len() > BUFFER_KEPT {
            buffer = vec![0; 64 << 10];
        }
    }
}

fn evaluate(
    sandbox: &Result<Sandbox, ScriptError>,
    request: Request<'_>,
    value_cache: &mut HashMap<Digest, CachedValue>,
) -> Result<Returned, Failed> {
    for digest in &request.forget {
        value_cache.remove(digest);
    }
    for part in &request.stored {
        if let Some(json) = part.json {
            value_cache.insert(part.digest, CachedValue::new(json));
        }
    }
    match sandbox {
        Ok(sandbox) => sandbox.evaluate(request, value_cache),
        Err(error) => failed(error.clone()),
    }
}

fn failed(error: ScriptError) -> Result<Returned, Failed> {
    Err(Failed { error, log: Vec::new(), wrote: Vec::new() })
}

/// Looks for the next call for a moment without going to sleep: in a run of short scripts it comes sooner than it takes to be woken.
/// Whoever shares the processor goes first; it may be the one who calls.
fn poll_briefly(socket: &UnixStream) {
    let until = Instant::now() + POLL_TIME;
    loop {
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&Timespec::default())) {
            Ok(0) if Instant::now() < until => std::thread::yield_now(),
            Ok(_) | Err(_) => return,
        }
    }
}

/// One frame without its length, or nothing when the socket has closed. The other side waits for each answer, so one
/// frame is all that can be there, and one read is usually enough.
fn receive<'a>(mut socket: &UnixStream, buffer: &'a mut Vec<u8>) -> io::Result<Option<&'a [u8]>> {
    let mut filled = 0;
    loop {
        match socket.read(&mut buffer[filled..]) {
            Ok(0) => return Ok(None),
            Ok(read) => filled += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        let Some(length) = frame_length(&buffer[..filled]) else { continue };
        if length > CALL_LIMIT {
            return Err(ErrorKind::InvalidData.into());
        }
        let end = PREFIX + length;
        if filled >= end {
            return Ok(Some(&buffer[PREFIX..end]));
        }
        if buffer.len() < end {
            buffer.resize(end, 0);
        }
    }
}
