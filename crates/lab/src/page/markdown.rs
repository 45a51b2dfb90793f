//! A page as Markdown, with its charts as files beside it.

use super::chart::Chart;
use super::content::{Outcome, Page, Table};

/// The page. Charts are linked as `charts/<id>.svg`.
#[must_use]
pub fn markdown(page: &Page) -> String {
    let mut lines = vec![format!("# {}", page.title), String::new()];
    let answer = page.answer.join(" ");
    lines.push(match page.standing.has_figures() {
        true => answer,
        false => format!("**{}**: {answer}", page.standing.label()),
    });
    lines.extend([String::new(), page.about.clone()]);
    if !page.warnings.is_empty() {
        lines.push(String::new());
        lines.extend(page.warnings.iter().map(|warning| format!("- {warning}")));
    }
    if page.standing.has_figures() {
        lines.extend(page.table.iter().flat_map(|it| table(it, "")));
        lines.extend(page.charts.iter().flat_map(chart));
    }
    for detail in &page.details {
        lines.extend([String::new(), format!("## {}", detail.title)]);
        for text in &detail.text {
            lines.extend([String::new(), text.clone()]);
        }
        lines.extend(detail.charts.iter().flat_map(chart));
        lines.extend(detail.tables.iter().flat_map(|it| table(it, &detail.title)));
    }
    lines.extend(checks(page));
    lines.extend([String::new(), "## Environment".into(), String::new()]);
    lines.extend(page.facts.iter().map(|(name, value)| format!("- {name}: {value}")));
    if !page.links.is_empty() {
        let links = page.links.iter().map(|link| format!("[{}]({})", link.text, link.path));
        let links = links.collect::<Vec<_>>().join(", ");
        lines.extend([String::new(), format!("Raw data: {links}.")]);
    }
    lines.join("\n") + "\n"
}

/// Path of a chart from the directory of the page.
#[must_use]
pub fn chart_path(chart: &Chart) -> String {
    format!("charts/{}.svg", chart.id)
}

fn chart(chart: &Chart) -> [String; 2] {
    [String::new(), format!("![{}]({})", chart.title, chart_path(chart))]
}

/// A table, with its title unless that stands above it already.
fn table(table: &Table, above: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    if !table.title.is_empty() && table.title != above {
        lines.extend([format!("### {}", table.title), String::new()]);
    }
    let heads = table.columns.iter().map(|column| match column.unit.as_str() {
        "" => column.name.clone(),
        unit => format!("{}, {unit}", column.name),
    });
    lines.push(row(heads));
    let ends = table.columns.iter().enumerate();
    let ends = ends.map(|(at, column)| if at == 0 || column.is_words { "---|" } else { "---:|" });
    lines.push(format!("|{}", ends.collect::<String>()));
    lines.extend(table.rows.iter().map(|cells| row(cells.iter().cloned())));
    if !table.about.is_empty() {
        lines.extend([String::new(), table.about.clone()]);
    }
    lines
}

/// A row, in which a stroke of a cell, as in a name that an operator gave, ends no cell.
fn row(cells: impl Iterator<Item = String>) -> String {
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    format!("| {} |", cells.collect::<Vec<_>>().join(" | "))
}

fn checks(page: &Page) -> Vec<String> {
    let mut lines = vec![String::new(), "## Checks".into(), String::new()];
    lines.push("| | check | found | demanded |".into());
    lines.push("|---|---|---|---|".into());
    lines.extend(page.checks.iter().map(|check| {
        let outcome = match check.outcome {
            Outcome::Failed => "**failed**",
            other => other.label(),
        };
        let cells = [outcome, &check.name, &check.found, &check.demanded];
        row(cells.into_iter().map(str::to_owned))
    }));
    lines
}
