//! Produce: values are sealed straight into the frame that is sent on. Partitions that cannot be
//! sealed are left out of it, and their errors are added to the answer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use moldau_encryption::{Error, KekId, KmsError, Recompression, SealOptions, Sealer, SealingKey};
use moldau_net::FRAME_BYTES_MAX_DEFAULT;
use moldau_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use moldau_protocol::messages::{ProduceRequest, ProduceResponse};
use moldau_protocol::produce::{PartitionRecords, ProduceRequestView, TopicRecords};
use moldau_protocol::{ErrorCode, Message, Uuid};
use moldau_records::iter_batches;
use tokio::time::Instant;

use super::counters::Cause;
use super::{BATCH_BYTES_MAX, KEYS_WITHIN, RecordEncryption, Turn, UnresolvedKey, lengths};
use crate::filter::RequestOutcome;
use crate::frame::{RequestFrame, ResponseFrame};
use crate::upstream::{FilterError, Upstream};

/// Partitions of a topic that were not sent.
#[derive(Debug)]
pub(super) struct Unsent {
    name: String,
    topic_id: Uuid,
    partitions: Vec<PartitionProduceResponse>,
}

/// What becomes of the records of a topic.
enum Plan {
    Plain,
    Seal(KekId),
    Refuse(Refusal),
}

/// Why a partition is not sent.
#[derive(Clone, Debug)]
struct Refusal {
    cause: Cause,
    code: ErrorCode,
    /// For the client, without anything of the proxy's own.
    message: &'static str,
    /// For the log.
    detail: String,
}

impl RecordEncryption {
    /// Seals the records of a produce request; the partitions for which that fails come back.
    pub(super) async fn seal(
        &self,
        request: RequestFrame,
        mut upstream: Upstream,
    ) -> Result<(RequestOutcome, Vec<Unsent>), FilterError> {
        let view = ProduceRequestView::parse(request.body(), request.api_version())?;
        view.check()?;
        let ids = view.topics().filter_map(|topic| topic.ok()?.id);
        self.topic_names.learn(ids, &mut upstream).await?;
        let mut sealing = Sealing {
            filter: self,
            deadline: Instant::now() + KEYS_WITHIN,
            flexible: request.api_version() >= ProduceRequest::FLEXIBLE_FROM,
            view: &view,
            asked_for_all: false,
            turn: Turn::begin(),
            out: Vec::new(),
        };
        if sealing.all_plain().await {
            view.topics().flatten().for_each(|topic| self.count_plain(&topic));
            return Ok((RequestOutcome::Forward(request), Vec::new()));
        }
        sealing.out = request.header_bytes();
        let (sent, unsent) = sealing.rewrite().await;
        let bytes = sealing.out;
        if unsent.is_empty() {
            return Ok((RequestOutcome::Forward(request.with_bytes(bytes)?), unsent));
        }
        if sent == 0 {
            let mut answer = ProduceResponse::default();
            add(&mut answer, unsent, request.api_version());
            return Ok((RequestOutcome::Respond(request.respond(&answer)?), Vec::new()));
        }
        let expects_response = request.expects_response();
        let request = request.with_bytes(bytes)?;
        Ok(match expects_response {
            true => (RequestOutcome::Forward(request), unsent),
            // Kafka too closes the connection of a producer that cannot be told of an error.
            false => (RequestOutcome::Close(Some(request)), Vec::new()),
        })
    }

    fn topic_name<'t>(&self, topic: &TopicRecords<'t>) -> Option<TopicName<'t>> {
        match (topic.name, topic.id) {
            (Some(name), _) => Some(TopicName::Told(name)),
            (None, Some(id)) => self.topic_names.get(id).map(TopicName::Learned),
            (None, None) => None,
        }
    }

    /// The alias of a topic's key.
    fn alias(&self, topic: &TopicRecords<'_>) -> Option<String> {
        self.topic_name(topic).map(|name| self.settings.template.alias(name.as_str()))
    }

    fn count_plain(&self, topic: &TopicRecords<'_>) {
        for records in topic.partitions().flatten().filter_map(|partition| partition.records) {
            self.counters.passed_plain(count(records));
        }
    }

    fn tell_refusal(&self, topic: &TopicRecords<'_>, partition: i32, refusal: &Refusal) {
        self.counters.not_sealed(refusal.cause);
        self.not_sealed.log(|unlogged| {
            let (error, code) = (&*refusal.detail, refusal.code);
            let name = self.topic_name(topic);
            let topic = name.as_ref().map(TopicName::as_str);
            tracing::warn!(topic, partition, ?code, error, unlogged, "records are not sealed");
        });
    }
}

