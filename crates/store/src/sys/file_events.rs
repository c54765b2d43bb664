//! inotify events for the files of a store: the head was written, files appeared or disappeared, a driver closed its lock
//! file.

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{CreateFlags, ReadFlags, WatchFlags};
use rustix::fs::{Timespec, inotify};
use rustix::io::{Errno, read, write};
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What has happened since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileChanges {
    /// The head was written or replaced.
    pub(crate) head: bool,
    pub(crate) claims: bool,
    /// A driver may have started or ended.
    pub(crate) drivers: bool,
    /// Events were lost: anything may have happened.
    pub(crate) lost: bool,
}

/// An event source that another thread can interrupt.
#[derive(Debug)]
pub(crate) struct FileEvents {
    inotify: OwnedFd,
    /// The watch on the head, if it exists.
    head: Option<i32>,
    drivers: Option<i32>,
    head_path: PathBuf,
    drivers_folder: PathBuf,
}

impl FileEvents {
    /// Watches the files of a store; fails if the system has no watches left.
    pub(crate) fn of(folder: &Path, head: &Path) -> Result<Self, Errno> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let files =
            WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::MOVED_FROM | WatchFlags::DELETE | WatchFlags::MOVE_SELF;
        inotify::add_watch(&inotify, folder, files)?;
        let mut file_events =
            Self { inotify, head: None, drivers: None, head_path: head.to_owned(), drivers_folder: folder.join("drivers") };
        file_events.watch_again()?;
        Ok(file_events)
    }

    /// Watches files that were created or replaced since.
    fn watch_again(&mut self) -> Result<(), Errno> {
        // A changed claim sets the times of the head; nothing else changes them alone.
        self.head = self.watch(&self.head_path, WatchFlags::MODIFY | WatchFlags::ATTRIB)?;
        let ends = WatchFlags::CLOSE_WRITE | WatchFlags::DELETE | WatchFlags::MOVED_TO;
        self.drivers = self.watch(&self.drivers_folder, ends)?;
        Ok(())
    }

    /// Watches a file if it exists: each is created with the first commit or claim.
    fn watch(&self, path: &Path, events: WatchFlags) -> Result<Option<i32>, Errno> {
        match inotify::add_watch(&self.inotify, path, events) {
            Ok(watch) => Ok(Some(watch)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Drains the pending events without waiting for more. Fails if a newly created file cannot be watched.
    pub(crate) fn take(&mut self) -> Result<FileChanges, Errno> {
        let mut file_changes = FileChanges::default();
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut files = false;
        let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => file_changes.lost = true,
                Ok(event) if Some(event.wd()) == self.head => {
                    file_changes.head |= event.events().contains(ReadFlags::MODIFY);
                    file_changes.claims |= event.events().contains(ReadFlags::ATTRIB);
                }
                Ok(event) if Some(event.wd()) == self.drivers => file_changes.drivers = true,
                Ok(_) => files = true,
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        if files || file_changes.lost {
            self.watch_again()?;
            (file_changes.head, file_changes.drivers) = (true, true);
        }
        Ok(file_changes)
    }
}

/// Interrupts a thread that waits for events.
#[derive(Debug)]
pub(crate) struct Interrupt(OwnedFd);

impl Interrupt {
    pub(crate) fn new() -> Result<Self, Errno> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn set(&self) {
        if let Err(error) = write(&self.0, &1_u64.to_ne_bytes()) {
            // A counter that cannot be raised further is already set.
            tracing::trace!(%error, "the interrupt is already pending");
        }
    }

    /// Waits for an event or the interrupt, up to `longest`; without `file_events`, for the interrupt alone.
    pub(crate) fn wait(&self, file_events: Option<&FileEvents>, longest: Option<Duration>) {
        let timeout = longest.and_then(|longest| Timespec::try_from(longest).ok());
        let own = PollFd::new(&self.0, PollFlags::IN);
        let waited = match file_events {
            Some(file_events) => poll(&mut [own, PollFd::new(&file_events.inotify, PollFlags::IN)], timeout.as_ref()),
            None => poll(&mut [own], timeout.as_ref()),
        };
        if let Err(error) = waited {
            tracing::trace!(%error, "the wait was interrupted; checking early");
        }
        match read(&self.0, &mut [0; 8]) {
            Ok(_) | Err(Errno::AGAIN) => {}
            Err(error) => tracing::debug!(%error, "cannot reset the interrupt; checking early"),
        }
    }
}
