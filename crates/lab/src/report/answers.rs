//! What reports of experiment files have in common around their tables: answers, what was expected,
//! where it was published, and remarks.

use super::html::escape;
use crate::survey::Source;

/// The words of a report.
pub(super) struct Answers<'a> {
    pub(super) answers: Vec<String>,
    pub(super) hypothesis: &'a str,
    pub(super) source: Option<&'a Source>,
    pub(super) remarks: &'a [String],
}

impl Answers<'_> {
    /// The lines below the sentence, for a terminal.
    pub(super) fn text(&self) -> String {
        let line =
            |line: &String| format!("\n{}\n", super::text::wrapped(&format!("- {line}"), 96));
        self.answers.iter().chain(self.remarks).map(line).collect()
    }

    /// The same for the Markdown page, with the expectation and the source.
    pub(super) fn markdown(&self) -> Vec<String> {
        let item = |line: &String| format!("- {line}");
        let mut lines = vec![String::new()];
        lines.extend(self.answers.iter().map(item));
        lines.extend([String::new(), format!("Expected: {}", self.hypothesis)]);
        if let Some(source) = self.source {
            lines.extend([String::new(), format!("Source: [{}]({}).", source.title, source.url)]);
        }
        lines.push(String::new());
        lines.extend(self.remarks.iter().map(item));
        lines.extend([String::new(), "Raw data: [result.json](result.json).".into()]);
        lines
    }

    /// Expectation, source and remarks below the answers of the page.
    pub(super) fn html(&self) -> String {
        let mut html = format!("<p class=\"about\">Expected: {}</p>", escape(self.hypothesis));
        if let Some(source) = self.source {
            html += &format!(
                "<p class=\"about\">Source: {}, {}. Raw data: <a href=\"result.json\">result.json\
                 </a>.</p>",
                escape(&source.title),
                escape(&source.url)
            );
        }
        for remark in self.remarks {
            html += &format!("<p class=\"about\">{}</p>", escape(remark));
        }
        html
    }
}
