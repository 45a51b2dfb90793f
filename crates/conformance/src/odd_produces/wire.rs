//! The few requests that the cases need, written by hand.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::batch::Fields;

/// How a produce ends that wants no answer and gets none.
pub(super) const UNANSWERED: &str = "no answer";

/// Far beyond what an answer takes.
const PATIENCE: Duration = Duration::from_secs(30);

const PRODUCE: i16 = 0;
const FETCH: i16 = 1;
const CREATE_TOPICS: i16 = 19;

/// Versions without compact fields, each with all that a case looks at.
const FETCH_VERSION: i16 = 4;
const CREATE_TOPICS_VERSION: i16 = 4;

/// A connection that is made anew where the server closed it.
pub(super) struct Client {
    address: String,
    stream: Option<TcpStream>,
    correlation: i32,
}

/// The partitions of a topic in a produce: index and records.
pub(super) type Parts = Vec<(i32, Option<Vec<u8>>)>;

/// A produce of version 0 to 8.
pub(super) struct Produce {
    pub(super) version: i16,
    pub(super) acks: i16,
    pub(super) transactional_id: Option<&'static str>,
    pub(super) topics: Vec<(String, Parts)>,
}

impl Client {
    pub(super) fn new(address: &str) -> Self {
        Self { address: address.to_owned(), stream: None, correlation: 0 }
    }

    /// Creates topics of these partitions and configurations, and waits until all can be fetched.
    pub(super) fn create(
        &mut self,
        name: &str,
        partitions: i32,
        configs: &[(&str, &str)],
    ) -> Result<()> {
        let mut body = 1i32.to_be_bytes().to_vec();
        text(&mut body, Some(name));
        body.extend_from_slice(&partitions.to_be_bytes());
        body.extend_from_slice(&1i16.to_be_bytes());
        body.extend_from_slice(&0i32.to_be_bytes());
        body.extend_from_slice(&count(configs.len()));
        for (key, value) in configs {
            text(&mut body, Some(key));
            text(&mut body, Some(value));
        }
        body.extend_from_slice(&30_000i32.to_be_bytes());
        body.push(0);
        let answer = self.call(CREATE_TOPICS, CREATE_TOPICS_VERSION, &body)?;
        let answer = answer.context("the connection was closed")?;
        let mut fields = Fields(&answer);
        let _throttle_and_count = fields.take::<8>()?;
        let _name = string(&mut fields)?;
        let code = fields.i16()?;
        ensure!(code == 0, "topic {name}: error {code}");
        let deadline = Instant::now() + PATIENCE;
        for partition in 0..partitions {
            while let Err(error) = self.fetch(name, partition) {
                ensure!(Instant::now() < deadline, "{name}-{partition}: {error}");
            }
        }
        Ok(())
    }

    /// Says how a produce ends.
    pub(super) fn produce(&mut self, produce: &Produce) -> Result<String> {
        let mut body = Vec::new();
        if produce.version >= 3 {
            text(&mut body, produce.transactional_id);
        }
        body.extend_from_slice(&produce.acks.to_be_bytes());
        body.extend_from_slice(&30_000i32.to_be_bytes());
        body.extend_from_slice(&count(produce.topics.len()));
        for (topic, parts) in &produce.topics {
            text(&mut body, Some(topic));
            body.extend_from_slice(&count(parts.len()));
            for (index, records) in parts {
                body.extend_from_slice(&index.to_be_bytes());
                match records {
                    Some(records) => {
                        body.extend_from_slice(&count(records.len()));
                        body.extend_from_slice(records);
                    }
                    None => body.extend_from_slice(&(-1i32).to_be_bytes()),
                }
            }
        }
        if produce.acks == 0 {
            // The answer to a request behind it tells whether the connection lives.
            let (topic, parts) = produce.topics.first().context("a topic")?;
            let partition = parts.first().context("a partition")?.0;
            self.send(PRODUCE, produce.version, &body)?;
            return Ok(match self.fetch(topic, partition) {
                Ok(_) => UNANSWERED.to_owned(),
                Err(_) => "closed".to_owned(),
            });
        }
        match self.call(PRODUCE, produce.version, &body)? {
            Some(answer) => told(&mut Fields(&answer), produce.version),
            None => Ok("closed".to_owned()),
        }
    }

