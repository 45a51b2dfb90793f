//! How large a message may become, and how long it may keep its thread.

use std::task::{Context, Poll, Waker};

use moldau_net::MemoryBudget;

use super::*;

/// A session whose frames have up to so many bytes.
pub(super) fn bounded(frame_bytes_max: usize) -> SessionContext {
    within(&MemoryBudget::unlimited(), frame_bytes_max)
}

fn within(memory: &MemoryBudget, frame_bytes_max: usize) -> SessionContext {
    let (principal, memory) = (Principal::anonymous(), memory.account());
    SessionContext::with_limits("main", ADDRESS, principal, frame_bytes_max, memory)
}

/// Unpacks all batches.
struct Unpacks;

impl Policy for Unpacks {
    fn topic(&mut self, _: Option<&str>) -> Choice {
        Choice::Read
    }

    fn refused(&mut self, _: Option<&str>, _: i32, _: &Fault) {}
}

impl RecordEditor for Unpacks {
    type Error = Stop;

    fn begin(&mut self, _: &BatchView<'_>) -> Result<Compression, Stop> {
        Ok(Compression::None)
    }

    fn record(&mut self, _: i32, record: &RawRecord<'_>, edit: &mut Edit<'_>) -> Result<(), Stop> {
        edit.replace(|out| {
            out.extend_from_slice(record.bytes());
            Ok(())
        })
    }
}

/// A batch of some 10 KB that takes a hundredth of that.
fn packed() -> Bytes {
    batch_of(
        &vec![Sample { value: Some(vec![0; 1000]), ..Sample::default() }; 10],
        Compression::Zstd,
    )
}

/// The sizes of the partitions' records, with the code of those that are withheld.
fn sizes(source: Source, partitions: &[Bytes], bytes_max: usize) -> Vec<(ErrorCode, usize)> {
    let frame = fetched(11, "t", partitions);
    let places = places::of_fetch(&frame).unwrap();
    let message = Message {
        source,
        header: &|| frame.header_bytes(),
        body: frame.body(),
        flexible: false,
        places: &places,
        size: frame.bytes().len(),
        bytes_max,
        memory: &MemoryBudget::unlimited().account(),
        names: None,
    };
    let Rewritten { bytes, faults } = run(rewrite(message, &mut Unpacks));
    let bytes = bytes.unwrap_or_else(|| frame.bytes().to_vec());
    assert!(bytes.len() <= bytes_max.max(frame.bytes().len()), "{} bytes", bytes.len());
    let partitions = fetched_partitions(&frame.with_bytes(bytes).unwrap());
    let sizes = partitions.iter().zip(0..).map(|((_, records), at)| {
        let fault = faults.iter().find(|(of, _)| *of == at);
        (fault.map_or(ErrorCode::None, |(_, fault)| fault.code), records.len())
    });
    sizes.collect()
}

#[test]
fn an_answer_grows_up_to_its_bound_and_the_rest_comes_with_the_next() {
    let (one, three) = (packed(), packed().repeat(3));
    let partitions = [three.clone().into(), one.clone()];
    let [(code, first), (next_code, next)] = sizes(Source::Fetch, &partitions, 1 << 20)[..] else {
        panic!()
    };
    assert_eq!((code, next_code, first), (ErrorCode::None, ErrorCode::None, 3 * next));
    let held = (ErrorCode::KafkaStorageError, one.len());
    assert_eq!(
        sizes(Source::Fetch, &partitions, 25_000),
        [(ErrorCode::None, 2 * next), held],
        "two batches fit"
    );
    assert_eq!(
        sizes(Source::ShareFetch, &partitions, 25_000),
        [(ErrorCode::KafkaStorageError, three.len()), (ErrorCode::None, next)],
        "share consumers get all of a partition or nothing"
    );
    let alone = sizes(Source::ShareFetch, &partitions[..1], 25_000);
    assert_eq!(alone, [(ErrorCode::MessageTooLarge, three.len())]);
}

#[test]
fn a_batch_that_no_answer_can_hold_is_withheld_for_good() {
    for source in [Source::Fetch, Source::ShareFetch] {
        let codes = sizes(source, &[packed(), packed()], 5_000);
        let codes: Vec<ErrorCode> = codes.into_iter().map(|(code, _)| code).collect();
        assert_eq!(codes, [ErrorCode::MessageTooLarge; 2]);
    }
}

#[test]
fn a_message_beyond_its_bound_passes_if_nothing_in_it_grows() {
    let plain = batch_of(&vec![Sample::of(&"a".repeat(1000)); 10], Compression::None);
    let expected = [(ErrorCode::None, plain.len()), (ErrorCode::None, plain.len())];
    assert_eq!(sizes(Source::Fetch, &[plain.clone(), plain], 5_000), expected);
}

#[test]
fn a_request_grows_up_to_the_size_that_its_client_may_send() {
    let (one, in_flight) = (packed(), RefusedInFlight::default());
    let request = produce(9, &[("t", &[&one, &one, &one])]);
    let frame_bytes_max = 25_000;
    let names = TopicNames::default();
    let session = bounded(frame_bytes_max);
    let outcome = run(in_flight.produce(request, &session, &names, &mut Unpacks)).unwrap();
    let RequestOutcome::Forward(sent) = outcome else { panic!("{outcome:?}") };
    assert!(sent.bytes().len() <= frame_bytes_max && sent.bytes().len() > 20_000);
    let answer = in_flight.answer(response(9, &ProduceResponse::default())).unwrap();
    let answer: ProduceResponse = answer.decode().unwrap();
    let refused = &answer.responses[0].partition_responses;
    let codes: Vec<_> = refused.iter().map(|it| (it.index, it.error_code)).collect();
    assert_eq!(codes, [(2, i16::from(ErrorCode::MessageTooLarge))]);
}