/// The name of a topic.
enum TopicName<'t> {
    /// As it stands in the request.
    Told(&'t str),
    /// As the cluster told it.
    Learned(Arc<str>),
}

impl TopicName<'_> {
    fn as_str(&self) -> &str {
        match self {
            Self::Told(name) => name,
            Self::Learned(name) => name,
        }
    }
}

/// One request on its way into the frame that is sent.
struct Sealing<'f> {
    filter: &'f RecordEncryption,
    /// Until when keys may be waited for, of all topics together.
    deadline: Instant,
    flexible: bool,
    view: &'f ProduceRequestView<'f>,
    /// Whether the keys of all topics were asked for.
    asked_for_all: bool,
    turn: Turn,
    out: Vec<u8>,
}

impl Sealing<'_> {
    /// Whether no topic has a key.
    async fn all_plain(&mut self) -> bool {
        for topic in self.view.topics().flatten() {
            if !matches!(self.plan(&topic).await, Plan::Plain) {
                return false;
            }
        }
        true
    }

    /// Has the service asked for the keys of all topics at once, so that each is not waited for
    /// in its turn: first what their aliases lead to, then the data keys. Done when the first key
    /// is waited for; the outcomes show when each topic has its turn.
    async fn ask_for_all(&mut self) {
        if std::mem::replace(&mut self.asked_for_all, true) {
            return;
        }
        let keys = &self.filter.keys;
        let aliases = || self.view.topics().flatten().filter_map(|it| self.filter.alias(&it));
        for alias in aliases() {
            drop(keys.kek_now(&alias));
        }
        for alias in aliases() {
            if let Ok(kek) = super::by(self.deadline, keys.kek(&alias)).await {
                drop(keys.sealing_key_now(&kek, 0));
            }
        }
    }

    async fn plan(&mut self, topic: &TopicRecords<'_>) -> Plan {
        let RecordEncryption { settings, keys, .. } = self.filter;
        let Some(alias) = self.filter.alias(topic) else {
            let (cause, code) = (Cause::TopicId, ErrorCode::UnknownTopicId);
            let message = "the cluster does not know the topic id";
            let detail = message.to_owned();
            return Plan::Refuse(Refusal { cause, code, message, detail });
        };
        let kek = match keys.kek_now(&alias) {
            Some(kek) => kek,
            None => {
                self.ask_for_all().await;
                super::by(self.deadline, keys.kek(&alias)).await
            }
        };
        match (kek, settings.unresolved_key) {
            (Ok(kek), _) => Plan::Seal(kek),
            (Err(KmsError::UnknownKey(_)), UnresolvedKey::Passthrough) => Plan::Plain,
            (Err(error), _) => Plan::Refuse(Refusal::of_service(&error)),
        }
    }

    /// Appends what could be sealed, and says how many topics that are and what could not.
    async fn rewrite(&mut self) -> (usize, Vec<Unsent>) {
        let view = self.view;
        lengths::write_text(&mut self.out, view.transactional_id(), self.flexible);
        self.out.extend_from_slice(&view.acks().to_be_bytes());
        self.out.extend_from_slice(&view.timeout_ms().to_be_bytes());
        let (count_at, count) = (self.out.len(), view.topics().left());
        lengths::write(&mut self.out, count, self.flexible);
        let (mut sent, mut unsent) = (0, Vec::new());
        // The request was checked as a whole, so that no topic is an error.
        for topic in view.topics().flatten() {
            let refused = self.rewrite_topic(&topic).await;
            if refused.is_empty() || refused.len() < topic.partitions().left() {
                sent += 1;
            }
            if !refused.is_empty() {
                let name = topic.name.unwrap_or_default().to_owned();
                let topic_id = topic.id.unwrap_or_default();
                unsent.push(Unsent { name, topic_id, partitions: refused });
            }
        }
        lengths::correct(&mut self.out, count_at, count, sent, self.flexible);
        self.end_struct();
        (sent, unsent)
    }

    /// Appends a topic without the partitions that are refused, or nothing if all are.
    async fn rewrite_topic(&mut self, topic: &TopicRecords<'_>) -> Vec<PartitionProduceResponse> {
        let plan = self.plan(topic).await;
        let topic_at = self.out.len();
        match topic.id {
            Some(id) => self.out.extend_from_slice(id.as_bytes()),
            None => lengths::write_text(&mut self.out, topic.name, self.flexible),
        }
        let (count_at, count) = (self.out.len(), topic.partitions().left());
        lengths::write(&mut self.out, count, self.flexible);
        let mut refused = Vec::new();
        for partition in topic.partitions().flatten() {
            let partition_at = self.out.len();
            if let Err(refusal) = self.seal_partition(&plan, partition).await {
                self.out.truncate(partition_at);
                self.filter.tell_refusal(topic, partition.index, &refusal);
                refused.push(refusal.answer(partition.index));
            }
            self.turn.give_way().await;
        }
        if count > 0 && refused.len() == count {
            self.out.truncate(topic_at);
            return refused;
        }
        lengths::correct(&mut self.out, count_at, count, count - refused.len(), self.flexible);
        self.end_struct();
        refused
    }

    /// Appends a partition; what is appended means nothing after an error.
    async fn seal_partition(
        &mut self,
        plan: &Plan,
        partition: PartitionRecords<'_>,
    ) -> Result<(), Refusal> {
        self.out.extend_from_slice(&partition.index.to_be_bytes());
        match (plan, partition.records) {
            (Plan::Refuse(refusal), _) => return Err(refusal.clone()),
            (_, None) if self.flexible => self.out.push(0),
            (_, None) => self.out.extend_from_slice(&(-1_i32).to_be_bytes()),
            (Plan::Plain, Some(records)) => {
                self.filter.counters.passed_plain(count(records));
                lengths::write(&mut self.out, records.len(), self.flexible);
                self.out.extend_from_slice(records);
            }
            (Plan::Seal(kek), Some(records)) => {
                let length_at = self.out.len();
                lengths::write(&mut self.out, records.len(), self.flexible);
                let records_at = self.out.len();
                self.seal_batches(kek, records).await?;
                let sealed = self.out.len() - records_at;
                lengths::correct(&mut self.out, length_at, records.len(), sealed, self.flexible);
            }
        }
        self.end_struct();
        self.check_size()
    }

    fn check_size(&self) -> Result<(), Refusal> {
        match self.out.len() > FRAME_BYTES_MAX_DEFAULT {
            true => Err(Refusal::too_large("the sealed request would be too large".to_owned())),
            false => Ok(()),
        }
    }

    async fn seal_batches(&mut self, kek: &KekId, records: &[u8]) -> Result<(), Refusal> {
        let mut batches = iter_batches(records);
        for batch in batches.by_ref() {
            let batch = batch.map_err(|error| Refusal::of_batch(&error.into()))?;
            let recompression = self.filter.settings.recompression;
            let checked = with_sealer(recompression, |sealer| sealer.check_count(&batch));
            checked.map_err(|error| Refusal::of_batch(&error))?;
            let count = u32::try_from(batch.records_count()).unwrap_or_default();
            let key = self.sealing_key(kek, count).await;
            let key = key.map_err(|error| Refusal::of_service(&error))?;
            let out = &mut self.out;
            let sealed = with_sealer(recompression, |sealer| sealer.seal(&batch, &key, out));
            self.filter.counters.sealed(sealed.map_err(|error| Refusal::of_batch(&error))?);
            // What is sealed may be thousands of times what came.
            self.check_size()?;
            self.turn.give_way().await;
        }
        if batches.remainder().is_empty() {
            return Ok(());
        }
        Err(Refusal::damaged("the records end within a batch".to_owned()))
    }

    async fn sealing_key(
        &mut self,
        kek: &KekId,
        records: u32,
    ) -> Result<Arc<SealingKey>, KmsError> {
        let keys = &self.filter.keys;
        match keys.sealing_key_now(kek, records) {
            Some(key) => key,
            None => {
                self.ask_for_all().await;
                super::by(self.deadline, keys.sealing_key(kek, records)).await
            }
        }
    }

    /// Ends a struct without tagged fields; none are defined for produce requests.
    fn end_struct(&mut self) {
        if self.flexible {
            self.out.push(0);
        }
    }
}