    /// All batches of a partition.
    pub(super) fn fetch(&mut self, topic: &str, partition: i32) -> Result<Vec<u8>> {
        self.fetch_within(topic, partition, 0)
    }

    /// The same, once there is a batch, or after so many milliseconds.
    pub(super) fn fetch_within(
        &mut self,
        topic: &str,
        partition: i32,
        max_wait_ms: i32,
    ) -> Result<Vec<u8>> {
        let mut body = Vec::new();
        for field in [-1, max_wait_ms, 1, 1 << 20] {
            body.extend_from_slice(&i32::to_be_bytes(field));
        }
        body.push(0);
        body.extend_from_slice(&count(1));
        text(&mut body, Some(topic));
        body.extend_from_slice(&count(1));
        body.extend_from_slice(&partition.to_be_bytes());
        body.extend_from_slice(&0i64.to_be_bytes());
        body.extend_from_slice(&(1i32 << 20).to_be_bytes());
        let answer = self.call(FETCH, FETCH_VERSION, &body)?.context("closed")?;
        let mut fields = Fields(&answer);
        let _throttle_and_count = fields.take::<8>()?;
        let _topic = string(&mut fields)?;
        let _count_and_partition = fields.take::<8>()?;
        let code = fields.i16()?;
        ensure!(code == 0, "error {code}");
        let _high_watermark_and_stable = fields.take::<16>()?;
        let aborted = fields.i32()?.max(0);
        fields.bytes(i64::from(aborted) * 16)?;
        let length = i64::from(fields.i32()?.max(0));
        Ok(fields.bytes(length)?.to_vec())
    }

    /// Sends and reads the body of the answer; `None` where the server closes the connection.
    fn call(&mut self, api: i16, version: i16, body: &[u8]) -> Result<Option<Vec<u8>>> {
        self.send(api, version, body)?;
        let correlation = self.correlation;
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let mut length = [0; 4];
        if stream.read_exact(&mut length).is_err() {
            self.stream = None;
            return Ok(None);
        }
        let mut frame = vec![0; usize::try_from(u32::from_be_bytes(length))?];
        stream.read_exact(&mut frame)?;
        let mut fields = Fields(&frame);
        ensure!(fields.i32()? == correlation, "an answer to another request");
        Ok(Some(fields.0.to_vec()))
    }

    fn send(&mut self, api: i16, version: i16, body: &[u8]) -> Result<()> {
        self.correlation += 1;
        let mut header = api.to_be_bytes().to_vec();
        header.extend_from_slice(&version.to_be_bytes());
        header.extend_from_slice(&self.correlation.to_be_bytes());
        text(&mut header, Some("odd"));
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let stream = TcpStream::connect(&self.address)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_nodelay(true)?;
                self.stream.insert(stream)
            }
        };
        let frame = [&count(header.len() + body.len())[..], &header, body].concat();
        stream.write_all(&frame)?;
        Ok(())
    }
}

/// What the answer to a produce says: of each partition the code, or the offset and whether the
/// time is that of the append, and the records that are named.
fn told(fields: &mut Fields<'_>, version: i16) -> Result<String> {
    let mut told = Vec::new();
    for _ in 0..fields.i32()? {
        let _topic = string(fields)?;
        for _ in 0..fields.i32()? {
            let _index = fields.i32()?;
            let (code, offset) = (fields.i16()?, fields.i64()?);
            let is_stamped = version >= 2 && fields.i64()? >= 0;
            if version >= 5 {
                fields.i64()?;
            }
            let mut records = Vec::new();
            if version >= 8 {
                for _ in 0..fields.i32()? {
                    records.push(fields.i32()?);
                    string(fields)?;
                }
                string(fields)?;
            }
            let mut one = if code == 0 { format!("at {offset}") } else { format!("error {code}") };
            if is_stamped {
                one += " stamped";
            }
            if !records.is_empty() {
                one += &format!(" for records {records:?}");
            }
            told.push(one);
        }
    }
    Ok(told.join(", "))
}

fn text(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => {
            out.extend_from_slice(&i16::try_from(text.len()).expect("short").to_be_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        None => out.extend_from_slice(&(-1i16).to_be_bytes()),
    }
}

fn string<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8]> {
    let length = fields.i16()?.max(0);
    fields.bytes(length.into())
}

fn count(length: usize) -> [u8; 4] {
    i32::try_from(length).expect("short").to_be_bytes()
}
