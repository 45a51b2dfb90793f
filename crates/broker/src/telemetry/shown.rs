//! What clients pushed, as `/metrics` shows it: the last value of each gauge, and each sum.
//!
//! The labels are the client's instance id and client id, then the attributes of the point and of
//! its resource. A client that does not push any more is forgotten with its values. New values
//! above a limit are dropped and counted.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;

use moldau_protocol::Uuid;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use super::otlp::{Kind, Point, Temporality};
use super::subscriptions::Client;

/// Memory of the values of one client and of all of them, in bytes. A Java client that pushes
/// all of its metrics takes 100 KB.
const CLIENT_BYTES_MAX: usize = 1 << 20;
const BYTES_MAX: usize = 32 << 20;

/// Memory of a value, and of a client, but for their texts.
const SERIES_BYTES: usize = 160;
const CLIENT_BYTES: usize = 512;

/// Points of one push that are looked at: a scrape shows all of them.
const POINTS_MAX: usize = 10_000;

/// Longest value of a label.
const LABEL_BYTES_MAX: usize = 512;

/// Longest name of a metric or label.
const NAME_BYTES_MAX: usize = 200;

/// Names that the broker's own metrics begin with.
const OWN_NAMES: &str = "moldau";

/// The labels that the broker adds.
const INSTANCE_ID: &str = "client_instance_id";
const CLIENT_ID: &str = "client_id";

const HELP: &str = "Pushed by Kafka clients";

type Labels = Box<[(Box<str>, Box<str>)]>;

/// The name that is shown, and the labels.
type Key = (Box<str>, Labels);

#[derive(Debug)]
struct Series {
    kind: Kind,
    value: f64,
}

#[derive(Debug)]
struct ClientValues {
    client: Client,
    series: HashMap<Key, Series>,
    bytes: usize,
    forgotten_ms: i64,
}

/// The values of all clients.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    clients: BTreeMap<Uuid, ClientValues>,
    /// Who is forgotten when.
    forgotten: BTreeSet<(i64, Uuid)>,
    /// Which names are of which kind, with the number of their series.
    kinds: HashMap<Box<str>, (Kind, usize)>,
    bytes: usize,
    /// Values that found no room.
    pub(crate) dropped: u64,
}

impl Shown {
    /// Values that are shown.
    pub(crate) fn len(&self) -> usize {
        self.clients.values().map(|client| client.series.len()).sum()
    }

