//! The terminal while somebody is asked: keys come one by one, and everything is as before when it is over.

use super::key::{Decoder, Key};
use crate::print;
use rustix::fs::{Mode, OFlags};
use rustix::termios::{self, InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios};
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::net::unix::pipe;

/// How long the rest of a key may take to arrive after its first byte.
const REST_OF_A_KEY: Duration = Duration::from_millis(50);

/// The terminal, taken over until this is dropped.
pub(crate) struct Terminal {
    input: pipe::Receiver,
    before: Termios,
    decoder: Decoder,
}

impl Terminal {
    /// Takes over the terminal that is this process's input. What was typed before the question was there is thrown away.
    pub(crate) fn take() -> io::Result<Self> {
        let name = termios::ttyname(io::stdin(), Vec::new())?;
        // Opened anew, so that reading without waiting changes nothing for others who use the same terminal.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(name, flags, Mode::empty())?;
        let before = termios::tcgetattr(&opened)?;
        let mut during = before.clone();
        // Output stays as it was: only what is typed is taken key by key, with Ctrl+C as a key.
        during.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        during.input_modes.remove(InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::IXON);
        during.special_codes[SpecialCodeIndex::VMIN] = 1;
        during.special_codes[SpecialCodeIndex::VTIME] = 0;
        // A terminal is read as a pipe is: wait, then take what is there.
        let input = pipe::Receiver::from_owned_fd_unchecked(opened)?;
        termios::tcsetattr(input.as_fd(), OptionalActions::Drain, &during)?;
        let terminal = Self { input, before, decoder: Decoder::default() };
        termios::tcflush(terminal.input.as_fd(), QueueSelector::IFlush)?;
        print::terminal("\x1b[?2004h");
        Ok(terminal)
    }

    /// The next key; nothing when the terminal is gone. May be dropped while it waits.
    pub(crate) async fn key(&mut self) -> Option<Key> {
        loop {
            if let Some(key) = self.decoder.next(false) {
                return Some(key);
            }
            let read = self.read();
            let more = if self.decoder.is_waiting() {
                match tokio::time::timeout(REST_OF_A_KEY, read).await {
                    Ok(more) => more,
                    Err(_) => match self.decoder.next(true) {
                        Some(key) => return Some(key),
                        None => continue,
                    },
                }
            } else {
                read.await
            };
            match more {
                Some(bytes) => self.decoder.take(&bytes),
                None => return self.decoder.next(true),
            }
        }
    }

    async fn read(&self) -> Option<Vec<u8>> {
        let mut bytes = [0; 4096];
        loop {
            self.input.readable().await.ok()?;
            match self.input.try_read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => return Some(bytes[..count].to_vec()),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(_) => return None,
            }
        }
    }

    /// How many characters fit on a line.
    pub(crate) fn width(&self) -> usize {
        termios::tcgetwinsize(self.input.as_fd()).map_or(80, |size| match size.ws_col {
            // A terminal that does not say how wide it is.
            0 => 80,
            columns => usize::from(columns),
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        print::terminal("\x1b[?2004l");
        let _ = termios::tcsetattr(self.input.as_fd(), OptionalActions::Drain, &self.before);
    }
}
