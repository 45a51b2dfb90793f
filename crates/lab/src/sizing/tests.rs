//! What a fit finds in a measurement whose coefficients are known, and what an answer says.

use super::sample::{ENCRYPTION, PASSTHROUGH, REFERENCE, load, record, record_of};
use super::*;

fn near(found: f64, exact: f64, share: f64) -> bool {
    (found - exact).abs() <= share * exact.abs()
}

fn fit(record: &SizingRecord, arm: &str) -> Fit {
    Fit::of(&record.of_arm(arm), &record.reference, 1).unwrap()
}

#[test]
fn coefficients_come_back_from_runs_without_noise() {
    let record = record(0.0);
    for (arm, exact) in [("passthrough", PASSTHROUGH), ("encryption", ENCRYPTION)] {
        let fit = fit(&record, arm);
        for (estimate, exact) in fit.estimates.iter().zip(exact) {
            // Counts are whole, so that the last digits are lost.
            let is_right = near(estimate.value, exact, 1e-3) || estimate.value < 1.0;
            assert!(is_right, "{arm} {:?}: {} {exact}", estimate.term, estimate.value);
        }
        let (median, most) = errors(fit.held_out.iter().map(HeldOut::error));
        assert!(median < 1e-3 && most < 1e-2, "{arm}: {median} {most}");
    }
}

#[test]
fn intervals_hold_the_truth_and_widen_with_the_noise() {
    let (quiet, loud) = (fit(&record(0.01), "encryption"), fit(&record(0.1), "encryption"));
    let width = |fit: &Fit, term: Term| {
        let interval = fit.of_term(term).interval;
        interval.high - interval.low
    };
    for term in [Term::ProduceRequests, Term::ProducedRecords, Term::ProducedBytes] {
        assert!(width(&loud, term) > 3.0 * width(&quiet, term), "{term:?}");
    }
}

#[test]
fn intervals_hold_the_truth_about_as_often_as_they_say() {
    const EXPERIMENTS: u64 = 16;
    let mut holding = [0; TERMS];
    for seed in 0..EXPERIMENTS {
        let fit = fit(&record_of(0.05, seed), "encryption");
        for (count, estimate) in holding.iter_mut().zip(&fit.estimates) {
            *count += u64::from(!estimate.interval.excludes(ENCRYPTION[estimate.term.index()]));
        }
    }
    // The idle term has no noise, only counts that are whole.
    let [_, loaded @ ..] = holding;
    let share = float(loaded.iter().sum()) / float(EXPERIMENTS) / float(loaded.len() as u64);
    assert!((0.86..=1.0).contains(&share), "{share} {holding:?}");
}

#[test]
fn one_coefficient_is_wrong_where_the_model_is_right() {
    let fit = fit(&record(0.03), "encryption");
    let (median, _) = errors(fit.held_out.iter().map(HeldOut::error));
    let (one, _) = errors(fit.held_out.iter().filter_map(HeldOut::reference_error));
    assert!(median < 0.05 && one > 0.3, "{median} {one}");
    // The reference is not held against itself, and the idle case is no load.
    assert_eq!(fit.held_out.len(), 16);
    let reference = fit.held_out.iter().find(|case| case.case == REFERENCE).unwrap();
    assert_eq!(reference.reference_error(), None);
}

#[test]
fn the_prediction_of_a_held_out_case_does_not_know_it() {
    let mut record = record(0.0);
    let before = fit(&record, "encryption");
    let changed = record.observations.iter_mut().filter(|run| run.case == REFERENCE);
    changed.for_each(|run| run.cpu_ns *= 3);
    let after = fit(&record, "encryption");
    let of = |fit: &Fit| fit.held_out.iter().find(|case| case.case == REFERENCE).cloned().unwrap();
    assert!(near(of(&after).predicted, of(&before).predicted, 1e-9));
    assert!(near(of(&after).measured, 3.0 * of(&before).measured, 1e-9));
    assert!(near(of(&after).error(), -2.0 / 3.0, 1e-2));
}

#[test]
fn a_term_that_no_run_has_is_not_measured() {
    let mut record = record(0.0);
    record.observations.retain(|run| run.groups == 0);
    let fit = fit(&record, "encryption");
    assert!(!fit.of_term(Term::FetchRequests).is_measured);
    assert!(fit.of_term(Term::FetchRequests).value.abs() < f64::MIN_POSITIVE);
    record.observations.retain(|run| run.case == "idle");
    assert_eq!(Fit::of(&record.of_arm("encryption"), REFERENCE, 1), None);
}

