//! The comparison of two results for a terminal.

use super::grid::Grid;
use super::table::NONE;
use super::text::wrapped;
use crate::compared::{Compared, Contrast, Difference, Outcome};
use moldau_measure::numbers::{number, percent};
use moldau_measure::statistics::median;

/// Figures that the sentence names, before it only counts them.
const NAMED_MAX: usize = 4;

/// Width of the text.
const WIDTH: usize = 96;

/// One sentence, what stands in its way, then a table for each case and arm.
#[must_use]
pub fn compared(compared: &Compared) -> String {
    let mut text = format!("{}\n", wrapped(&sentence(compared), WIDTH));
    for refusal in compared.refusals.iter().filter(|_| !compared.contrasts.is_empty()) {
        text += &format!("  refused: {refusal}\n");
    }
    text.extend(compared.contrasts.iter().map(contrast));
    if !compared.environments.is_empty() {
        let rows = compared.environments.iter().map(|row| row.to_vec());
        let columns = ["", "first", "second"];
        text += &Grid::of("The machines and the programs differ", "", &columns, rows).text();
    }
    if !compared.warnings.is_empty() {
        text.push('\n');
    }
    for warning in &compared.warnings {
        text += &format!("  note    {warning}\n");
    }
    text
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

fn contrast(contrast: &Contrast) -> String {
    if let Some(refusal) = &contrast.refusal {
        return format!("\n{}\n\n  not comparable: {refusal}\n", place(contrast));
    }
    let columns = ["figure", "first", "second", "ratio", "95 % interval", "detectable", ""];
    Grid::of(&place(contrast), "", &columns, contrast.differences.iter().map(row)).text()
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
