//! Which codec, as a page.

use crate::asks::{
    Choice, choose, codecs, cpu, cpu_of_all, estimate, ratio, stored_share, typical,
};
use crate::metric::Metric;
use crate::page::{
    Axis, Cell, Chart, Column, Detail, Estimate as Figure, Group, Mark, Page, Plot, Scale, Series,
    Table,
};
use crate::result::RunResult;
use crate::result_page;
use crate::run_figures::{NONE, middle, runs_of, throughput_estimate};
use crate::survey::{CompressionQuestion, Estimate, SurveyRecord};
use crate::survey_page::{self, words};
use moldau_load::run::RunRecord;
use moldau_load::workload::Codec;
use moldau_measure::cpu::GENERATOR_ROLE;
use moldau_measure::numbers::{plain, rough, thousands};

/// Everything that the page is made of.
struct Asked<'a> {
    result: &'a RunResult,
    record: &'a SurveyRecord,
    question: &'a CompressionQuestion,
}

/// The page of a survey that asks for a codec.
#[must_use]
pub fn page(result: &RunResult, record: &SurveyRecord, question: &CompressionQuestion) -> Page {
    let asked = Asked { result, record, question };
    let mut page = result_page::blank(result, &record.question);
    if page.standing.has_figures() {
        let sentences = [asked.take(), asked.extremes()];
        page.answer =
            sentences.into_iter().chain([result_page::records(result)]).flatten().collect();
    }
    page.table = result.arms.first().map(|arm| asked.summary(&arm.name));
    page.charts = asked.charts();
    let tables = result.arms.iter().map(|arm| asked.table(&arm.name)).collect();
    page.details = vec![
        Detail::of("Every codec", Vec::new(), tables),
        survey_page::question(record),
        result_page::audit(result),
    ];
    page.details.retain(|detail| !detail.is_empty());
    page
}

impl<'a> Asked<'a> {
    /// The codecs at a rate, or at full speed, with their cases.
    fn codecs(&self, at_a_rate: bool) -> Vec<(Codec, &'a str)> {
        codecs(self.record, &self.result.runs, at_a_rate)
    }

    fn choose(
        &self,
        system: &str,
        figure: impl Fn(&RunRecord) -> Option<f64>,
    ) -> Option<Choice<Codec>> {
        choose(&self.result.runs, &self.codecs(true), system, self.result.seed, figure)
    }

    /// The codec with the lowest price on each system.
    fn take(&self) -> Option<String> {
        let of = |system: &str| {
            let price = self.choose(system, |run| self.question.price(run))?;
            Some(format!("{} on {system}", named(&price)))
        };
        let parts: Vec<String> = self.result.arms.iter().filter_map(|arm| of(&arm.name)).collect();
        (!parts.is_empty()).then(|| {
            format!(
                "Take {}: it costs least where a GB less to send and to store is worth {} s of CPU \
                 time.",
                parts.join(", "),
                thousands(self.question.gigabyte_is_worth_cpu_s.into())
            )
        })
    }

    /// The fewest bytes and the least CPU time on the first system.
    fn extremes(&self) -> Option<String> {
        let system = &self.result.arms.first()?.name;
        let bytes = self.choose(system, stored_share)?;
        let processor = self.choose(system, cpu_of_all)?;
        Some(format!(
            "{} sends the fewest bytes, {} % of the values; {} takes the least CPU time, {} ms per \
             MB of clients and brokers together.",
            capital(&named(&bytes)),
            rough(bytes.found.mean * 100.0),
            named(&processor),
            rough(processor.found.mean),
        ))
    }

    /// A mean over the rounds of a case.
    fn figure(
        &self,
        case: &str,
        system: &str,
        figure: impl Fn(&RunRecord) -> Option<f64>,
    ) -> Option<Estimate> {
        estimate(&self.result.runs, case, system, self.result.seed, figure)
    }

    fn p99(&self, case: &str, system: &str) -> Option<Estimate> {
        let runs = &self.result.runs;
        typical(runs, case, system, self.result.seed, |run| Metric::ResponseP99.of(run))
    }

