//! What the proxy costs beside a bare TCP relay, with and without record encryption: CPU time per
//! megabyte of records on the same traffic.
//!
//! A scripted client and a scripted broker talk through one arm at a time: relay, proxy, sealing
//! proxy, and back. Only the threads of that arm are counted, by the kernel's clock of each
//! thread. Run with `cargo bench -p moldau-filters --bench relay`; the number of rounds, the
//! megabytes of each leg and a part of the names of the traffic may follow after `--`.

use std::cell::RefCell;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use bytes::Bytes;
use moldau_encryption::{
    DataKeys, KekTemplate, KeySettings, Kms, MemoryKek, MemoryKms, SealingKey,
};
use moldau_filters::{
    OnDamage, Recompression, RecordEncryption, RecordEncryptionSettings, UnresolvedKey,
};
use moldau_proxy::Filter;
use moldau_records::{BatchView, Rewriter};
use zeroize::Zeroizing;

#[path = "../../encryption/tests/it/editors.rs"]
#[expect(dead_code, reason = "the tests need more of it")]
mod editors;
#[path = "../../../benches/exchange.rs"]
mod exchange;

use self::editors::SealAll;
use self::exchange::{
    PROXY_THREAD, TOPIC, Workload, broker, cpu_time, drive, fetch, produce, proxy,
};

/// The proxy's own buffer size, so that both read and write in the same portions.
const RELAY_BUFFER_BYTES: usize = 256 * 1024;

/// Requests that the client keeps in flight: the Java client's default.
const WINDOW: usize = 5;

const RELAY_THREAD: &str = "bare-relay";

fn main() {
    let (numbers, names): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|argument| argument.parse::<usize>().is_ok());
    let mut numbers = numbers.iter().filter_map(|number| number.parse().ok());
    let rounds: usize = numbers.next().unwrap_or(5);
    let megabytes: usize = numbers.next().unwrap_or(1000);
    let names: Vec<_> = names.iter().filter(|name| !name.starts_with('-')).collect();
    println!(
        "CPU-ms per MB (2^20 bytes) of records; median of {rounds} rounds, {megabytes} MB each"
    );
    let arms = ("relay", "proxy", "ratio", "range", "sealing", "range");
    println!(
        "{:<26} {:>7} {:>7} {:>6} {:>11} {:>8} {:>13}",
        "traffic", arms.0, arms.1, arms.2, arms.3, arms.4, arms.5
    );
    let keys = Keys::new();
    let produced = [(1, 1, 1), (1, 1, 15), (10, 1, 15), (1, 1, 125), (8, 1, 125)];
    let produced = produced.map(|(partitions, batches, records)| {
        let workload = produce(partitions, batches, records);
        let answer = workload.answer.clone();
        (workload, answer)
    });
    let fetched = [(1, 1, 1), (10, 1, 15), (10, 8, 15), (10, 1, 125)];
    let fetched = fetched.map(|(partitions, batches, records)| {
        let sealed = keys.seal(&exchange::batch(records));
        let answer = exchange::fetched(&sealed, partitions, batches);
        (fetch(partitions, batches, records), answer)
    });
    for (workload, sealed_answer) in produced.iter().chain(&fetched) {
        if names.is_empty() || names.iter().any(|name| workload.name.contains(*name)) {
            let requests = (megabytes << 20) / workload.record_bytes;
            measure(workload, sealed_answer, &keys, rounds, requests);
        }
    }
}