impl Refusal {
    fn of_service(error: &KmsError) -> Self {
        let (cause, code, message) = match error {
            KmsError::UnknownKey(_) => {
                (Cause::NoKey, ErrorCode::InvalidRecord, "the topic has no key to encrypt with")
            }
            _ => (
                Cause::Service,
                ErrorCode::KafkaStorageError,
                "the key of the topic cannot be had at the moment",
            ),
        };
        Self { cause, code, message, detail: error.to_string() }
    }

    fn of_batch(error: &Error) -> Self {
        use moldau_records::Error as Batch;
        let detail = error.to_string();
        match error {
            Error::BatchTooLarge { .. } | Error::Batch(Batch::PayloadTooLarge { .. }) => {
                Self::too_large(detail)
            }
            Error::Batch(Batch::UnsupportedMagic { .. } | Batch::UnknownMagic { .. }) => Self {
                cause: Cause::Damage,
                code: ErrorCode::InvalidRecord,
                message: "records need format 2 to be encrypted",
                detail,
            },
            _ => Self::damaged(detail),
        }
    }

    fn too_large(detail: String) -> Self {
        let (cause, code) = (Cause::Size, ErrorCode::MessageTooLarge);
        Self { cause, code, message: "the batch is too large once it is encrypted", detail }
    }