    /// A client pushes, and is to be known for so long if it does not again. Returns where its
    /// values go; `None` if there is no room for it.
    pub(crate) fn of(
        &mut self,
        client: &Client,
        forgotten_ms: i64,
        now_ms: i64,
    ) -> Option<PushedValues<'_>> {
        self.forget(now_ms);
        let id = client.instance_id;
        if let Some(known) = self.clients.get_mut(&id) {
            self.forgotten.remove(&(known.forgotten_ms, id));
            known.forgotten_ms = forgotten_ms;
        } else {
            let mut client = client.clone();
            client.client_id.truncate(client.client_id.floor_char_boundary(LABEL_BYTES_MAX));
            let bytes = CLIENT_BYTES + client.client_id.len() + client.principal.len();
            if self.bytes.saturating_add(bytes) > BYTES_MAX {
                self.dropped += 1;
                return None;
            }
            self.bytes += bytes;
            let series = HashMap::new();
            self.clients.insert(id, ClientValues { client, series, bytes, forgotten_ms });
        }
        self.forgotten.insert((forgotten_ms, id));
        Some(PushedValues { shown: self, id, points: 0 })
    }

    /// Forgets clients whose time is over.
    pub(crate) fn forget(&mut self, now_ms: i64) {
        while let Some((forgotten_ms, id)) = self.forgotten.first().copied()
            && forgotten_ms <= now_ms
        {
            self.forgotten.pop_first();
            let Some(client) = self.clients.remove(&id) else { continue };
            self.bytes = self.bytes.saturating_sub(client.bytes);
            for ((name, _), _) in client.series {
                if let Some((_, count)) = self.kinds.get_mut(&name) {
                    *count -= 1;
                    if *count == 0 {
                        self.kinds.remove(&name);
                    }
                }
            }
        }
    }

    /// Writes all values for a scrape.
    ///
    /// # Errors
    /// The encoder's own.
    pub(crate) fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.encode_clients(encoder)?;
        let mut families: BTreeMap<&str, Vec<(&Client, &Labels, &Series)>> = BTreeMap::new();
        for values in self.clients.values() {
            for ((name, labels), series) in &values.series {
                families.entry(name).or_default().push((&values.client, labels, series));
            }
        }
        for (name, family) in families {
            let Some((kind, _)) = self.kinds.get(name) else { continue };
            let metric_type = match kind {
                Kind::Gauge => MetricType::Gauge,
                Kind::Counter => MetricType::Counter,
            };
            let mut described = encoder.encode_descriptor(name, HELP, None, metric_type)?;
            for (client, labels, series) in family {
                let instance_id = client.instance_id.to_string();
                let own = [(INSTANCE_ID, instance_id.as_str()), (CLIENT_ID, &client.client_id)];
                let labels = labels.iter().map(|(name, value)| (&**name, &**value));
                let labels: Vec<(&str, &str)> = own.into_iter().chain(labels).collect();
                let encoder = described.encode_family(&labels)?;
                match series.kind {
                    Kind::Gauge => ConstGauge::new(series.value).encode(encoder)?,
                    Kind::Counter => ConstCounter::new(series.value).encode(encoder)?,
                }
            }
        }
        Ok(())
    }

    fn encode_clients(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Clients that push metrics";
        let name = "moldau_telemetry_client_info";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for values in self.clients.values() {
            let mut labels = values.client.parameters().to_vec();
            labels.push(("principal", values.client.principal.clone()));
            ConstGauge::new(1_i64).encode(family.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// Where the values of one push go.
pub(crate) struct PushedValues<'a> {
    shown: &'a mut Shown,
    id: Uuid,
    points: usize,
}

impl PushedValues<'_> {
    /// Takes one value over.
    pub(crate) fn put(&mut self, point: &Point<'_>) {
        self.points += 1;
        if self.points > POINTS_MAX || self.try_put(point).is_none() {
            self.shown.dropped += 1;
        }
    }

    fn try_put(&mut self, point: &Point<'_>) -> Option<()> {
        let key = key(point)?;
        let client = self.shown.clients.get_mut(&self.id)?;
        // A name has one type on a page.
        let known = self.shown.kinds.get(&key.0).copied();
        let (kind, count) = known.unwrap_or((point.kind, 0));
        if kind != point.kind {
            return None;
        }
        if let Some(series) = client.series.get_mut(&key) {
            series.value = match point.temporality {
                Temporality::Delta => series.value + point.value,
                Temporality::Cumulative => point.value,
            };
            return Some(());
        }
        let texts: usize = key.1.iter().map(|(name, value)| name.len() + value.len() + 32).sum();
        let bytes = SERIES_BYTES + client.client.client_id.len() + key.0.len() + texts;
        let is_full = client.bytes.saturating_add(bytes) > CLIENT_BYTES_MAX
            || self.shown.bytes.saturating_add(bytes) > BYTES_MAX;
        if is_full {
            return None;
        }
        self.shown.kinds.insert(key.0.clone(), (kind, count + 1));
        client.bytes += bytes;
        self.shown.bytes += bytes;
        client.series.insert(key, Series { kind, value: point.value });
        Some(())
    }
}

/// The name and the labels of a point; `None` for those that are not shown.
fn key(point: &Point<'_>) -> Option<Key> {
    let name = shown_name(point.name)?;
    // The encoder ends the name of a counter with it, and no other name may end so.
    let name = name.strip_suffix("_total").unwrap_or(&name);
    if name.is_empty() || name.starts_with(OWN_NAMES) {
        return None;
    }
    let mut labels: BTreeMap<String, Box<str>> = BTreeMap::new();
    for (name, value) in point.resource.iter().chain(&point.labels) {
        let name = shown_name(name)?;
        if value.len() > LABEL_BYTES_MAX {
            return None;
        }
        if name != INSTANCE_ID && name != CLIENT_ID {
            labels.insert(name, (**value).into());
        }
    }
    let labels = labels.into_iter().map(|(name, value)| (name.into_boxed_str(), value));
    Some((name.into(), labels.collect()))
}

/// A name of letters, digits and underscores, as Prometheus demands; `None` for one that is too
/// long.
fn shown_name(name: &str) -> Option<String> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return None;
    }
    let allowed = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '_' };
    let shown: String = name.chars().map(allowed).collect();
    Some(match shown.starts_with(|letter: char| letter.is_ascii_digit()) {
        true => format!("_{shown}"),
        false => shown,
    })
}