/// Record encryption refused it, whatever the size of a frame.
#[test]
fn a_batch_as_large_as_the_configured_frame_passes() {
    let large = Sample { value: Some(vec![7; BATCH_BYTES_MAX]), ..Sample::default() };
    let large = batch_of(&[large], Compression::None);
    let (in_flight, names) = (RefusedInFlight::default(), TopicNames::default());
    let request = || produce(9, &[("t", &[&large])]);
    let frame_bytes_max = large.len() + 1024;
    let session = bounded(frame_bytes_max);
    let outcome = run(in_flight.produce(request(), &session, &names, &mut Unpacks)).unwrap();
    let RequestOutcome::Forward(sent) = outcome else { panic!("the batch is refused") };
    assert_eq!(produced(&sent), [large]);
}

/// The cost of a batch that fails to unpack was not counted, so many of them held the thread.
#[test]
fn batches_that_do_not_unpack_let_other_connections_have_their_turn() {
    let mut damaged = packed().to_vec();
    let payload = damaged.get_mut(BATCH_HEADER_LEN..).unwrap();
    payload.fill(0xff);
    mend(&mut damaged);
    let damaged = Bytes::from(damaged);
    let in_flight = RefusedInFlight::default();
    let request = produce(9, &[("t", &[&damaged; 5])]);
    let names = TopicNames::default();
    let (session, mut policy) = (bounded(1 << 20), Capitals::default());
    let work = in_flight.produce(request, &session, &names, &mut policy);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let _entered = runtime.enter();
    let mut work = std::pin::pin!(work);
    let mut turns = 0;
    let mut context = Context::from_waker(Waker::noop());
    while work.as_mut().poll(&mut context).is_pending() {
        turns += 1;
    }
    assert_eq!(turns, 5);
}

/// Replaces nothing, and counts what it sees.
#[derive(Default)]
struct Counts(usize);

impl Policy for Counts {
    fn topic(&mut self, _: Option<&str>) -> Choice {
        Choice::Read
    }

    fn refused(&mut self, _: Option<&str>, _: i32, _: &Fault) {}
}

impl RecordEditor for Counts {
    type Error = Stop;

    fn record(&mut self, _: i32, _: &RawRecord<'_>, _: &mut Edit<'_>) -> Result<(), Stop> {
        self.0 += 1;
        Ok(())
    }
}

/// Two connections could have the proxy unpack 200 MB in a control group of 256 MiB.
#[test]
fn a_batch_is_unpacked_once_there_is_memory_for_it() {
    let large = Sample { value: Some(vec![7; 3 * LITTLE_BYTES_MAX]), ..Sample::default() };
    let large = batch_of(&[large], Compression::Zstd);
    let code_with = |budget: &MemoryBudget, is_taken: bool| {
        let others = budget.account();
        let most = budget.most(MemoryUse::Work);
        let take = || others.try_acquire(MemoryUse::Work, most / 2);
        let mut taken: Vec<_> = std::iter::from_fn(take).take(usize::from(is_taken) * 9).collect();
        let session = within(budget, 1 << 20);
        let (in_flight, names) = (RefusedInFlight::default(), TopicNames::default());
        let request = produce(9, &[("t", &[&large])]);
        let mut policy = Counts::default();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let outcome = runtime.block_on(async {
            let mut work = Box::pin(in_flight.produce(request, &session, &names, &mut policy));
            if !taken.is_empty() {
                while budget.read(MemoryUse::Work).waiting == 0 {
                    let poll = |cx: &mut Context<'_>| Poll::Ready(work.as_mut().poll(cx));
                    assert!(std::future::poll_fn(poll).await.is_pending());
                }
                taken.clear();
            }
            work.await.unwrap()
        });
        assert_eq!(budget.read(MemoryUse::Work).used, 0);
        match outcome {
            RequestOutcome::Forward(_) => {
                assert_eq!(policy.0, 1, "records are seen once");
                ErrorCode::None
            }
            _ => ErrorCode::MessageTooLarge,
        }
    };
    assert_eq!(code_with(&MemoryBudget::new(1 << 30), false), ErrorCode::None);
    assert_eq!(code_with(&MemoryBudget::new(1 << 30), true), ErrorCode::None);
    let little = MemoryBudget::new(16 * LITTLE_BYTES_MAX);
    assert_eq!(code_with(&little, false), ErrorCode::MessageTooLarge);
}

#[test]
fn a_message_for_too_many_partitions_is_refused() {
    let one = Bytes::from_static(b"x");
    let request = produce(9, &[("t", &vec![&one; 100_001])]);
    assert!(places::of_produce(&request).is_err());
    let request = produce(9, &[("t", &vec![&one; 100_000])]);
    assert_eq!(places::of_produce(&request).unwrap().len(), 100_000);
}
