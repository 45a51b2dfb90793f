//! A page of everything that pages have, in all forms.

use super::*;
use proptest::prelude::*;

fn chart(plot: Plot) -> Chart {
    let series = ["direct & fast", "kroxylicious-encryption"].iter().zip([0, 12]);
    let series = series.map(|(name, tone)| Series { name: (*name).into(), tone });
    Chart {
        id: "cost".into(),
        title: "Cost <of> it".into(),
        about: "Less is better.".into(),
        series: series.collect(),
        plot,
    }
}

fn bars(scale: Scale, mark: Mark, values: &[f64]) -> Chart {
    let estimate = |value: f64| Estimate { value, interval: Some((value * 0.5, value * 1.5)) };
    let group = |value: &f64| Group {
        name: "20 MB/s".into(),
        cells: vec![Cell::Figure(estimate(*value)), Cell::Words("saturated".into())],
    };
    let mut groups: Vec<Group> = values.iter().map(group).collect();
    groups.push(Group { name: String::new(), cells: vec![Cell::Absent, Cell::Figure(1.0.into())] });
    chart(Plot::Bars { axis: Axis::new("CPU", "ms", scale), mark, groups })
}

fn lines(scale: Scale, style: Style, values: &[f64]) -> Chart {
    let point = |(x, value): (u32, &f64)| Point {
        x: f64::from(x) / 100.0,
        y: Estimate { value: *value, interval: Some((value * 0.9, value * 1.1)) },
    };
    let points: Vec<Point> = (0..).zip(values).map(point).collect();
    let lines =
        vec![Line { series: 0, style, points: points.clone() }, Line { series: 1, style, points }];
    let guides = vec![
        Guide { name: "limit".into(), at: At::Y(3.0) },
        Guide { name: "here".into(), at: At::X(0.01) },
    ];
    let x = Axis::new("share", "", Scale::Percentile);
    chart(Plot::Lines { x, y: Axis::new("latency", "ms", scale), lines, guides })
}

fn table(rows: usize) -> Table {
    let row = |at: usize| {
        vec![format!("path number {at} of many"), "12.5 [10.1, 14.9]".into(), "why".into()]
    };
    Table {
        title: "Small".into(),
        about: "Medians.".into(),
        columns: vec![Column::words("path"), Column::figures("cpu", "ms"), Column::words("note")],
        rows: (0..rows).map(row).collect(),
    }
}

fn page(rows: usize, warnings: usize) -> Page {
    let check = |outcome, name: &str| CheckRow {
        name: name.into(),
        outcome,
        found: "a <b> | c".into(),
        demanded: "none".into(),
    };
    Page {
        title: "What does \"it\" cost?".into(),
        about: "20260131-235959 UTC".into(),
        standing: Standing::Holds,
        answer: vec![
            "It costs 3 ms & nothing else.".into(),
            "All 9 records were read back.".into(),
        ],
        warnings: (0..warnings).map(|at| format!("warning {at}: {}", "long ".repeat(40))).collect(),
        table: Some(table(rows)),
        charts: vec![bars(Scale::Linear, Mark::Bar, &[1.0, 2.0])],
        details: vec![Detail {
            title: "More".into(),
            text: vec!["A paragraph.".into()],
            charts: vec![Chart {
                id: "more".into(),
                ..lines(Scale::Log, Style::Curve, &[1.0, 9.0])
            }],
            tables: vec![Table { title: "Every figure".into(), ..table(2) }],
        }],
        checks: vec![
            check(Outcome::Passed, "a passed check"),
            check(Outcome::Noted, "a note"),
            check(Outcome::Failed, "a failed check"),
        ],
        facts: vec![("kernel".into(), "Linux".into())],
        links: vec![Link { text: "result.json".into(), path: "result.json".into() }],
    }
}

#[test]
fn the_terminal_shows_answer_table_warnings_and_report_in_thirty_lines() {
    for (rows, warnings) in [(2, 0), (2, 9), (60, 0), (60, 9), (0, 3)] {
        for width in [48, 80, 200] {
            let text =
                terminal(&page(rows, warnings), "lab-runs/x/report.html", width, Extent::Short);
            let lines: Vec<&str> = text.lines().collect();
            assert!(lines.len() <= LINES_MAX, "{} lines of {rows}, {warnings}", lines.len());
            let widest = lines.iter().map(|line| line.chars().count()).max();
            assert!(widest <= Some(width), "{widest:?} of {width}\n{text}");
            assert!(text.starts_with("It costs 3 ms & nothing else."), "{text}");
            assert_eq!(lines.last(), Some(&"report: lab-runs/x/report.html"));
            assert_eq!(text.contains("! warning 0"), warnings > 0);
            assert_eq!(text.contains("! 5 more"), warnings == 9);
            assert_eq!(text.contains("more rows"), rows == 60);
            assert_eq!(text.contains("12.5 [10.1, 14.9]"), rows > 0);
            assert!(!text.contains("a passed check"));
        }
    }
}

