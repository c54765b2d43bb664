//! The pipes of a job, read as it prints.

use super::output::Output;
use super::start::JobOutput;
use tokio::net::unix::pipe;
use tokio::time::Instant;

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// What the job prints.
pub(super) struct OutputPipes<'a> {
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
enum Pipe {
    All,
    SeparateOutput,
}

impl<'a> OutputPipes<'a> {
    pub(super) fn new(printing: JobOutput, output: Output<'a>) -> Self {
        Self { all: Some(printing.all), apart: printing.output, buffer: vec![0; PIECE], output, heard: Instant::now() }
    }

    /// Waits for something and takes it. Never returns once there can be nothing more.
    pub(super) async fn read(&mut self) {
        let which = tokio::select! {
            () = readable(self.all.as_ref()) => Pipe::All,
            () = readable(self.apart.as_ref()) => Pipe::SeparateOutput,
        };
        let pipe = match which {
            Pipe::All => &mut self.all,
            Pipe::SeparateOutput => &mut self.apart,
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

    fn take(&mut self, which: Pipe, count: usize) {
        match which {
            Pipe::All => self.output.take(&self.buffer[..count]),
            Pipe::SeparateOutput => self.output.take_separate(&self.buffer[..count]),
        }
    }

    /// Takes all that is left in the pipes, without waiting for somebody who keeps them open. Nobody of the job writes any more,
    /// so there is no more than a pipe can hold. It asks the system itself: the runtime may not have heard of the last bytes yet.
    pub(super) fn drain(&mut self) {
        for (which, pipe) in [(Pipe::SeparateOutput, self.apart.take()), (Pipe::All, self.all.take())] {
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
