//! Where the broker writes what it decides, and when that is durable: the frames of its journal, or
//! those of the log that a cluster shares ([`Submissions`]). The journal is called directly.

use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moldau_net::Principal;
use moldau_protocol::ErrorCode;
use moldau_storage::{Admit, AppendError, Error, LogMarker, Lsn, WaitDurable, WaitFailure};

use crate::error::{Refusal, append_refusal};
use crate::submissions::Submissions;

/// Where metadata, groups and transactions are written.
#[derive(Clone)]
pub(crate) enum Storage {
    /// The journal, which holds the records of partitions as well.
    Journal(moldau_storage::Storage),
    /// The log of a cluster's metadata.
    Shared(Arc<Submissions>),
}

impl Storage {
    /// The journal, if there is one.
    pub(crate) fn journal(&self) -> Option<&moldau_storage::Storage> {
        match self {
            Self::Journal(journal) => Some(journal),
            Self::Shared(_) => None,
        }
    }

    /// Whether this broker decides: it is the only one, or the one that owns the shared log.
    pub(crate) fn decides(&self) -> bool {
        match self {
            Self::Journal(_) => true,
            Self::Shared(submissions) => submissions.owns(),
        }
    }

    /// Leaves a request of a client to the controller, if that is another broker: see
    /// [`Forwards::ask`](crate::forwards::Forwards::ask).
    pub(crate) fn forward(
        &self,
        principal: &Principal,
        address: IpAddr,
        frame: &[u8],
    ) -> Option<impl Future<Output = Option<Bytes>> + use<>> {
        match self {
            Self::Shared(submissions) if !submissions.owns() => {
                submissions.forwards.ask(principal, address, frame)
            }
            Self::Journal(_) | Self::Shared(_) => None,
        }
    }

    /// Waits for all that the shared log has: see
    /// [`CatchingUp::wait`](crate::catching_up::CatchingUp::wait). `None` for a broker with a
    /// journal.
    pub(crate) fn catch_up(&self) -> Option<impl Future<Output = bool> + use<>> {
        match self {
            Self::Shared(submissions) => Some(submissions.catching_up.wait()),
            Self::Journal(_) => None,
        }
    }

    /// Waits until it is sure that this broker owned the shared log when it was asked, so that all
    /// that it read before was up to date. `None` for a broker with a journal.
    pub(crate) fn confirm(&self) -> Option<impl Future<Output = bool> + use<>> {
        let Self::Shared(submissions) = self else { return None };
        let (epoch, submissions) = (submissions.epoch(), Arc::clone(submissions));
        Some(async move {
            let caught_up = submissions.catching_up.wait().await;
            caught_up && epoch.is_some() && submissions.epoch() == epoch
        })
    }

    /// Checks that this broker is the controller.
    ///
    /// # Errors
    /// `NOT_CONTROLLER`.
    pub(crate) fn control(&self) -> Result<(), Refusal> {
        match self.decides() {
            true => Ok(()),
            false => {
                let message = "another broker is the controller";
                Err(Refusal::new(ErrorCode::NotController, message))
            }
        }
    }

    /// Checks that this broker coordinates groups.
    ///
    /// # Errors
    /// `NOT_COORDINATOR`.
    pub(crate) fn coordinate(&self) -> Result<(), Refusal> {
        match self.decides() {
            true => Ok(()),
            false => {
                let message = "another broker is the coordinator";
                Err(Refusal::new(ErrorCode::NotCoordinator, message))
            }
        }
    }

    /// Checks that this broker delivers the records of share groups.
    ///
    /// # Errors
    /// `NOT_LEADER_OR_FOLLOWER`.
    pub(crate) fn deliver(&self) -> Result<(), ErrorCode> {
        self.decides().then_some(()).ok_or(ErrorCode::NotLeaderOrFollower)
    }

    /// Writes a record of the controller.
    ///
    /// # Errors
    /// `NOT_CONTROLLER`, or that of a journal that takes nothing.
    pub(crate) fn write(&self, record: &[u8]) -> Result<Lsn, Refusal> {
        self.control()?;
        self.append_metadata(record).map_err(|error| append_refusal(&error))
    }

