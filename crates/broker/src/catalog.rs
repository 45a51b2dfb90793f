//! The topics of the broker: which exist, how many partitions each has, how it is configured.
//!
//! A change is one metadata record in the journal. It is appended under the write lock, so that
//! the journal holds the changes in the order in which the catalog saw them, and a produce to a
//! topic always comes after the record that made the topic.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use moldau_protocol::{ErrorCode, Uuid};

use crate::config::LEADER_EPOCH;
use crate::error::{Refusal, append_refusal};
use crate::group_service::GroupService;
use crate::logs::{Logs, Lsn, TopicId};
use crate::metadata_record::MetadataRecord;
use crate::storage::Storage;
use crate::topic_config::{DefaultSource, TopicConfig, TopicDefaults, TopicOverrides, shown};
use crate::topic_logs::TopicLogs;
use crate::topic_names::{MetricNames, check_name, check_ordinary};

/// Most partitions of one topic: clients keep some hundred bytes for each, all at once.
pub(crate) const TOPIC_PARTITIONS_MAX: u32 = 2_000_000;

/// Most partitions of all topics. Metadata can be asked for all of them, at up to 34 bytes each,
/// and the length of a frame is an `i32`.
pub(crate) const PARTITIONS_MAX: u64 = 32_000_000;

/// One topic at one moment; a change makes another value.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) id: Uuid,
    pub(crate) name: Arc<str>,
    pub(crate) partitions: u32,
    pub(crate) overrides: TopicOverrides,
    pub(crate) config: TopicConfig,
    pub(crate) logs: Arc<TopicLogs>,
}

impl Topic {
    /// Whether the topic has a partition of this index.
    pub(crate) fn has(&self, partition: i32) -> bool {
        u32::try_from(partition).is_ok_and(|partition| partition < self.partitions)
    }

    /// The index after the last partition.
    pub(crate) fn partitions_end(&self) -> i32 {
        i32::try_from(self.partitions).expect("bounded by TOPIC_PARTITIONS_MAX")
    }
}

/// All topics.
#[derive(Debug)]
pub(crate) struct Catalog {
    /// Guards the topics and their defaults; never held while waiting for anything but the
    /// journal's buffer.
    topics: RwLock<Topics>,
}

#[derive(Debug, Default)]
struct Topics {
    /// What topics have where they override nothing.
    defaults: Arc<TopicDefaults>,
    by_name: BTreeMap<Arc<str>, Arc<Topic>>,
    by_id: HashMap<Uuid, Arc<Topic>>,
    metric_names: MetricNames,
    /// Partitions of all topics.
    partitions: u64,
    /// Grows with every change.
    version: u64,
}

/// The topics at one moment. Groups may be locked while it is held, never the other way round.
pub(crate) struct CatalogView<'a>(&'a Topics);

impl CatalogView<'_> {
    /// A number that differs between any two states of the catalog.
    pub(crate) fn version(&self) -> u64 {
        self.0.version
    }

    /// The topic of a name.
    pub(crate) fn by_name(&self, name: &str) -> Option<&Topic> {
        self.0.by_name.get(name).map(Arc::as_ref)
    }

    /// Names of all topics.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.by_name.keys().map(Arc::as_ref)
    }
}

impl Topics {
    fn put(&mut self, topic: Topic) -> Arc<Topic> {
        self.version += 1;
        let topic = Arc::new(topic);
        self.by_name.insert(Arc::clone(&topic.name), Arc::clone(&topic));
        let before = self.by_id.insert(topic.id, Arc::clone(&topic));
        if before.is_none() {
            self.metric_names.add(&topic.name);
        }
        self.partitions -= before.map_or(0, |before| u64::from(before.partitions));
        self.partitions += u64::from(topic.partitions);
        topic
    }

    fn remove(&mut self, id: Uuid) -> Option<Arc<Topic>> {
        let topic = self.by_id.remove(&id)?;
        self.version += 1;
        self.by_name.remove(&topic.name);
        self.metric_names.remove(&topic.name);
        self.partitions -= u64::from(topic.partitions);
        Some(topic)
    }

