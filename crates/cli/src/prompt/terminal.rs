//! The terminal during a question: it is read key by key, and restored afterwards.

use super::key::{Decoder, Key};
use crate::{live, signals};
use lockgate_runner::driver::Halt;
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{self, InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// How long the rest of a key may take after its first byte.
const REST_OF_A_KEY: Duration = Duration::from_millis(50);

/// How long another program on the terminal may take to end after SIGTERM.
const ENDS_WITHIN: Duration = Duration::from_secs(2);

/// The terminal, taken over until this is dropped.
pub(crate) struct Terminal {
    input: pipe::Receiver,
    name: PathBuf,
    before: Termios,
    during: Termios,
    decoder: Decoder,
    resized: tokio::signal::unix::Signal,
    _keys: live::KeysTaken,
}

impl Terminal {
    /// Takes over the terminal on stdin. Input typed before the question is discarded.
    pub(crate) fn take() -> io::Result<Self> {
        let name = termios::ttyname(io::stdin(), Vec::new())?;
        let path = PathBuf::from(OsStr::from_bytes(name.as_bytes()));
        // Opened again, so that non-blocking reads do not affect other users of the same terminal.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::open(name, flags, Mode::empty())?;
        let before = termios::tcgetattr(&opened)?;
        let mut during = before.clone();
        // Output modes stay the same. Input is read key by key, and Ctrl+C is a key.
        during.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN);
        during.input_modes.remove(InputModes::ICRNL | InputModes::INLCR | InputModes::IGNCR | InputModes::IXON);
        during.special_codes[SpecialCodeIndex::VMIN] = 1;
        during.special_codes[SpecialCodeIndex::VTIME] = 0;
        // A terminal can be read like a pipe: wait until it is readable, then read.
        let input = pipe::Receiver::from_owned_fd_unchecked(opened)?;
        let resized = signal(SignalKind::window_change())?;
        termios::tcsetattr(input.as_fd(), OptionalActions::Drain, &during)?;
        let terminal = Self { input, name: path, before, during, decoder: Decoder::default(), resized, _keys: live::take_keys() };
        termios::tcflush(terminal.input.as_fd(), QueueSelector::IFlush)?;
        live::write_now("\x1b[?2004h");
        Ok(terminal)
    }

    /// The next key, or `None` if the terminal is gone. Cancel-safe.
    pub(crate) async fn key(&mut self) -> Option<Key> {
        let Self { input, decoder, resized, .. } = self;
        tokio::select! {
            biased;
            () = live::suspension() => Some(Key::Suspend),
            Some(()) = resized.recv() => Some(Key::Redraw),
            key = typed(input, decoder) => key,
        }
    }

    /// Restores the terminal and stops this process as Ctrl+Z does, until it is continued. Then everything is drawn again.
    pub(crate) async fn suspend(&mut self, meaning: &str) {
        let hidden = live::hide();
        self.release();
        live::stop_with_others(meaning).await;
        self.retake();
        drop(hidden);
    }

    /// Opens the terminal for a child process.
    pub(crate) fn open(&self) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).open(&self.name)
    }

    /// Lends the terminal to a program until it ends, and writes `input` to its stdin. The program stays in the process group of this
    /// process, so that Ctrl+Z stops both. Ctrl+C only reaches the program. If this process is asked to stop, the program is stopped
    /// too. Output is printed afterwards.
    pub(crate) async fn lend(&mut self, command: &mut Command, input: Vec<u8>, halt: Option<&Halt>) -> io::Result<ExitStatus> {
        let held_back = live::hold_back();
        self.release();
        let lent = signals::lend();
        let ended = until_it_ends(command, input, halt).await;
        self.retake();
        drop(lent);
        drop(held_back);
        ended
    }

    fn release(&self) {
        live::write_now("\x1b[?2004l");
        self.set(&self.before);
    }

    fn retake(&self) {
        self.set(&self.during);
        // This input was meant for the other program.
        if let Err(error) = termios::tcflush(self.input.as_fd(), QueueSelector::IFlush) {
            tracing::debug!(%error, "input for the other program could not be discarded");
        }
        live::write_now("\x1b[?2004h");
    }

    /// Changes the terminal settings. Fails only if the terminal is gone.
    fn set(&self, settings: &Termios) {
        if let Err(error) = termios::tcsetattr(self.input.as_fd(), OptionalActions::Drain, settings) {
            tracing::debug!(%error, "the terminal settings could not be changed");
        }
    }

    /// The columns and rows of the terminal.
    pub(crate) fn size(&self) -> (usize, usize) {
        let size = termios::tcgetwinsize(self.input.as_fd());
        let (columns, rows) = size.map_or((0, 0), |size| (usize::from(size.ws_col), usize::from(size.ws_row)));
        // Some terminals do not report their size.
        (if columns == 0 { 80 } else { columns }, if rows == 0 { 24 } else { rows })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.release();
    }
}

async fn typed(input: &pipe::Receiver, decoder: &mut Decoder) -> Option<Key> {
    loop {
        if let Some(key) = decoder.next(false) {
            return Some(key);
        }
        let read = read(input);
        let more = if decoder.is_waiting() {
            match tokio::time::timeout(REST_OF_A_KEY, read).await {
                Ok(more) => more,
                Err(_) => match decoder.next(true) {
                    Some(key) => return Some(key),
                    None => continue,
                },
            }
        } else {
            read.await
        };
        match more {
            Some(bytes) => decoder.take(&bytes),
            None => return decoder.next(true),
        }
    }
}

async fn read(input: &pipe::Receiver) -> Option<Vec<u8>> {
    let mut bytes = [0; 4096];
    loop {
        input.readable().await.ok()?;
        match input.try_read(&mut bytes) {
            Ok(0) => return None,
            Ok(count) => return Some(bytes[..count].to_vec()),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => return None,
        }
    }
}

/// Completes when this process is asked to stop; never without a `halt`.
pub(super) async fn halted(halt: Option<&Halt>) {
    match halt {
        Some(halt) => halt.halted().await,
        None => std::future::pending().await,
    }
}

async fn until_it_ends(command: &mut Command, input: Vec<u8>, halt: Option<&Halt>) -> io::Result<ExitStatus> {
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A reader that closes its stdin has seen enough, so errors are ignored.
        tokio::spawn(async move { stdin.write_all(&input).await });
    }
    let halted = halted(halt);
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    tokio::pin!(halted);
    loop {
        tokio::select! {
            ended = child.wait() => return ended,
            () = &mut halted => break,
            // The program has the terminal and was stopped by the same signal.
            () = live::suspension() => live::stop().await,
        }
    }
    if let Some(pid) = pid
        && let Err(error) = kill_process(pid, Signal::TERM)
    {
        tracing::debug!(%error, "the program has already ended");
    }
    if let Ok(ended) = tokio::time::timeout(ENDS_WITHIN, child.wait()).await {
        return ended;
    }
    child.start_kill()?;
    child.wait().await
}
