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

    /// The part of the terminal's report, with columns below one another: figures end at the same
    /// place, the names of rows and other words begin there.
    pub(super) fn text(&self) -> String {
        let lines: Vec<&Vec<String>> = std::iter::once(&self.columns).chain(&self.rows).collect();
        let column = |at: usize| {
            let cells = lines.iter().filter_map(|line| line.get(at));
            let width = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            (width, at == 0 || self.is_of_words(at))
        };
        let columns: Vec<(usize, bool)> = (0..self.columns.len()).map(column).collect();
        let mut text = format!("\n{}\n\n", self.title);
        for line in &lines {
            let padded = line.iter().zip(&columns).map(|(cell, (width, is_left))| match is_left {
                true => format!("{cell:<width$}"),
                false => format!("{cell:>width$}"),
            });
            let padded = padded.collect::<Vec<_>>().join("  ");
            text += &format!("  {}\n", padded.trim_end());
        }
        text
    }

    /// Whether words stand in a column where others have figures.
    fn is_of_words(&self, at: usize) -> bool {
        let cells = self.rows.iter().filter_map(|row| row.get(at));
        let mut cells = cells.filter(|cell| cell.chars().any(char::is_alphanumeric)).peekable();
        cells.peek().is_some() && cells.all(|cell| cell.starts_with(char::is_alphabetic))
    }

    /// The lines of the Markdown page.
    pub(super) fn markdown(&self) -> Vec<String> {
        let mut lines = vec![String::new(), format!("## {}", self.title), String::new()];
        // A stroke in a cell, as in a name that somebody gave, would end it.
        let line = |cells: &Vec<String>| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |", cells.join(" | "))
        };
        lines.push(line(&self.columns));
        lines.push(format!("|{}", "---|".repeat(self.columns.len())));
        lines.extend(self.rows.iter().map(line));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stroke_ends_no_cell_in_markdown() {
        let grid = Grid::of("Title", "", &["a|b"], [vec!["c|d".to_owned()]].into_iter());
        assert_eq!(grid.markdown()[3..6], ["| a\\|b |", "|---|", "| c\\|d |"]);
    }

    #[test]
    fn figures_end_below_one_another_and_words_begin_there() {
        let row = |cells: [&str; 4]| cells.map(String::from).to_vec();
        let rows = [row(["a", "9.5", "refused", "1"]), row(["100 B", "12", "-", "none"])];
        let grid = Grid::of("Title", "", &["case", "rate, MB/s", "why", "n"], rows.into_iter());
        let lines = [
            "",
            "Title",
            "",
            "  case   rate, MB/s  why         n",
            "  a             9.5  refused     1",
            "  100 B          12  -        none",
            "",
        ];
        let text = lines.join("\n");
        assert_eq!(grid.text(), text);
    }
}
