//! The worker's side: serves calls from its socket until it closes.

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

/// The stack of the evaluating thread: enough for the largest stack of a call, plus the engine's own functions, which check
/// the limit only occasionally.
const THREAD_STACK: usize = 16 << 20;
/// The address space limit of a worker, a safety net for everything else.
const ADDRESS_SPACE: u64 = 8 << 30;
/// How long to poll for the next call before blocking.
const POLL_TIME: Duration = Duration::from_micros(1000);
/// After a short evaluation there is little to clean up, which can be done after the reply. The next call would have to wait
/// for a longer cleanup.
const CLEARED_LATER: Duration = Duration::from_millis(2);
/// Buffers larger than this are freed after a call.
const BUFFER_KEPT: usize = 1 << 20;

/// Serves calls that arrive on stdin, which must be a Unix stream socket, until it closes.
pub fn worker_main() -> ExitCode {
    let Ok(socket) = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from) else { return ExitCode::FAILURE };
    if socket.peer_addr().is_err() {
        return ExitCode::FAILURE;
    }
    // Both are safety nets below the engine's own limits; a worker also works without them.
    let limit = |bytes| Rlimit { current: Some(bytes), maximum: Some(bytes) };
    for (resource, bytes) in [(Resource::As, ADDRESS_SPACE), (Resource::Core, 0)] {
        if let Err(error) = setrlimit(resource, limit(bytes)) {
            tracing::debug!(?resource, %error, "cannot set a resource limit");
        }
    }

    let Ok(serving) = socket.try_clone() else { return ExitCode::FAILURE };
    let thread = std::thread::Builder::new().name("evaluate".into()).stack_size(THREAD_STACK);
    let spawned = thread.spawn(move || {
        let serving = Serving(serving);
        // An error means that the other side is gone or sends garbage; either way there is nothing left to do.
        drop(serve(&serving.0));
    });
    if spawned.is_err() {
        return ExitCode::FAILURE;
    }
    // Returning ends the process, even during an evaluation that cannot be interrupted.
    wait_until_closed(&socket)
}

/// Closes the socket when the serving thread ends for any reason, so that the waiting one ends too.
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
        // Clean up and prepare the next engine while the reply is in transit.
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

/// Polls briefly for the next call without sleeping: in a series of short scripts it arrives faster than a sleeping thread
/// could be woken. It yields to other threads on this processor, one of which may be the caller.
fn poll_briefly(socket: &UnixStream) {
    let until = Instant::now() + POLL_TIME;
    loop {
        match poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&Timespec::default())) {
            Ok(0) if Instant::now() < until => std::thread::yield_now(),
            Ok(_) | Err(_) => return,
        }
    }
}

/// One frame without its length; `None` if the socket has closed. The other side waits for each reply, so there is at most
/// one frame, and one read is usually enough.
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