#[test]
fn the_terminal_shows_everything_when_asked() {
    let text = terminal(&page(60, 9), "", 100, Extent::Verbose);
    for part in ["path number 59", "warning 8", "A paragraph.", "Every figure", "FAILED  a failed"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("report:"));
}

#[test]
fn figures_that_do_not_hold_are_no_answer() {
    let refused = Page { standing: Standing::Invalid, ..page(2, 0) };
    let text = terminal(&refused, "r", 80, Extent::Short);
    assert!(text.starts_with("NOT VALID:\nIt costs"), "{text}");
    assert!(!text.contains("12.5"), "{text}");
    let figures = |html: &str| html.matches("<figure").count();
    // The chart beside the answer is gone, what is folded stays.
    assert_eq!((figures(&html(&refused)), figures(&html(&page(2, 0)))), (1, 2));
    assert!(html(&refused).contains("not valid"));
    assert!(!markdown(&refused).contains("](charts/cost.svg)"));
}

#[test]
fn the_html_page_is_whole_and_hides_nothing_in_markup() {
    let html = html(&page(2, 1));
    for part in [
        "It costs 3 ms &amp; nothing else.",
        "Cost &lt;of&gt; it",
        "a &lt;b&gt; | c",
        "<summary>More</summary>",
        "href=\"result.json\"",
        "prefers-color-scheme: dark",
        "viewport",
    ] {
        assert!(html.contains(part), "{part} in {html}");
    }
    for outside in ["src=", "http://", "https://", "@import", "url(", "<script"] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn markdown_links_charts_and_raw_data_and_keeps_cells_apart() {
    let text = markdown(&page(1, 1));
    for part in [
        "# What does \"it\" cost?\n",
        "![Cost <of> it](charts/cost.svg)",
        "| path | cpu, ms | note |\n|---|---:|---|\n",
        "| **failed** | a failed check | a <b> \\| c | none |",
        "Raw data: [result.json](result.json).",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn chart_has_a_text_description() {
    let picture = picture(&bars(Scale::Linear, Mark::Bar, &[2.0]));
    let told =
        "CPU, ms. 20 MB/s: direct &amp; fast 2.00 [1.00, 3.00], kroxylicious-encryption saturated.";
    assert!(picture.contains(told), "{picture}");
    assert!(picture.contains("<title>Cost &lt;of&gt; it</title>"));
    assert!(picture.contains("xmlns=\"http://www.w3.org/2000/svg\""));
    assert_well_formed(&picture);
}

/// Every element ends where it should, and every place is a number.
fn assert_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = svg;
    while let Some((_, tag)) = rest.split_once('<') {
        let (tag, after) = tag.split_once('>').expect("a tag ends");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{svg}"),
            None => open.push(tag.split_whitespace().next().expect("a tag has a name")),
        }
        assert!(!tag.contains("NaN") && !tag.contains("inf"), "{tag} in {svg}");
        rest = after;
    }
    assert_eq!(open, Vec::<&str>::new());
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(0.0),
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::MIN_POSITIVE),
        0.0..1e3,
        -1e3..1e12,
    ]
}

#[test]
fn parts_without_words_have_no_heading_in_a_terminal() {
    let charts = vec![bars(Scale::Linear, Mark::Bar, &[1.0])];
    let page = Page {
        details: vec![Detail::of("Courses", charts, Vec::new())],
        checks: Vec::new(),
        facts: Vec::new(),
        ..page(1, 0)
    };
    let text = terminal(&page, "", 100, Extent::Verbose);
    for heading in ["Courses", "Checks", "Environment"] {
        assert!(!text.contains(heading), "{text}");
    }
}

const STYLES: [Style; 4] = [Style::Curve, Style::Dashed, Style::Points, Style::Joined];

proptest! {
    #[test]
    fn whatever_the_figures_are_a_chart_can_be_drawn(
        values in prop::collection::vec(value(), 0..6),
        scale in prop::sample::select(vec![Scale::Linear, Scale::Span, Scale::Log]),
        mark in prop::sample::select(vec![Mark::Bar, Mark::Dot]),
        style in prop::sample::select(STYLES.to_vec()),
    ) {
        assert_well_formed(&picture(&bars(scale, mark, &values)));
        assert_well_formed(&picture(&lines(scale, style, &values)));
    }
}
