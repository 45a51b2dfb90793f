//! Tables of the client tools, no wider than the terminal.

use std::io::Write;

use crate::output::stdout;

/// Prints rows under their headings, each column as wide as its widest cell. Where stdout is a
/// terminal that is too narrow, the cells of the widest columns are cut.
///
/// # Errors
/// Stdout is closed.
pub(crate) fn print_table<const N: usize>(
    headings: [&str; N],
    rows: &[[String; N]],
) -> anyhow::Result<()> {
    let columns =
        rustix::termios::tcgetwinsize(std::io::stdout()).map(|size| usize::from(size.ws_col));
    // A terminal that does not know its size says zero.
    let columns = columns.ok().filter(|columns| *columns > 0);
    Ok(write_table(&mut stdout(), headings, rows, columns)?)
}

fn write_table<const N: usize>(
    out: &mut impl Write,
    headings: [&str; N],
    rows: &[[String; N]],
    columns: Option<usize>,
) -> std::io::Result<()> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([headings[column].len()]).max().unwrap_or(0)
    };
    let mut widths: [usize; N] = std::array::from_fn(width);
    if let Some(columns) = columns {
        narrow(&mut widths, headings.map(str::len), columns);
    }
    let headings = headings.map(str::to_owned);
    for row in std::iter::once(&headings).chain(rows) {
        let cells = row.iter().zip(widths).map(|(cell, width)| {
            let cell = cut(cell, width);
            format!("{cell:<width$}")
        });
        let line = cells.collect::<Vec<_>>().join(GAP);
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Takes from the widest column until all fit, but leaves each as wide as its heading.
fn narrow<const N: usize>(widths: &mut [usize; N], least: [usize; N], columns: usize) {
    let gaps = GAP.len() * N.saturating_sub(1);
    let mut excess = (widths.iter().sum::<usize>() + gaps).saturating_sub(columns);
    while excess > 0 {
        let shrinkable = widths.iter_mut().zip(least).filter(|(width, least)| **width > *least);
        let Some((width, _)) = shrinkable.max_by_key(|(width, _)| **width) else { return };
        *width -= 1;
        excess -= 1;
    }
}

/// The cell, with an ellipsis for what does not fit.
fn cut(cell: &str, width: usize) -> String {
    match cell.char_indices().nth(width) {
        None => cell.to_owned(),
        Some(_) => cell.chars().take(width.saturating_sub(1)).chain(['\u{2026}']).collect(),
    }
}

/// What stands between two columns.
const GAP: &str = "  ";

#[cfg(test)]
mod tests {
    use super::*;

    fn table(columns: Option<usize>) -> Vec<String> {
        let rows = [["orders-of-the-last-year", "3"], ["b\u{f6}rse", "100000"]];
        let rows = rows.map(|row| row.map(str::to_owned));
        let mut out = Vec::new();
        write_table(&mut out, ["TOPIC", "PARTITIONS"], &rows, columns).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_table_is_as_wide_as_its_cells_where_there_is_room() {
        let lines = table(None);
        assert_eq!(lines[1], "orders-of-the-last-year  3");
        assert_eq!(lines[2], "b\u{f6}rse                    100000");
        assert_eq!(table(Some(35)), lines);
    }

    #[test]
    fn long_cells_are_cut_to_the_width_of_the_terminal() {
        let lines = table(Some(24));
        assert_eq!(lines[0], "TOPIC         PARTITIONS");
        assert_eq!(lines[1], "orders-of-t\u{2026}  3");
        assert!(lines.iter().all(|line| line.chars().count() <= 24), "{lines:#?}");
    }

    #[test]
    fn a_column_stays_as_wide_as_its_heading() {
        assert_eq!(table(Some(3))[..2], ["TOPIC  PARTITIONS", "orde\u{2026}  3"]);
    }
}