    /// Appends a record, which replay gives back.
    ///
    /// # Errors
    /// See [`moldau_storage::Storage::append_metadata`]; [`AppendError::Away`].
    pub(crate) fn append_metadata(&self, record: &[u8]) -> Result<Lsn, AppendError> {
        match self {
            Self::Journal(journal) => journal.append_metadata(record),
            Self::Shared(submissions) => submissions.submit(std::iter::once(record)),
        }
    }

    /// Appends records and markers in one frame: all of it or nothing. The logs of a cluster take
    /// no markers.
    ///
    /// # Errors
    /// As [`Storage::append_metadata`].
    pub(crate) fn append_together(
        &self,
        records: &[Vec<u8>],
        markers: &[LogMarker],
        leader_epoch: i32,
    ) -> Result<Lsn, AppendError> {
        match self {
            Self::Journal(journal) => journal.append_together(records, markers, leader_epoch),
            Self::Shared(submissions) => submissions.submit(records.iter().map(Vec::as_slice)),
        }
    }

    /// Position up to which everything is durable.
    pub(crate) fn durable(&self) -> Lsn {
        match self {
            Self::Journal(journal) => journal.durable(),
            Self::Shared(submissions) => submissions.durable(),
        }
    }

    /// Position of what was appended last.
    pub(crate) fn end(&self) -> Lsn {
        match self {
            Self::Journal(journal) => journal.end(),
            Self::Shared(submissions) => submissions.end(),
        }
    }

    /// Resolves when `lsn` is durable, or cannot become so.
    pub(crate) fn wait_durable(&self, lsn: Lsn) -> WaitDurable {
        match self {
            Self::Journal(journal) => journal.wait_durable(lsn),
            Self::Shared(submissions) => submissions.wait(lsn),
        }
    }

    /// What is said of a change that cannot become durable.
    pub(crate) fn lost(&self) -> Refusal {
        match self {
            Self::Journal(_) => {
                let message = "the change cannot become durable; the journal failed";
                Refusal::new(ErrorCode::KafkaStorageError, message)
            }
            // Clients ask the next controller, as they do where one of Kafka resigns.
            Self::Shared(_) => {
                let message = "this broker is no longer the controller; the change may come true";
                Refusal::new(ErrorCode::NotController, message)
            }
        }
    }

    /// Counts bytes of a request against the limit of those that are not durable, when it is their
    /// turn.
    pub(crate) fn admit_wait(&self, bytes: usize) -> Admit {
        match self {
            Self::Journal(journal) => journal.admit_wait(bytes),
            Self::Shared(submissions) => submissions.admissions.wait(bytes),
        }
    }

    /// Resolves with the failure of the journal, if ever.
    pub(crate) fn stopped(&self) -> WaitFailure {
        match self {
            Self::Journal(journal) => journal.stopped(),
            Self::Shared(submissions) => submissions.life.wait_failure(),
        }
    }

    /// The failure that stopped the journal, if there was one.
    pub(crate) fn failure(&self) -> Option<Error> {
        match self {
            Self::Journal(journal) => journal.failure(),
            Self::Shared(submissions) => submissions.life.failure(),
        }
    }

    /// For how long the flush under way has lasted.
    pub(crate) fn flushing_for(&self) -> Option<Duration> {
        self.journal().and_then(moldau_storage::Storage::flushing_for)
    }

    /// Closes the journal.
    ///
    /// # Errors
    /// A journal that has failed.
    pub(crate) fn close(&self) -> Result<(), Error> {
        self.journal().map_or(Ok(()), moldau_storage::Storage::close)
    }

    /// The logs of the journal.
    pub(crate) fn logs(&self) -> Vec<Arc<moldau_storage::Log>> {
        self.journal().map(moldau_storage::Storage::logs).unwrap_or_default()
    }
}

/// Tests use the journal itself.
#[cfg(test)]
impl std::ops::Deref for Storage {
    type Target = moldau_storage::Storage;

    fn deref(&self) -> &moldau_storage::Storage {
        self.journal().expect("a test of the journal")
    }
}
