//! Drawings of the sizing report, which need no script.

use super::super::html::escape;
use super::{Finding, HeldOut, cores, digits, joined, labels, percent};
use crate::sizing::{Kind, Part};

/// The answer of each arm.
pub(super) fn cards(findings: &[Finding]) -> String {
    let mut html = String::from("<div class=\"cards\">");
    for finding in findings {
        let answer = &finding.answer;
        html += &format!(
            "<div class=\"card\"><div class=\"name\">{}</div>\
             <div class=\"value\">{} <small>cores</small></div>\
             <div class=\"detail\">[{}, {}] busy; plan {}</div></div>",
            escape(&finding.arm),
            digits(answer.cores),
            digits(answer.interval.low),
            digits(answer.interval.high),
            answer.planned,
        );
    }
    html + "</div>"
}

/// What the cores of each arm are made of, one bar per arm.
pub(super) fn stacks(findings: &[Finding]) -> String {
    let widest =
        findings.iter().map(|finding| finding.answer.cores).fold(f64::MIN_POSITIVE, f64::max);
    let mut html =
        String::from("<div class=\"card\"><h3>What the cores are made of</h3><div class=\"bars\">");
    for finding in findings {
        html += &format!("<span>{}</span><div class=\"stack\">", escape(&finding.arm));
        for part in finding.answer.parts.iter().filter(|part| part.cores > 0.0) {
            html += &format!(
                "<span class=\"{}\" style=\"width:{:.2}%\" title=\"{}: {} cores\">{}</span>",
                class(part),
                part.cores / widest * 100.0,
                escape(&labels(&part.terms)),
                digits(part.cores),
                percent(part.share),
            );
        }
        html += "</div>";
    }
    html += "</div><div class=\"key\">";
    for kind in [Kind::Idle, Kind::Request, Kind::Batch, Kind::Record, Kind::Byte] {
        html += &format!("<span><i class=\"{}\"></i>{}</span>", kind_class(kind), joined(&[kind]));
    }
    html + "</div></div>"
}

fn class(part: &Part) -> &'static str {
    part.terms.first().map_or("", |term| kind_class(term.kind()))
}

fn kind_class(kind: Kind) -> &'static str {
    match kind {
        Kind::Idle => "kind-idle",
        Kind::Request => "kind-request",
        Kind::Batch => "kind-batch",
        Kind::Record => "kind-record",
        Kind::Byte => "kind-byte",
    }
}

/// Held-out cases as predicted over as measured, by the model and by one coefficient.
pub(super) fn predictions(findings: &[Finding]) -> String {
    let mut html = String::from(
        "<h2>Predicted against measured</h2><p class=\"about\">Each case is \
        predicted from all others. On the line a prediction is right; both axes are logarithmic. \
        </p><div class=\"pair\">",
    );
    for finding in findings {
        html += &format!(
            "<div class=\"card\"><h3>{}: {}</h3>{}<div class=\"key\">\
             <span><i class=\"kind-byte\"></i>this model</span>\
             <span><i class=\"kind-request\"></i>one coefficient per MB</span></div></div>",
            escape(&finding.arm),
            cores(&finding.answer),
            scatter(&finding.fit.held_out)
        );
    }
    html + "</div>"
}

const SIDE: f64 = 460.0;
const MARGIN: f64 = 44.0;

fn scatter(held_out: &[HeldOut]) -> String {
    let values = held_out.iter().flat_map(|case| {
        [Some(case.measured), Some(case.predicted), case.by_reference].into_iter().flatten()
    });
    let (low, high) = values
        .filter(|value| *value > 0.0)
        .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if low >= high {
        return String::new();
    }
    let (first, last) = (low.log10().floor(), high.log10().ceil());
    let along = |value: f64| (value.log10() - first) / (last - first) * (SIDE - MARGIN);
    let x = |value: f64| MARGIN + along(value);
    let y = |value: f64| SIDE - MARGIN - along(value);
    let mut svg = format!(
        "<svg class=\"intervals\" viewBox=\"0 0 {SIDE} {SIDE}\" role=\"img\" \
         aria-label=\"Predicted cores over measured cores\">"
    );
    let mut decade = first;
    while decade <= last {
        let value = 10_f64.powf(decade);
        svg += &format!(
            "<line class=\"grid\" x1=\"{MARGIN}\" x2=\"{SIDE}\" y1=\"{0:.1}\" y2=\"{0:.1}\"/>\
             <line class=\"grid\" y1=\"0\" y2=\"{1:.1}\" x1=\"{2:.1}\" x2=\"{2:.1}\"/>\
             <text class=\"tick\" x=\"{3:.1}\" y=\"{0:.1}\" text-anchor=\"end\">{4}</text>\
             <text class=\"tick\" x=\"{2:.1}\" y=\"{5:.1}\" text-anchor=\"middle\">{4}</text>",
            y(value),
            SIDE - MARGIN,
            x(value),
            MARGIN - 6.0,
            value,
            SIDE - MARGIN + 16.0,
        );
        decade += 1.0;
    }
    let (least, most) = (10_f64.powf(first), 10_f64.powf(last));
    svg += &format!(
        "<line class=\"zero\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>\
         <text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">measured cores</text>\
         <text class=\"tick\" x=\"{:.1}\" y=\"12\">predicted cores</text>",
        x(least),
        y(least),
        x(most),
        y(most),
        f64::midpoint(MARGIN, SIDE),
        SIDE - 6.0,
        MARGIN + 6.0,
    );
    for case in held_out {
        let dots = [(case.by_reference, "kind-request"), (Some(case.predicted), "kind-byte")];
        for (predicted, class) in dots {
            let Some(predicted) = predicted.filter(|value| *value > 0.0) else { continue };
            svg += &format!(
                "<circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"4.5\"><title>{}: \
                 measured {}, predicted {}</title></circle>",
                x(case.measured),
                y(predicted),
                escape(&case.case),
                digits(case.measured),
                digits(predicted),
            );
        }
    }
    svg + "</svg>"
}
