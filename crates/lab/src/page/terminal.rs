//! A page for a terminal: the answer, one small table, warnings and the path of the report, in
//! [`LINES_MAX`] lines; with everything else when asked for.

use super::content::{CheckRow, Detail, Outcome, Page, Table};

/// Most lines of the short form.
pub const LINES_MAX: usize = 30;

/// Widest text: longer lines are hard to read.
const TEXT_WIDTH_MAX: usize = 100;

/// Narrowest terminal that is written for.
const WIDTH_MIN: usize = 40;

/// Most warnings of the short form, of a line each.
const WARNINGS_MAX: usize = 4;

/// Narrowest first column of a table that is too wide.
const NAME_WIDTH_MIN: usize = 12;

/// Room of the mark of a check.
const MARK_WIDTH: usize = 8;

/// How much is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// What fits [`LINES_MAX`] lines.
    Short,
    /// All of the page but its charts.
    Verbose,
}

/// The page in lines of at most `width` letters, `report` being the path of the whole report.
#[must_use]
pub fn terminal(page: &Page, report: &str, width: usize, extent: Extent) -> String {
    let width = width.max(WIDTH_MIN);
    let mut head = wrapped(&page.answer.join(" "), width.min(TEXT_WIDTH_MAX), "");
    if !page.standing.has_figures() {
        head.insert(0, format!("{}:", page.standing.label().to_uppercase()));
    }
    let mut foot = match extent {
        Extent::Short => short_warnings(page, width),
        Extent::Verbose => {
            page.warnings.iter().flat_map(|it| wrapped(&format!("! {it}"), width, "  ")).collect()
        }
    };
    if extent == Extent::Verbose {
        foot.extend(page.details.iter().flat_map(|detail| self::detail(detail, width)));
        foot.extend(checks(page, width));
        foot.extend(facts(page, width));
    }
    if !report.is_empty() {
        foot.extend([String::new(), format!("report: {report}")]);
    }
    let mut lines = head;
    if let Some(table) = page.table.as_ref().filter(|_| page.standing.has_figures()) {
        // A line parts the table from the answer.
        let rows_max = match extent {
            Extent::Short => LINES_MAX.saturating_sub(lines.len() + foot.len() + 2),
            Extent::Verbose => usize::MAX,
        };
        lines.push(String::new());
        lines.extend(rows(table, width, rows_max));
    }
    lines.push(String::new());
    lines.extend(foot);
    // Parts that are empty leave no gap.
    lines.dedup_by(|next, line| next.is_empty() && line.is_empty());
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines.join("\n") + "\n"
}

/// The first warnings, each cut to one line.
fn short_warnings(page: &Page, width: usize) -> Vec<String> {
    let warnings = page.warnings.iter().take(WARNINGS_MAX);
    let mut lines: Vec<String> = warnings.map(|it| cut(&format!("! {it}"), width)).collect();
    let more = page.warnings.len().saturating_sub(WARNINGS_MAX);
    if more > 0 {
        lines.push(format!("! {more} more with --verbose"));
    }
    lines
}

/// Words and tables of a part; nothing of one that has charts alone.
fn detail(detail: &Detail, width: usize) -> Vec<String> {
    if detail.text.is_empty() && detail.tables.is_empty() {
        return Vec::new();
    }
    let mut lines = vec![String::new(), detail.title.clone()];
    let text_width = width.min(TEXT_WIDTH_MAX);
    lines.extend(detail.text.iter().flat_map(|text| wrapped(text, text_width, "")));
    for table in &detail.tables {
        lines.push(String::new());
        if table.title != detail.title {
            lines.push(table.title.clone());
        }
        lines.extend(wrapped(&table.about, text_width, ""));
        lines.extend(rows(table, width, usize::MAX));
    }
    lines
}

