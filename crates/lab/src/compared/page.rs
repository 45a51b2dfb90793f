//! The comparison of two results as a page.

use super::{Compared, Contrast, Difference, Outcome};
use crate::page::{Detail, Page, Standing, Table};
use crate::run_figures::NONE;
use moldau_measure::numbers::{number, percent};
use moldau_measure::statistics::median;

/// Figures that the sentence names, before it only counts them.
const NAMED_MAX: usize = 4;

/// One sentence, what stands in its way, then a table for each case and arm.
#[must_use]
pub fn page(compared: &Compared) -> Page {
    let comparable = compared.refusals.is_empty();
    let refused = compared.refusals.iter().filter(|_| !compared.contrasts.is_empty());
    let mut details: Vec<Detail> = compared.contrasts.iter().map(contrast).collect();
    let rows = compared.environments.iter().map(|row| row.to_vec());
    let columns = ["", "first", "second"];
    let machines = Table::of("The machines and the programs differ", "", &columns, rows);
    details.push(Detail::table(machines));
    details.retain(|detail| !detail.is_empty());
    Page {
        title: "What differs between two results?".into(),
        about: String::new(),
        standing: if comparable { Standing::Holds } else { Standing::Invalid },
        answer: vec![sentence(compared)],
        warnings: refused.chain(&compared.warnings).cloned().collect(),
        table: None,
        charts: Vec::new(),
        details,
        checks: Vec::new(),
        facts: Vec::new(),
        links: Vec::new(),
    }
}

fn sentence(compared: &Compared) -> String {
    if !compared.refusals.is_empty() {
        return format!("Not comparable: {}.", compared.refusals.join("; "));
    }
    let all = || compared.contrasts.iter().flat_map(|contrast| &contrast.differences);
    let effects: Vec<_> = all().filter_map(|difference| difference.log_ratio).collect();
    if effects.is_empty() {
        return "Nothing can be said: no figure has three runs on both sides, and nothing less has \
                an interval."
            .into();
    }
    let named = |outcome: Outcome| -> Vec<String> {
        let found = compared.contrasts.iter().flat_map(|contrast| {
            contrast.differences.iter().filter(move |it| it.outcome == outcome).map(|difference| {
                let change = difference.log_ratio.map_or(NONE.into(), |it| percent(it.mean));
                format!("{} of {} {change}", difference.metric.label(), place(contrast))
            })
        });
        found.collect()
    };
    let [worse, gone, better] = [Outcome::Worse, Outcome::Gone, Outcome::Better].map(named);
    let detectable = median(&effects.iter().map(|it| it.detectable).collect::<Vec<_>>());
    let tell = |word: &str, names: &[String]| match names.len() {
        0 => String::new(),
        count => {
            let mut named = names.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>().join("; ");
            if count > NAMED_MAX {
                named += &format!("; {} more", count - NAMED_MAX);
            }
            format!("{word} in {count} ({named}), ")
        }
    };
    let words = [("worse", worse), ("without a value", gone), ("better", better)];
    let words: String = words.iter().map(|(word, names)| tell(word, names)).collect();
    let words = match words.trim_end_matches(", ") {
        "" => "shown to differ in none".into(),
        words => words.to_string(),
    };
    let elsewhere = if compared.environments.is_empty() {
        String::new()
    } else {
        let names: Vec<&str> =
            compared.environments.iter().filter_map(|it| it.first()).map(String::as_str).collect();
        format!(" They were measured under other conditions: {}.", names.join(", "))
    };
    format!(
        "Of {} figures the second result is {words}. A difference of {} would show four times in \
         five in the middle one of them.{elsewhere}",
        all().filter(|it| it.runs[0] > 0).count(),
        percent(detectable).trim_start_matches('+'),
    )
}

fn place(contrast: &Contrast) -> String {
    let Contrast { first, second, .. } = contrast;
    let names = |one: &str, other: &str| match one == other {
        true => one.to_string(),
        false => format!("{other} (first: {one})"),
    };
    format!("{}, {}", names(&first.case, &second.case), names(&first.arm, &second.arm))
}

fn contrast(contrast: &Contrast) -> Detail {
    let place = place(contrast);
    if let Some(refusal) = &contrast.refusal {
        return Detail::words(&place, vec![format!("Not comparable: {refusal}")]);
    }
    let columns = ["figure", "first", "second", "ratio", "95 % interval", "detectable", ""];
    let rows = contrast.differences.iter().map(row);
    Detail::table(Table::of(&place, "", &columns, rows))
}

fn row(difference: &Difference) -> Vec<String> {
    let unit = difference.metric.unit();
    let [first, second] = difference.medians;
    let mut row = vec![
        format!("{}, {}", difference.metric.label(), unit.symbol()),
        first.map_or(NONE.into(), |value| number(value, unit)),
        second.map_or(NONE.into(), |value| number(value, unit)),
    ];
    row.extend(match &difference.log_ratio {
        Some(effect) => [
            percent(effect.mean),
            format!("{} to {}", percent(effect.interval_95.low), percent(effect.interval_95.high)),
            percent(effect.detectable).trim_start_matches('+').into(),
        ],
        None => [NONE.into(), format!("{} and {} runs", difference.runs[0], difference.runs[1]), {
            NONE.into()
        }],
    });
    row.push(
        match difference.outcome {
            Outcome::Better => "better",
            Outcome::Worse => "WORSE",
            Outcome::Gone => "GONE",
            Outcome::Open => "",
        }
        .into(),
    );
    row
}
