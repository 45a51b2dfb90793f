//! The state of a broker that follows the log of its cluster's metadata: it applies what the owner
//! wrote, so that it can go on where the owner ends.

use std::collections::HashSet;

use bytes::Bytes;
use moldau_coordinator::GroupRecord;
use moldau_coordinator::share_partitions::{ShareRecord, Shares};
use moldau_coordinator::transactions::TransactionRecord;
use moldau_protocol::Uuid;

use crate::logs::{Lsn, TopicId};
use crate::metadata_record::MetadataRecord;
use crate::state::{Restored, State};
use crate::submissions::{Submissions, frame_of, records_of};

impl Restored {
    /// Applies a frame of the shared log.
    ///
    /// # Errors
    /// Says why the frame is not understood.
    pub(crate) fn replay_frame(&mut self, frame: &[u8]) -> Result<(), String> {
        records_of(frame)?.into_iter().try_for_each(|record| self.replay(record))
    }
}

impl State {
    /// Applies a frame that the owner of the shared log wrote.
    ///
    /// # Errors
    /// Says why the frame is not understood.
    pub(crate) fn replay_frame(&self, frame: &[u8]) -> Result<(), String> {
        for record in records_of(frame)? {
            self.replay(MetadataRecord::decode(record)?)?;
        }
        Ok(())
    }

    fn replay(&self, record: MetadataRecord) -> Result<(), String> {
        match record {
            MetadataRecord::Group(record) => {
                let record = GroupRecord::decode(&record).map_err(|error| error.to_string())?;
                if let GroupRecord::GroupDeleted { group_id } = &record {
                    self.shares.group_deleted(group_id);
                }
                self.groups.replay(record);
            }
            MetadataRecord::ClientQuotasChanged(changes) => self.quotas.replay(changes),
            MetadataRecord::ClientMetricsConfigured { name, configs } => {
                self.telemetry.replay(name, configs)?;
            }
            record @ (MetadataRecord::AclsChanged { .. }
            | MetadataRecord::ScramCredentialsChanged(_)) => self.security.replay(record),
            // It names the cluster that this broker is part of already.
            MetadataRecord::ClusterBegun { .. } => {}
            MetadataRecord::Transaction(record) => {
                let record =
                    TransactionRecord::decode(&record).map_err(|error| error.to_string())?;
                self.transactions.replay(record);
            }
            MetadataRecord::Share(record) => {
                let record = ShareRecord::decode(&record).map_err(|error| error.to_string())?;
                self.shares.replay(record);
            }
            MetadataRecord::ProducerIds(_) => {
                return Err("a record that no cluster writes".to_owned());
            }
            MetadataRecord::TopicDeleted { id } => {
                if let Some(topic) = self.catalog.by_id(Uuid::from_bytes(id)) {
                    self.groups.replay_deleted(&topic.name);
                    self.catalog.replay(MetadataRecord::TopicDeleted { id })?;
                    self.shares.topic_deleted(topic.id);
                    self.forget_logs(topic.id);
                    topic.logs.delete();
                }
            }
            record @ (MetadataRecord::TopicCreated { .. }
            | MetadataRecord::PartitionsGrown { .. }
            | MetadataRecord::TopicConfigured { .. }
            | MetadataRecord::DefaultsChanged { .. }) => self.catalog.replay(record)?,
        }
        Ok(())
    }

    /// Takes what the shared log says in place of what this broker decided as its owner.
    pub(crate) fn adopt(&self, mut restored: Restored) {
        restored.forget_shares_of_deleted_topics();
        let before = self.catalog.all();
        let stays: HashSet<Uuid> = restored.catalog.all().iter().map(|topic| topic.id).collect();
        self.groups.replace(restored.groups);
        self.transactions.replace(restored.transactions);
        self.shares.replace(restored.shares);
        self.catalog.replace(restored.catalog);
        self.security.replace(&restored.security);
        self.quotas.replace(restored.quotas);
        self.telemetry.replace(&restored.telemetry);
        for topic in before.iter().filter(|topic| !stays.contains(&topic.id)) {
            self.forget_logs(topic.id);
            topic.logs.delete();
        }
    }

    /// All that the shared log says up to a position of this broker, which owns it, as one frame.
    pub(crate) fn snapshot(&self, submissions: &Submissions, cluster_id: Uuid) -> (Lsn, Bytes) {
        let begun = MetadataRecord::ClusterBegun { id: cluster_id.into_bytes() };
        let mut encoded = vec![begun.encode()];
        let mut end = Lsn::default();
        self.with_records(|records| {
            // Whatever is submitted changes something that is locked here.
            end = submissions.end();
            encoded.extend(records.map(|record| record.encode()));
        });
        (end, frame_of(encoded.iter().map(Vec::as_slice)))
    }

    /// The topics that share groups subscribe to or have read.
    pub(crate) fn shared_topics(&self) -> HashSet<Uuid> {
        let names: Vec<String> = self
            .groups
            .view(|groups| groups.shared_topics().into_iter().map(str::to_owned).collect());
        let named = names.iter().filter_map(|name| self.catalog.by_name(name));
        let read = self.shares.view(Shares::topics);
        read.into_iter().chain(named.map(|topic| topic.id)).collect()
    }

    fn forget_logs(&self, topic: Uuid) {
        // A cluster's logs are only forgotten here, which cannot fail.
        if let Err(error) = self.logs.delete_topic(TopicId(topic.into_bytes())) {
            tracing::warn!(%topic, %error, "failed to forget the logs of a deleted topic");
        }
    }
}
