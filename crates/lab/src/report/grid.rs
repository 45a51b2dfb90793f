//! A table of words in all forms of the report.

use super::html::escape;

/// One table; the first column names the row.
pub(super) struct Grid {
    pub(super) title: String,
    pub(super) about: String,
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

impl Grid {
    pub(super) fn of<C: ToString>(
        title: &str,
        about: &str,
        columns: &[C],
        rows: impl Iterator<Item = Vec<String>>,
    ) -> Self {
        let columns = columns.iter().map(ToString::to_string).collect();
        Self { title: title.into(), about: about.into(), columns, rows: rows.collect() }
    }

    /// The part of the terminal's report, with columns below one another.
    pub(super) fn text(&self) -> String {
        let lines: Vec<&Vec<String>> = std::iter::once(&self.columns).chain(&self.rows).collect();
        let width = |column: usize| {
            lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max()
        };
        let widths: Vec<usize> =
            (0..self.columns.len()).map(|column| width(column).unwrap_or(0)).collect();
        let mut text = format!("\n{}\n\n", self.title);
        for line in &lines {
            let padded = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
            text += &format!("  {}\n", padded.collect::<Vec<_>>().join("  "));
        }
        text
    }

    /// The lines of the Markdown page.
    pub(super) fn markdown(&self) -> Vec<String> {
        let mut lines = vec![String::new(), format!("## {}", self.title), String::new()];
        lines.push(format!("| {} |", self.columns.join(" | ")));
        lines.push(format!("|{}", "---|".repeat(self.columns.len())));
        lines.extend(self.rows.iter().map(|row| format!("| {} |", row.join(" | "))));
        lines.extend([String::new(), self.about.clone()]);
        lines
    }

    /// The section of the page.
    pub(super) fn html(&self) -> String {
        let mut html = format!(
            "<h2>{}</h2><p class=\"about\">{}</p><div class=\"card table\"><table><tr>",
            escape(&self.title),
            escape(&self.about)
        );
        for column in &self.columns {
            html += &format!("<th>{}</th>", escape(column));
        }
        html += "</tr>";
        for row in &self.rows {
            html += "<tr>";
            for cell in row {
                html += &format!("<td>{}</td>", escape(cell));
            }
            html += "</tr>";
        }
        html + "</table></div>"
    }
}
