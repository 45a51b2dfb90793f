//! A page as one HTML file: styles and charts inside, no script, no network.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart::Chart;
use super::content::{CheckRow, Detail, Outcome, Page, Standing, Table};
use super::drawing;

const STYLE: &str = include_str!("../../assets/page.css");

/// The page.
#[must_use]
pub fn html(page: &Page) -> String {
    let has_figures = page.standing.has_figures();
    let body = html! {
        header {
            p.kicker { (page.about) }
            h1 { (page.title) }
            @if page.standing != Standing::Holds {
                p.standing.bad[page.standing != Standing::GoalMissed] { (page.standing.label()) }
            }
            div.answer { @for sentence in &page.answer { p { (sentence) } } }
        }
        @if !page.warnings.is_empty() {
            ul.warnings { @for warning in &page.warnings { li { (warning) } } }
        }
        @if has_figures {
            @if let Some(table) = &page.table { (self::table(table)) }
            (charts(&page.charts))
        }
        @for detail in &page.details { (self::detail(detail)) }
        (checks(&page.checks))
        (facts(&page.facts))
        footer {
            @if !page.links.is_empty() {
                p { "Raw data: "
                    @for (at, link) in page.links.iter().enumerate() {
                        @if at > 0 { ", " }
                        a href=(link.path) { (link.text) }
                    }
                }
            }
            p { "Made by moldau lab from " code { "result.json" } ". "
                code { "moldau lab report DIRECTORY" } " makes it again." }
        }
    };
    document(&page.title, &body)
}

/// A whole document around a body.
pub(crate) fn document(title: &str, body: &Markup) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(drawing::STYLE)) (PreEscaped(STYLE)) }
            }
            body { main { (body) } }
        }
    };
    markup.into_string()
}

fn charts(charts: &[Chart]) -> Markup {
    html! {
        @if !charts.is_empty() {
            div.charts { @for chart in charts { (figure(chart)) } }
        }
    }
}

/// A chart in a wide and a narrow form. Each screen shows one of them.
fn figure(chart: &Chart) -> Markup {
    html! {
        figure id=(chart.id) {
            figcaption {
                strong { (chart.title) }
                @if !chart.about.is_empty() { span { (chart.about) } }
            }
            div.wide { (drawing::svg(chart, drawing::WIDE)) }
            div.narrow { (drawing::svg(chart, drawing::NARROW)) }
        }
    }
}

fn detail(detail: &Detail) -> Markup {
    html! {
        details {
            summary { (detail.title) }
            @for text in &detail.text { p { (text) } }
            (charts(&detail.charts))
            @for table in &detail.tables {
                @if !table.title.is_empty() && table.title != detail.title { h3 { (table.title) } }
                (self::table(table))
            }
        }
    }
}

fn table(table: &Table) -> Markup {
    let class = |at: usize| {
        let is_words = at == 0 || table.columns.get(at).is_some_and(|column| column.is_words);
        is_words.then_some("words")
    };
    html! {
        div.table {
            table {
                thead { tr {
                    @for (at, column) in table.columns.iter().enumerate() {
                        th class=[class(at)] scope="col" {
                            (column.name)
                            @if !column.unit.is_empty() { small { (column.unit) } }
                        }
                    }
                } }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (at, cell) in row.iter().enumerate() {
                                td class=[class(at)] { (cell) }
                            }
                        }
                    }
                }
            }
        }
        @if !table.about.is_empty() { p.about { (table.about) } }
    }
}

fn checks(checks: &[CheckRow]) -> Markup {
    let count = |outcome| checks.iter().filter(|check| check.outcome == outcome).count();
    let parts =
        [(Outcome::Failed, "failed"), (Outcome::Noted, "noted"), (Outcome::Passed, "passed")];
    let parts = parts.into_iter().map(|(outcome, word)| (count(outcome), word));
    let parts =
        parts.filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}"));
    let class = |outcome| match outcome {
        Outcome::Passed => "good",
        Outcome::Noted => "noted",
        Outcome::Failed => "bad",
    };
    html! {
        @if !checks.is_empty() {
            details {
                summary { "Checks: " (parts.collect::<Vec<_>>().join(", ")) }
                p.about { "What the laboratory checks about itself before it publishes a figure." }
                div.table { table { tbody {
                    @for check in checks {
                        tr {
                            td.words.mark {
                                span class=(class(check.outcome)) { (check.outcome.label()) }
                            }
                            td.words { (check.name) }
                            td.words { (check.found) }
                            td.words.soft { (check.demanded) }
                        }
                    }
                } } }
            }
        }
    }
}

fn facts(facts: &[(String, String)]) -> Markup {
    html! {
        @if !facts.is_empty() {
            details {
                summary { "Environment" }
                dl { @for (name, value) in facts { dt { (name) } dd { (value) } } }
            }
        }
    }
}