/// The broker behind the sealing proxy gives `sealed_answer`.
fn measure(workload: &Workload, sealed_answer: &[u8], keys: &Keys, rounds: usize, requests: usize) {
    let broker_in_clear = broker(workload.answer.clone());
    let relay = relay(broker_in_clear);
    let proxy = proxy(broker_in_clear, Vec::new());
    let sealing = exchange::proxy(broker(sealed_answer.to_vec()), vec![keys.filter()]);
    let (_, through_proxy) = proxy.bootstrap_addresses().remove(0);
    let (_, through_sealing) = sealing.bootstrap_addresses().remove(0);
    let megabytes = (workload.record_bytes * requests) as f64 / f64::from(1 << 20);
    let leg = |address: SocketAddr, thread: &str| {
        let before = cpu_time(thread);
        drive(address, workload, requests, WINDOW);
        (cpu_time(thread) - before).as_secs_f64() * 1e3 / megabytes
    };
    let (mut relays, mut proxies, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut sealings = Vec::new();
    for _ in 0..rounds {
        let relayed = leg(relay, RELAY_THREAD);
        let proxied = leg(through_proxy, PROXY_THREAD);
        let sealed = leg(through_sealing, PROXY_THREAD) + leg(through_sealing, PROXY_THREAD);
        let proxied = (proxied + leg(through_proxy, PROXY_THREAD)) / 2.0;
        let relayed = (relayed + leg(relay, RELAY_THREAD)) / 2.0;
        relays.push(relayed);
        proxies.push(proxied);
        ratios.push(proxied / relayed);
        sealings.push(sealed / 2.0);
    }
    let name = &*workload.name;
    let (relayed, proxied, ratio) =
        (median(&mut relays), median(&mut proxies), median(&mut ratios));
    let (low, high) = (ratios[0], ratios[ratios.len() - 1]);
    let sealed = median(&mut sealings);
    let (sealed_low, sealed_high) = (sealings[0], sealings[sealings.len() - 1]);
    print!("{name:<26} {relayed:>7.3} {proxied:>7.3} {ratio:>6.2} {low:>5.2}-{high:<5.2}");
    println!(" {sealed:>8.3} {sealed_low:>6.3}-{sealed_high:<6.3}");
    drop((proxy, sealing));
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// One thread, one buffer for each direction, nothing looked at.
fn relay(upstream: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    listener.set_nonblocking(true).expect("a TCP socket");
    let relay = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("an event queue").block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("in a runtime");
            while let Ok((mut downstream, _)) = listener.accept().await {
                let mut upstream =
                    tokio::net::TcpStream::connect(upstream).await.expect("it is up");
                downstream.set_nodelay(true).expect("a TCP socket");
                upstream.set_nodelay(true).expect("a TCP socket");
                let (down, up) = (&mut downstream, &mut upstream);
                let sizes = RELAY_BUFFER_BYTES;
                // Ends with the client, with any error that causes.
                let _ended = tokio::io::copy_bidirectional_with_sizes(down, up, sizes, sizes).await;
            }
        });
    };
    thread::Builder::new().name(RELAY_THREAD.to_owned()).spawn(relay).expect("a thread");
    address
}

/// The keys of the sealing proxy and of the records that the broker holds.
struct Keys {
    kms: Arc<MemoryKms>,
    sealing: RefCell<SealAll>,
}

impl Keys {
    fn new() -> Self {
        let (uuid, key) = (
            "a7a3b1c2-0001-4a6b-8c3d-1f2e3d4c5b6a",
            "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVoyMzQ1Njc=",
        );
        let kek = MemoryKek::parse(uuid, &Zeroizing::new(key.to_owned()), TOPIC).expect("a key");
        let kms = Arc::new(MemoryKms::new(vec![kek]));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let wrapped = runtime.block_on(async {
            let kek = kms.resolve_alias(TOPIC).await.expect("it has the key");
            kms.generate_data_key(&kek).await.expect("it has the key")
        });
        let sealing = SealingKey::new(&wrapped.key, &wrapped.edek).expect("a short EDEK");
        Self { kms, sealing: RefCell::new(SealAll::new(sealing)) }
    }

    fn filter(&self) -> Arc<dyn Filter> {
        let settings = RecordEncryptionSettings {
            template: KekTemplate::parse("$(topicName)").expect("valid"),
            unresolved_key: UnresolvedKey::Reject,
            on_damage: OnDamage::Fail,
            recompression: Recompression::SameCodec,
        };
        let kms: Arc<dyn Kms> = self.kms.clone();
        Arc::new(RecordEncryption::new(settings, DataKeys::new(kms, &KeySettings::default(), 1)))
    }

    fn seal(&self, batch: &Bytes) -> Bytes {
        let mut sealed = Vec::new();
        let batch = BatchView::parse(batch).expect("a batch");
        let mut sealing = self.sealing.borrow_mut();
        sealing.seal(&mut Rewriter::default(), &batch, &mut sealed).expect("a batch");
        sealed.into()
    }
}