    fn apply(&mut self, record: MetadataRecord) -> Result<(), String> {
        match record {
            MetadataRecord::TopicCreated { id, name, partitions, overrides } => {
                check_stored(partitions)?;
                let config = TopicConfig::restore(&overrides, &self.defaults)?;
                let id = Uuid::from_bytes(id);
                let logs = Arc::default();
                self.put(Topic { id, name: name.into(), partitions, overrides, config, logs });
            }
            MetadataRecord::TopicDeleted { id } => {
                self.remove(Uuid::from_bytes(id));
            }
            MetadataRecord::PartitionsGrown { id, partitions } => {
                check_stored(partitions)?;
                let topic = self.existing(Uuid::from_bytes(id))?;
                self.put(Topic { partitions, ..topic });
            }
            MetadataRecord::TopicConfigured { id, overrides } => {
                let topic = self.existing(Uuid::from_bytes(id))?;
                let config = TopicConfig::restore(&overrides, &self.defaults)?;
                self.put(Topic { overrides, config, ..topic });
            }
            MetadataRecord::DefaultsChanged { source, values } => {
                self.change_defaults(self.defaults.replaced(source, &values)?)?;
            }
            MetadataRecord::Group(_)
            | MetadataRecord::ProducerIds(_)
            | MetadataRecord::Transaction(_)
            | MetadataRecord::Share(_)
            | MetadataRecord::AclsChanged { .. }
            | MetadataRecord::ClientQuotasChanged(_)
            | MetadataRecord::ClientMetricsConfigured { .. }
            | MetadataRecord::ClusterBegun { .. }
            | MetadataRecord::ScramCredentialsChanged(_) => {}
        }
        Ok(())
    }

    /// Gives all topics other defaults: a search over all, since reads of a topic's configuration
    /// are many and changes of the defaults few.
    fn change_defaults(&mut self, defaults: TopicDefaults) -> Result<(), String> {
        let unchanged = TopicConfig::restore(&TopicOverrides::new(), &defaults)?;
        for by_name in self.by_name.values_mut() {
            let config = match by_name.overrides.is_empty() {
                true => unchanged.clone(),
                false => TopicConfig::restore(&by_name.overrides, &defaults)?,
            };
            let topic = Arc::new(Topic { config, ..Topic::clone(by_name) });
            self.by_id.insert(topic.id, Arc::clone(&topic));
            *by_name = topic;
        }
        self.defaults = Arc::new(defaults);
        self.version += 1;
        Ok(())
    }

    fn check_growth(&self, topic: &Topic, partitions: u32) -> Result<(), Refusal> {
        if partitions <= topic.partitions {
            let message = match partitions == topic.partitions {
                true => format!("Topic already has {partitions} partition(s)."),
                false => format!(
                    "The topic {} currently has {} partition(s); {partitions} would not be an \
                     increase.",
                    topic.name, topic.partitions
                ),
            };
            return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
        }
        self.check_room(partitions, partitions - topic.partitions)
    }

    /// Whether a topic can have `partitions` partitions, of which `added` are not there yet.
    fn check_room(&self, partitions: u32, added: u32) -> Result<(), Refusal> {
        if partitions <= TOPIC_PARTITIONS_MAX
            && self.partitions + u64::from(added) <= PARTITIONS_MAX
        {
            return Ok(());
        }
        let message = format!(
            "a topic can have {TOPIC_PARTITIONS_MAX} partitions, and all topics together \
             {PARTITIONS_MAX}, of which {} exist",
            self.partitions
        );
        Err(Refusal::new(ErrorCode::PolicyViolation, message))
    }

    fn existing(&self, id: Uuid) -> Result<Topic, String> {
        let topic = self.by_id.get(&id).ok_or_else(|| format!("unknown topic id {id}"))?;
        Ok(Topic::clone(topic))
    }
}

impl Catalog {
    /// A catalog without topics.
    pub(crate) fn new(defaults: TopicDefaults) -> Self {
        let topics = Topics { defaults: Arc::new(defaults), ..Topics::default() };
        Self { topics: RwLock::new(topics) }
    }

    /// Applies a record that the journal holds.
    ///
    /// # Errors
    /// Says why the record cannot follow those before it.
    pub(crate) fn replay(&self, record: MetadataRecord) -> Result<(), String> {
        self.write().apply(record)
    }

    /// Takes the topics of another catalog in place of these.
    pub(crate) fn replace(&self, by: Self) {
        let mut by = by.topics.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut topics = self.write();
        by.version += topics.version + 1;
        *topics = by;
    }

