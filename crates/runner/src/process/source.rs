//! The pipes of a job, read as it prints.

use super::output::Output;
use super::start::Printing;
use tokio::net::unix::pipe;
use tokio::time::Instant;

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// What the job prints.
pub(super) struct Source<'a> {
    /// Nothing once all who could write have closed it.
    all: Option<pipe::Receiver>,
    /// The same for output that is read on its own.
    apart: Option<pipe::Receiver>,
    buffer: Vec<u8>,
    pub(super) output: Output<'a>,
    /// When something came last.
    pub(super) heard: Instant,
}

/// Which of the pipes.
#[derive(Clone, Copy)]
enum Which {
    All,
    Apart,
}

impl<'a> Source<'a> {
    pub(super) fn new(printing: Printing, output: Output<'a>) -> Self {
        Self { all: Some(printing.all), apart: printing.output, buffer: vec![0; PIECE], output, heard: Instant::now() }
    }

    /// Waits for something and takes it. Never returns once there can be nothing more.
    pub(super) async fn read(&mut self) {
        let which = tokio::select! {
            () = readable(self.all.as_ref()) => Which::All,
            () = readable(self.apart.as_ref()) => Which::Apart,
        };
        let pipe = match which {
            Which::All => &mut self.all,
            Which::Apart => &mut self.apart,
        };
        let Some(receiver) = pipe else { return };
        match receiver.try_read(&mut self.buffer) {
            Ok(0) => *pipe = None,
            Ok(count) => {
                self.heard = Instant::now();
                self.take(which, count);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => *pipe = None,
        }
    }

    fn take(&mut self, which: Which, count: usize) {
        match which {
            Which::All => self.output.take(&self.buffer[..count]),
            Which::Apart => self.output.take_apart(&self.buffer[..count]),
        }
    }

    /// Takes all that is left in the pipes, without waiting for somebody who keeps them open. Nobody of the job writes any more,
    /// so there is no more than a pipe can hold. It asks the system itself: the runtime may not have heard of the last bytes yet.
    pub(super) fn drain(&mut self) {
        for (which, pipe) in [(Which::Apart, self.apart.take()), (Which::All, self.all.take())] {
            let Some(pipe) = pipe else { continue };
            for _ in 0..64 {
                match rustix::io::read(&pipe, &mut self.buffer[..]) {
                    Ok(0) | Err(_) => break,
                    Ok(count) => self.take(which, count),
                }
            }
        }
    }
}

/// Waits until a pipe has something, its end or an error to give; for ever when there is none.
async fn readable(pipe: Option<&pipe::Receiver>) {
    match pipe {
        Some(pipe) => {
            if let Err(error) = pipe.readable().await {
                tracing::debug!(%error, "the pipe cannot be waited for; reading it shows the error again");
            }
        }
        None => std::future::pending().await,
    }
}