fn checks(page: &Page, width: usize) -> Vec<String> {
    if page.checks.is_empty() {
        return Vec::new();
    }
    let lines = |check: &CheckRow| {
        let mark = match check.outcome {
            Outcome::Passed => "ok",
            Outcome::Noted => "note",
            Outcome::Failed => "FAILED",
        };
        let CheckRow { name, found, demanded, .. } = check;
        let text = format!("{name}: {found} (demanded: {demanded})");
        let marks = std::iter::once(mark).chain(std::iter::repeat(""));
        let lines = marks.zip(wrapped(&text, width.saturating_sub(MARK_WIDTH), ""));
        lines.map(|(mark, line)| format!("{mark:<MARK_WIDTH$}{line}")).collect::<Vec<_>>()
    };
    let head = [String::new(), "Checks".into()];
    head.into_iter().chain(page.checks.iter().flat_map(lines)).collect()
}

fn facts(page: &Page, width: usize) -> Vec<String> {
    if page.facts.is_empty() {
        return Vec::new();
    }
    let head = [String::new(), "Environment".into()];
    let line = |(name, value): &(String, String)| wrapped(&format!("{name}: {value}"), width, "  ");
    head.into_iter().chain(page.facts.iter().flat_map(line)).collect()
}

/// A table in at most so many lines, of columns below one another: figures end at the same place,
/// words begin there. Columns for which a terminal is too narrow are left out from the right.
pub(super) fn rows(table: &Table, width: usize, lines_max: usize) -> Vec<String> {
    const BETWEEN: usize = 2;
    let mut head: Vec<Vec<&str>> =
        vec![table.columns.iter().map(|column| column.name.as_str()).collect()];
    if table.columns.iter().any(|column| !column.unit.is_empty()) {
        head.push(table.columns.iter().map(|column| column.unit.as_str()).collect());
    }
    let body = table.rows.iter().map(|row| row.iter().map(String::as_str).collect());
    let lines: Vec<Vec<&str>> = head.iter().cloned().chain(body).collect();
    let mut widths: Vec<usize> = (0..table.columns.len())
        .map(|at| lines.iter().filter_map(|line| line.get(at)).map(|it| letters(it)).max())
        .map(Option::unwrap_or_default)
        .collect();
    let total = |widths: &[usize]| widths.iter().sum::<usize>() + BETWEEN * widths.len();
    let name_width = widths.first().copied();
    if let Some(name) = name_width.filter(|_| total(&widths) > width) {
        let surplus = total(&widths) - width;
        widths[0] = name.saturating_sub(surplus).max(NAME_WIDTH_MIN.min(name));
    }
    while total(&widths) > width && widths.len() > 2 {
        widths.pop();
    }
    // What was left out may leave room for whole names.
    let room = width.saturating_sub(total(&widths));
    if let (Some(shown), Some(name)) = (widths.first_mut(), name_width) {
        *shown = (*shown + room).min(name);
    }
    let shown =
        lines.len().min(if lines.len() > lines_max { lines_max.max(1) - 1 } else { lines_max });
    let line = |line: &Vec<&str>| {
        let cells = line.iter().zip(&widths).zip(&table.columns).enumerate();
        let cells = cells.map(|(at, ((cell, width), column))| {
            let cell = cut(cell, *width);
            let padding = " ".repeat(width.saturating_sub(letters(&cell)));
            if at == 0 || column.is_words { cell + &padding } else { padding + &cell }
        });
        let joined = cells.collect::<Vec<_>>().join(&" ".repeat(BETWEEN));
        format!("  {}", joined.trim_end())
    };
    let mut text: Vec<String> = lines.iter().take(shown).map(line).collect();
    if shown < lines.len() {
        text.push(format!("  {} more rows with --verbose", lines.len() - shown));
    }
    text
}

/// A text in lines. All but the first begin with `indent`.
fn wrapped(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if letters(line) + 1 + letters(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("{indent}{word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A text in at most so many letters, with an ellipsis where some are missing.
fn cut(text: &str, width: usize) -> String {
    if letters(text) <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

fn letters(text: &str) -> usize {
    text.chars().count()
}