    /// The topic of a name.
    pub(crate) fn by_name(&self, name: &str) -> Option<Arc<Topic>> {
        self.read().by_name.get(name).cloned()
    }

    /// Whether a topic might have this name, and none has it.
    pub(crate) fn is_unknown(&self, name: &str) -> bool {
        check_name(name).is_ok() && !self.read().by_name.contains_key(name)
    }

    /// The topic of an id.
    pub(crate) fn by_id(&self, id: Uuid) -> Option<Arc<Topic>> {
        self.read().by_id.get(&id).cloned()
    }

    /// Looks at the topics, which do not change meanwhile.
    pub(crate) fn view<T>(&self, look: impl FnOnce(&CatalogView<'_>) -> T) -> T {
        look(&CatalogView(&self.read()))
    }

    /// Every topic, in the order of names.
    pub(crate) fn all(&self) -> Vec<Arc<Topic>> {
        self.read().by_name.values().cloned().collect()
    }

    /// Topics of a name not before `first`, in the order of names, at most `count`.
    pub(crate) fn named_from(&self, first: &str, count: usize) -> Vec<Arc<Topic>> {
        let topics = self.read();
        let range = topics
            .by_name
            .range::<str, _>((std::ops::Bound::Included(first), std::ops::Bound::Unbounded));
        range.take(count).map(|(_, topic)| Arc::clone(topic)).collect()
    }

    /// Creates a topic; it is there once the returned position is durable.
    ///
    /// # Errors
    /// `TOPIC_ALREADY_EXISTS`, a name, size or configuration that is not accepted, or a journal
    /// that takes nothing.
    pub(crate) fn create(
        &self,
        storage: &Storage,
        name: &str,
        partitions: u32,
        overrides: TopicOverrides,
    ) -> Result<(Arc<Topic>, Lsn), Refusal> {
        storage.control()?;
        let mut topics = self.write();
        check_absent(&topics, name)?;
        let config = check_topic(&topics, name, partitions, &overrides)?;
        let id = fresh_id(&topics);
        let record = MetadataRecord::TopicCreated {
            id: id.into_bytes(),
            name: name.to_owned(),
            partitions,
            overrides: overrides.clone(),
        };
        let lsn = append(storage, &record)?;
        let logs = Arc::default();
        let topic = Topic { id, name: name.into(), partitions, overrides, config, logs };
        Ok((topics.put(topic), lsn))
    }

    /// Creates those of the topics that do not exist, in one frame: all of them or none. They are
    /// there once the returned position is durable; `None` if all exist.
    ///
    /// # Errors
    /// As [`Catalog::create`].
    pub(crate) fn create_together(
        &self,
        storage: &Storage,
        wanted: Vec<(String, u32, TopicOverrides)>,
    ) -> Result<Option<Lsn>, Refusal> {
        storage.control()?;
        let mut topics = self.write();
        let (mut records, mut created, mut added) = (Vec::new(), Vec::new(), 0_u32);
        for (name, partitions, overrides) in wanted {
            if topics.by_name.contains_key(name.as_str()) {
                continue;
            }
            let config = check_topic(&topics, &name, partitions, &overrides)?;
            added = added.saturating_add(partitions);
            topics.check_room(partitions, added)?;
            let id = fresh_id(&topics);
            let record = MetadataRecord::TopicCreated {
                id: id.into_bytes(),
                name: name.clone(),
                partitions,
                overrides: overrides.clone(),
            };
            records.push(record.encode());
            let logs = Arc::default();
            created.push(Topic { id, name: name.into(), partitions, overrides, config, logs });
        }
        if created.is_empty() {
            return Ok(None);
        }
        let appended = storage.append_together(&records, &[], LEADER_EPOCH);
        let lsn = appended.map_err(|error| append_refusal(&error))?;
        created.into_iter().for_each(|topic| drop(topics.put(topic)));
        Ok(Some(lsn))
    }

    /// What [`Catalog::create`] would say, without creating anything.
    ///
    /// # Errors
    /// As [`Catalog::create`].
    pub(crate) fn check_create(
        &self,
        name: &str,
        partitions: u32,
        overrides: &TopicOverrides,
    ) -> Result<TopicConfig, Refusal> {
        let topics = self.read();
        check_absent(&topics, name)?;
        check_topic(&topics, name, partitions, overrides)
    }

    /// Deletes a topic, its data and the offsets that groups committed for it.
    ///
    /// One record decides: it stands for the offsets too, and a log without a topic is deleted by
    /// whoever finds it, the broker's timer or the next start.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC_ID`, or a journal that takes nothing; nothing is deleted then.
    pub(crate) fn delete(
        &self,
        (storage, logs): (&Storage, &Logs),
        groups: &GroupService,
        id: Uuid,
    ) -> Result<Lsn, Refusal> {
        storage.control()?;
        let mut topics = self.write();
        let topic = topics.by_id.get(&id).cloned().ok_or_else(|| unknown_id(id))?;
        let record = MetadataRecord::TopicDeleted { id: id.into_bytes() };
        let lsn = groups.topic_deleted(storage, &topic.name, || append(storage, &record))?;
        topics.remove(id);
        topic.logs.delete();
        if let Err(error) = logs.delete_topic(TopicId(id.into_bytes())) {
            let name = &*topic.name;
            tracing::warn!(name, %error, "failed to free the space of a deleted topic, will retry");
        }
        Ok(lsn)
    }

    /// Raises the number of partitions of a topic to `partitions`.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC_OR_PARTITION`, `INVALID_PARTITIONS` for a count that is no increase,
    /// `POLICY_VIOLATION` for one over the limits, or a journal that takes nothing.
    pub(crate) fn grow(
        &self,
        storage: &Storage,
        name: &str,
        partitions: u32,
    ) -> Result<Lsn, Refusal> {
        storage.control()?;
        let mut topics = self.write();
        let topic = topics.by_name.get(name).cloned().ok_or_else(|| unknown_name(name))?;
        topics.check_growth(&topic, partitions)?;
        let id = topic.id.into_bytes();
        let lsn = append(storage, &MetadataRecord::PartitionsGrown { id, partitions })?;
        topics.put(Topic { partitions, ..Topic::clone(&topic) });
        Ok(lsn)
    }

    /// What [`Catalog::grow`] would say, without changing anything; returns the topic.
    ///
    /// # Errors
    /// As [`Catalog::grow`].
    pub(crate) fn check_growth(&self, name: &str, partitions: u32) -> Result<Arc<Topic>, Refusal> {
        let topics = self.read();
        let topic = topics.by_name.get(name).cloned().ok_or_else(|| unknown_name(name))?;
        topics.check_growth(&topic, partitions)?;
        Ok(topic)
    }

    /// Replaces the overrides of a topic by what `change` makes of them.
    ///
    /// # Errors
    /// `UNKNOWN_TOPIC_OR_PARTITION`, what `change` says, `INVALID_CONFIG`, or a journal that takes
    /// nothing. With `validate_only` nothing is changed and no position returned.
    pub(crate) fn configure(
        &self,
        storage: &Storage,
        name: &str,
        validate_only: bool,
        change: impl FnOnce(&mut TopicOverrides) -> Result<(), Refusal>,
    ) -> Result<Option<Lsn>, Refusal> {
        storage.control()?;
        let mut topics = self.write();
        let topic = topics.by_name.get(name).cloned().ok_or_else(|| unknown_name(name))?;
        let mut overrides = topic.overrides.clone();
        change(&mut overrides)?;
        let config = TopicConfig::parse(&overrides, &topics.defaults)
            .map_err(|problem| Refusal::new(ErrorCode::InvalidConfig, problem))?;
        if validate_only {
            return Ok(None);
        }
        let id = topic.id.into_bytes();
        let record = MetadataRecord::TopicConfigured { id, overrides: overrides.clone() };
        let lsn = append(storage, &record)?;
        topics.put(Topic { overrides, config, ..Topic::clone(&topic) });
        Ok(Some(lsn))
    }

    /// What topics have where they override nothing.
    pub(crate) fn defaults(&self) -> Arc<TopicDefaults> {
        Arc::clone(&self.read().defaults)
    }

    /// Replaces what a source gives topics by default by what `change` makes of it. That may use
    /// the defaults in force.
    ///
    /// # Errors
    /// What `change` says, `INVALID_REQUEST` for a value that is not accepted, or a journal that
    /// takes nothing. With `validate_only` nothing is changed and no position returned.
    pub(crate) fn configure_defaults(
        &self,
        storage: &Storage,
        source: DefaultSource,
        validate_only: bool,
        change: impl FnOnce(&mut TopicOverrides, &TopicDefaults) -> Result<(), Refusal>,
    ) -> Result<Option<Lsn>, Refusal> {
        let invalid = |problem| Refusal::new(ErrorCode::InvalidRequest, problem);
        storage.control()?;
        let mut topics = self.write();
        let mut values = topics.defaults.given_by(source);
        change(&mut values, &topics.defaults)?;
        let defaults = topics.defaults.replaced(source, &values).map_err(invalid)?;
        TopicConfig::parse(&TopicOverrides::new(), &defaults).map_err(invalid)?;
        if validate_only {
            return Ok(None);
        }
        let lsn = append(storage, &MetadataRecord::DefaultsChanged { source, values })?;
        topics.change_defaults(defaults).map_err(invalid)?;
        Ok(Some(lsn))
    }

    /// Hands over the records that rebuild the catalog, which does not change meanwhile.
    pub(crate) fn with_snapshot<T>(&self, take: impl FnOnce(Vec<MetadataRecord>) -> T) -> T {
        let topics = self.read();
        let sources = [DefaultSource::Broker, DefaultSource::Cluster];
        let defaults = sources.into_iter().filter_map(|source| {
            let values = topics.defaults.given_by(source);
            (!values.is_empty()).then_some(MetadataRecord::DefaultsChanged { source, values })
        });
        let created = topics.by_name.values().map(|topic| MetadataRecord::TopicCreated {
            id: topic.id.into_bytes(),
            name: topic.name.to_string(),
            partitions: topic.partitions,
            overrides: topic.overrides.clone(),
        });
        take(defaults.chain(created).collect())
    }

    fn read(&self) -> RwLockReadGuard<'_, Topics> {
        self.topics.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Topics> {
        self.topics.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `UNKNOWN_TOPIC_OR_PARTITION` for a name.
pub(crate) fn unknown_name(name: &str) -> Refusal {
    let message = format!("The topic '{}' does not exist.", shown(name));
    Refusal::new(ErrorCode::UnknownTopicOrPartition, message)
}

/// `UNKNOWN_TOPIC_ID` for an id.
pub(crate) fn unknown_id(id: Uuid) -> Refusal {
    Refusal::new(ErrorCode::UnknownTopicId, format!("unknown topic id {id}"))
}

fn check_topic(
    topics: &Topics,
    name: &str,
    partitions: u32,
    overrides: &TopicOverrides,
) -> Result<TopicConfig, Refusal> {
    check_name(name)?;
    check_ordinary(name)?;
    topics.metric_names.check(name)?;
    if partitions == 0 {
        let message = "Number of partitions was set to an invalid non-positive value.";
        return Err(Refusal::new(ErrorCode::InvalidPartitions, message));
    }
    topics.check_room(partitions, partitions)?;
    TopicConfig::parse(overrides, &topics.defaults)
        .map_err(|problem| Refusal::new(ErrorCode::InvalidConfig, problem))
}

fn append(storage: &Storage, record: &MetadataRecord) -> Result<Lsn, Refusal> {
    storage.write(&record.encode())
}

fn check_stored(partitions: u32) -> Result<(), String> {
    match partitions <= TOPIC_PARTITIONS_MAX {
        true => Ok(()),
        false => Err(format!("a topic of {partitions} partitions")),
    }
}

fn check_absent(topics: &Topics, name: &str) -> Result<(), Refusal> {
    if topics.by_name.contains_key(name) {
        let message = format!("Topic '{name}' already exists.");
        return Err(Refusal::new(ErrorCode::TopicAlreadyExists, message));
    }
    Ok(())
}

fn fresh_id(topics: &Topics) -> Uuid {
    loop {
        let id = Uuid::from_bytes(fastrand::u128(..).to_be_bytes());
        // Kafka reserves the ids 0 and 1, and one that prints with a leading dash confuses tools.
        let reserved = id.into_bytes()[..15] == [0; 15] || id.to_string().starts_with('-');
        if !reserved && !topics.by_id.contains_key(&id) {
            return id;
        }
    }
}