#[test]
fn an_answer_is_the_sum_of_its_parts_within_its_interval() {
    let record = record(0.03);
    for finding in record.findings(1) {
        let answer = &finding.answer;
        let (parts, shares) = answer
            .parts
            .iter()
            .fold((0.0, 0.0), |(cores, share), part| (cores + part.cores, share + part.share));
        assert!(near(parts, answer.cores, 1e-9) && near(shares, 1.0, 1e-9));
        assert!(!answer.interval.excludes(answer.cores), "{answer:?}");
        let planned = f64::from(answer.planned);
        assert!(planned * UTILISATION_MAX >= answer.interval.high);
        assert!((planned - 1.0) * UTILISATION_MAX < answer.interval.high);
        let kinds: f64 = answer.kinds().iter().map(|(_, share)| share).sum();
        assert!(near(kinds, 1.0, 1e-9));
    }
}

#[test]
fn requests_come_from_the_most_similar_case() {
    let record = record(0.0);
    let observations = record.of_arm("encryption");
    let packing = load().packing(&observations);
    assert!(near(packing.batches_per_request, 1.0, 1e-9));
    assert!(near(packing.batches_per_fetch, 1.3, 1e-2), "{packing:?}");
    assert!(packing.as_in.as_ref().is_some_and(|case| case.starts_with("1024 B x 16, ")));
    let small = Load { batch_bytes: 1_024, partitions: 100, ..load() };
    assert!(near(small.packing(&observations).batches_per_request, 12.0, 1e-2));
    let unread = Load { groups: 0, ..small };
    assert!(near(unread.packing(&observations).batches_per_request, 16.0, 1e-2));
    let said = Load { batches_per_request: Some(5.0), batches_per_fetch: Some(2.5), ..load() };
    let packing = said.packing(&observations);
    assert_eq!(packing.as_in, None);
    let rates = said.rates(&packing);
    assert!(near(rates.of(Term::ProducedBatches), 6_400.0, 1e-9));
    assert!(near(rates.of(Term::ProduceRequests), 1_280.0, 1e-9));
    assert!(near(rates.of(Term::FetchRequests), 3.0 * 6_400.0 / 2.5, 1e-9));
    assert!(near(rates.of(Term::ConsumedRecords), 3.0 * 102_400.0, 1e-9));
}

#[test]
fn extrapolation_is_reported() {
    let record = record(0.0);
    let of = |load: &Load| {
        let observations = record.of_arm("encryption");
        let beyond = Answer::of(&fit(&record, "encryption"), &observations, load).beyond;
        beyond.into_iter().map(|beyond| beyond.what).collect::<Vec<_>>()
    };
    let small = Load { produce_bytes_per_second: 10.0 * 1_048_576.0, groups: 1, ..load() };
    assert_eq!(of(&small), Vec::<String>::new());
    assert!(of(&load()).contains(&"bytes produced per second".to_string()));
    let tiny = Load { record_bytes: 20, batch_bytes: 1_000_000, ..small };
    assert_eq!(
        of(&tiny),
        [
            "records produced per second",
            "records consumed per second",
            "bytes of a record",
            "bytes of a batch"
        ]
    );
}

#[test]
fn the_largest_lever_is_the_one_that_saves_most() {
    let record = record(0.0);
    let fit = fit(&record, "encryption");
    let observations = record.of_arm("encryption");
    // Single records in single requests: halving both is the most that can be done.
    let single = Load { batch_bytes: 1_024, partitions: 1, groups: 1, ..load() };
    let lever = Answer::of(&fit, &observations, &single).lever.unwrap();
    assert_eq!(lever.action, Action::DoubleBatches);
    assert!(lever.saving > 0.4, "{lever:?}");
    // Very large batches: bytes and records are all that is left.
    let large = Load { batch_bytes: 1 << 20, groups: 1, ..load() };
    assert_eq!(Answer::of(&fit, &observations, &large).lever, None);
}

#[test]
fn impossible_loads_are_refused() {
    assert!(load().check().is_ok());
    for broken in [
        Load { produce_bytes_per_second: 0.0, ..load() },
        Load { produce_bytes_per_second: f64::NAN, ..load() },
        Load { record_bytes: 0, ..load() },
        Load { batch_bytes: 1_000, ..load() },
        Load { partitions: 0, ..load() },
        Load { batches_per_request: Some(0.0), ..load() },
        Load { batches_per_fetch: Some(f64::INFINITY), ..load() },
    ] {
        assert!(broken.check().is_err(), "{broken:?}");
    }
}