    fn damaged(detail: String) -> Self {
        let (cause, code) = (Cause::Damage, ErrorCode::CorruptMessage);
        Self { cause, code, message: "the batch is damaged", detail }
    }

    fn answer(&self, index: i32) -> PartitionProduceResponse {
        PartitionProduceResponse {
            index,
            error_code: self.code.into(),
            base_offset: -1,
            error_message: Some(self.message.to_owned()),
            ..PartitionProduceResponse::default()
        }
    }
}

/// Adds the partitions that were not sent to the answer about the others.
pub(super) fn add_unsent(
    response: ResponseFrame,
    unsent: Vec<Unsent>,
) -> Result<ResponseFrame, FilterError> {
    if unsent.is_empty() {
        return Ok(response);
    }
    let mut answer: ProduceResponse = response.decode()?;
    add(&mut answer, unsent, response.api_version());
    Ok(response.with_message(&answer)?)
}

/// A client chooses how many topics that concerns, so none is looked for in a list.
fn add(answer: &mut ProduceResponse, unsent: Vec<Unsent>, version: i16) {
    let told = answer.responses.iter().enumerate();
    let mut places: HashMap<(String, Uuid), usize> = HashMap::with_capacity(told.len());
    for (at, topic) in told {
        places.entry((topic.name.clone(), topic.topic_id)).or_insert(at);
    }
    for Unsent { name, topic_id, mut partitions } in unsent {
        if version < 8 {
            partitions.iter_mut().for_each(|partition| partition.error_message = None);
        }
        let end = answer.responses.len();
        let at = *places.entry((name.clone(), topic_id)).or_insert(end);
        match answer.responses.get_mut(at) {
            Some(topic) => topic.partition_responses.append(&mut partitions),
            None => answer.responses.push(TopicProduceResponse {
                name,
                topic_id,
                partition_responses: partitions,
                ..TopicProduceResponse::default()
            }),
        }
    }
}

/// Records that batches say they hold.
fn count(records: &[u8]) -> u64 {
    let batches = iter_batches(records).flatten();
    batches.map(|batch| u64::try_from(batch.records_count()).unwrap_or_default()).sum()
}

/// Lends the thread's sealer, whose buffers are worth keeping.
fn with_sealer<T>(recompression: Recompression, work: impl FnOnce(&mut Sealer) -> T) -> T {
    thread_local! {
        /// One for each way to compress that the filters of this process use.
        static SEALERS: RefCell<Vec<(Recompression, Sealer)>> = const { RefCell::new(Vec::new()) };
    }
    SEALERS.with_borrow_mut(|sealers| {
        let place = sealers.iter().position(|(of, _)| *of == recompression);
        let place = place.unwrap_or_else(|| {
            let options = SealOptions { bytes_max: BATCH_BYTES_MAX, recompression };
            sealers.push((recompression, Sealer::new(options)));
            sealers.len() - 1
        });
        let (_, sealer) = sealers.get_mut(place).expect("it was found or added");
        work(sealer)
    })
}