    fn full_speed(&self, codec: Codec) -> Option<&'a str> {
        self.codecs(false).into_iter().find(|(other, _)| *other == codec).map(|(_, case)| case)
    }

    /// The small table of a system.
    fn summary(&self, system: &str) -> Table {
        let row = |(codec, case): (Codec, &str)| {
            let mean = |found: Option<Estimate>, scale: f64| {
                found.map_or(NONE.into(), |it| plain(it.mean * scale))
            };
            let full = self.full_speed(codec).and_then(|case| {
                middle(&runs_of(self.result, case, system), Metric::ProduceThroughput)
            });
            vec![
                word(codec).to_owned(),
                mean(self.figure(case, system, stored_share), 100.0),
                mean(self.figure(case, system, |run| cpu(run, GENERATOR_ROLE)), 1.0),
                mean(self.figure(case, system, |run| cpu(run, "broker")), 1.0),
                mean(self.figure(case, system, |run| self.question.price(run)), 1.0),
                mean(self.p99(case, system), 1.0),
                full.map_or(NONE.into(), plain),
            ]
        };
        Table {
            title: String::new(),
            about: format!(
                "On {system}, at a fixed rate but for the last column. CPU time per MB of values; \
                 the price of a GB is its CPU time and what its bytes are worth."
            ),
            columns: vec![
                Column::words("codec"),
                Column::figures("bytes", "%"),
                Column::figures("client CPU", "ms"),
                Column::figures("broker CPU", "ms"),
                Column::figures("price of a GB", "s"),
                Column::figures("publish p99", "ms"),
                Column::figures("full speed", "MB/s"),
            ],
            rows: self.codecs(true).into_iter().map(row).collect(),
        }
        .without_empty(NONE)
    }

    fn charts(&self) -> Vec<Chart> {
        let rate = self.codecs(true);
        let of = |figure: &dyn Fn(&RunRecord) -> Option<f64>, scale: f64| {
            self.chart_of(&rate, |case, system| {
                let found = self.figure(case, system, figure)?;
                let interval = found.interval.map(|it| (it.low * scale, it.high * scale));
                Some(Figure { value: found.mean * scale, interval })
            })
        };
        let whiskers = "Less is better; whiskers are 95 % intervals of the mean.";
        let charts = [
            of(&stored_share, 100.0).map(|chart| Chart {
                id: "bytes".into(),
                title: "Bytes on the wire and on disk".into(),
                about: format!("By the bytes of the values. {whiskers}"),
                ..with_axis(chart, "of the values", "%")
            }),
            of(&cpu_of_all, 1.0).map(|chart| Chart {
                id: "cpu".into(),
                title: "CPU time per MB".into(),
                about: format!("Of clients and brokers together, per MB of values. {whiskers}"),
                ..with_axis(chart, "CPU time per MB", "ms")
            }),
            of(&|run: &RunRecord| self.question.price(run), 1.0).map(|chart| Chart {
                id: "price".into(),
                title: "Price of a GB".into(),
                about: format!("CPU time, and what the bytes are worth. {whiskers}"),
                ..with_axis(chart, "price", "CPU s")
            }),
            self.chart_of(&self.codecs(false), |case, system| {
                throughput_estimate(&runs_of(self.result, case, system), self.result.seed)
            })
            .map(|chart| Chart {
                id: "full-speed".into(),
                title: "Throughput at full speed".into(),
                about: "Of values. More is better; whiskers are 95 % intervals of the mean.".into(),
                ..with_axis(chart, "throughput", "MB/s")
            }),
        ];
        charts.into_iter().flatten().collect()
    }

    /// A figure of every codec, in a group for each system.
    fn chart_of(
        &self,
        loads: &[(Codec, &str)],
        figure: impl Fn(&str, &str) -> Option<Figure>,
    ) -> Option<Chart> {
        let arms = &self.result.arms;
        let group = |system: &str| Group {
            name: if arms.len() > 1 { system.to_owned() } else { String::new() },
            cells: loads
                .iter()
                .map(|(_, case)| figure(case, system).map_or(Cell::Absent, Cell::Figure))
                .collect(),
        };
        let series = (0..).zip(loads);
        let series = series.map(|(tone, (codec, _))| Series { name: word(*codec).into(), tone });
        let groups: Vec<Group> = arms.iter().map(|arm| group(&arm.name)).collect();
        let has_any = groups.iter().flat_map(|group| &group.cells).any(|it| *it != Cell::Absent);
        has_any.then(|| Chart {
            id: String::new(),
            title: String::new(),
            about: String::new(),
            series: series.collect(),
            plot: Plot::Bars { axis: Axis::new("", "", Scale::Linear), mark: Mark::Bar, groups },
        })
    }

    fn table(&self, system: &str) -> Table {
        let loads = self.codecs(true);
        let without = loads.iter().find(|(codec, _)| *codec == Codec::None).map(|(_, case)| *case);
        let row = |(codec, case): &(Codec, &str)| {
            let figure = |figure: &dyn Fn(&RunRecord) -> Option<f64>, scale: f64| {
                self.figure(case, system, figure).map_or(NONE.into(), |it| words(&it, scale))
            };
            let more = without.filter(|without| without != case).and_then(|without| {
                let cases = [*case, without];
                ratio(&self.result.runs, cases, system, self.result.seed, cpu_of_all)
            });
            vec![
                word(*codec).to_owned(),
                figure(&|run| Metric::CompressionRatio.of(run), 1.0),
                figure(&stored_share, 100.0),
                figure(&|run| cpu(run, GENERATOR_ROLE), 1.0),
                figure(&|run| cpu(run, "broker"), 1.0),
                more.map_or(NONE.into(), |it| words(&it, 1.0)),
                figure(&|run| self.question.price(run), 1.0),
                self.p99(case, system).map_or(NONE.into(), |it| words(&it, 1.0)),
            ]
        };
        Table {
            title: format!("Codecs on {system}"),
            about:
                "Means over the rounds with 95 % intervals, of latencies geometric ones, at the \
                    fixed rate. Batches are stored as they are sent, so that their bytes are those \
                    of the wire and of the disk. CPU time is that for each MB of values produced \
                    and read once; clients are those of the laboratory with all that they do \
                    besides, which is the same for every codec."
                    .into(),
            columns: vec![
                Column::words("codec"),
                Column::figures("values by bytes", "x"),
                Column::figures("bytes", "%"),
                Column::figures("client CPU", "ms"),
                Column::figures("broker CPU", "ms"),
                Column::figures("both, of none's", "x"),
                Column::figures("price of a GB", "s"),
                Column::figures("publish p99", "ms"),
            ],
            rows: loads.iter().map(row).collect(),
        }
    }
}

