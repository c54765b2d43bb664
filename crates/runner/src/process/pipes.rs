//! Reads the output pipes of a job.

use super::output::Output;
use super::start::JobOutput;
use tokio::net::unix::pipe;
use tokio::time::Instant;

const PIECE: usize = 64 * 1024;

pub(super) struct OutputPipes<'a> {
    /// `None` once all writers have closed it.
    all: Option<pipe::Receiver>,
    /// The same for separately read stdout.
    apart: Option<pipe::Receiver>,
    buffer: Vec<u8>,
    pub(super) output: Output<'a>,
    /// When output last arrived.
    pub(super) heard: Instant,
}

#[derive(Clone, Copy)]
enum Pipe {
    All,
    SeparateOutput,
}

impl<'a> OutputPipes<'a> {
    pub(super) fn new(printing: JobOutput, output: Output<'a>) -> Self {
        Self { all: Some(printing.all), apart: printing.output, buffer: vec![0; PIECE], output, heard: Instant::now() }
    }

    /// Waits for output and handles it. Never returns once both pipes are closed.
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

    /// Reads the remaining bytes, without waiting for other processes that keep the pipes open. The job has ended, so at most
    /// one full buffer per pipe is left. It bypasses the runtime, which may not know of the last bytes yet.
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

/// Waits until a pipe is readable, closed or failed; forever if there is none.
async fn readable(pipe: Option<&pipe::Receiver>) {
    match pipe {
        Some(pipe) => {
            if let Err(error) = pipe.readable().await {
                tracing::debug!(%error, "cannot wait for the pipe; reading it reports the error");
            }
        }
        None => std::future::pending().await,
    }
}