fn with_axis(chart: Chart, name: &str, unit: &str) -> Chart {
    let plot = match chart.plot {
        Plot::Bars { mark, groups, .. } => {
            Plot::Bars { axis: Axis::new(name, unit, Scale::Linear), mark, groups }
        }
        other @ (Plot::Lines { .. } | Plot::Timeline { .. }) => other,
    };
    Chart { plot, ..chart }
}

/// A codec, with those that do not differ from it significantly.
fn named(choice: &Choice<Codec>) -> String {
    let alike: Vec<&str> = choice.alike.iter().map(|codec| word(*codec)).collect();
    match alike.as_slice() {
        [] => word(choice.best).into(),
        alike => format!("{} (or {})", word(choice.best), alike.join(", ")),
    }
}

fn word(codec: Codec) -> &'static str {
    match codec {
        Codec::None => "no codec",
        Codec::Gzip => "gzip",
        Codec::Snappy => "snappy",
        Codec::Lz4 => "lz4",
        Codec::Zstd => "zstd",
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::Asks;
    use crate::survey_page::sample::codecs_survey;

    fn page_of(result: &RunResult) -> Page {
        let record = result.survey().unwrap();
        let Some(Asks::Compression(question)) = &record.asks else { panic!("a survey of codecs") };
        page(result, record, question)
    }

    #[test]
    fn a_codec_is_recommended_by_bytes_by_cpu_time_and_by_both() {
        // 10 MB took 150, 170, 170 and 210 ms: 15.4, 17.4, 17.4 and 21.5 s for each GB.
        let answer = page_of(&codecs_survey()).answer;
        assert_eq!(
            answer[..2],
            [
                "Take zstd on ours: it costs least where a GB less to send and to store is worth \
                 100 s of CPU time.",
                "Zstd sends the fewest bytes, 30 % of the values; no codec takes the least CPU \
                 time, 15 ms per MB of clients and brokers together.",
            ]
        );
    }

    #[test]
    fn codecs_of_equal_cost_share_the_answer() {
        let mut result = codecs_survey();
        let is_kept =
            |run: &RunRecord| !matches!(run.workload.tuning.compression, Codec::None | Codec::Zstd);
        result.runs.retain(is_kept);
        let answer = &page_of(&result).answer[1];
        assert!(answer.contains("lz4 (or snappy) takes the least CPU time"), "{answer}");
        // Every difference in the share of bytes counts, however small.
        assert!(answer.starts_with("Lz4 sends the fewest bytes, 50 %"), "{answer}");
    }

    #[test]
    fn tables_have_ratios_to_no_codec_and_full_speed() {
        let page = page_of(&codecs_survey());
        let small = page.table.unwrap();
        let zstd = small.rows.iter().find(|row| row[0] == "zstd").unwrap();
        assert_eq!(zstd[2..4], ["18.0", "3.00"]);
        assert_eq!(zstd.last().map(String::as_str), Some("1.67"));
        let table = &page.details[0].tables[0];
        let zstd = table.rows.iter().find(|row| row[0] == "zstd").unwrap();
        assert_eq!((zstd[5].as_str(), table.rows[0][5].as_str()), ("1.40 [1.40, 1.40]", NONE));
        let ids: Vec<&str> = page.charts.iter().map(|chart| chart.id.as_str()).collect();
        assert_eq!(ids, ["bytes", "cpu", "price", "full-speed"]);
    }
}
