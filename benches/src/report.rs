//! What was found: rows of figures, and what is plotted.

use serde::Serialize;

use crate::Options;
use crate::statistics::{compare, summarize};

/// One of ours beside one baseline, on so many threads.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// What was measured.
    pub name: String,
    /// On how many threads at once.
    pub threads: u32,
    /// What one operation took on its thread, the median of the rounds.
    pub ns_per_op: f64,
    /// How far a round was from that, as a standard deviation.
    pub spread_ns: f64,
    /// The unit of these.
    pub unit: &'static str,
    /// Operations a second of all threads together; none where the time is a percentile or happens once.
    pub per_second: Option<f64>,
    /// What it is compared with.
    pub baseline: String,
    /// The same for the baseline.
    pub baseline_ns_per_op: f64,
    /// The same for the baseline.
    pub baseline_spread_ns: f64,
    /// How many times as long the baseline takes; none where that says nothing.
    pub ratio: Option<f64>,
    /// How far a round's ratio was from that, as a standard deviation.
    pub ratio_spread: Option<f64>,
    /// Why there is no ratio.
    pub reason: Option<String>,
    /// How many rounds there were.
    pub rounds: usize,
    /// The driver.
    pub driver: String,
    /// The device.
    pub device: String,
}

/// One design: for each number of threads, what an operation took in each round, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Series {
    /// The design.
    pub name: String,
    /// Whether it is this library's.
    pub is_ours: bool,
    /// Numbers of threads, each with the rounds.
    pub points: Vec<(u32, Vec<f64>)>,
}

/// Designs that were measured side by side.
#[derive(Clone, Debug)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// A line for each.
    pub series: Vec<Series>,
}

/// All that was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One for each pair and number of threads.
    pub rows: Vec<Row>,
    /// One for each set of designs.
    pub charts: Vec<Chart>,
}

impl Series {
    pub(crate) fn new(name: &str, is_ours: bool) -> Self {
        Self {
            name: name.to_owned(),
            is_ours,
            points: Vec::new(),
        }
    }

    fn rounds(&self, threads: u32) -> &[f64] {
        self.points
            .iter()
            .find(|(count, _)| *count == threads)
            .map_or(&[], |(_, rounds)| rounds)
    }
}

impl Chart {
    pub(crate) fn series(&self, name: &str) -> &Series {
        self.series
            .iter()
            .find(|series| series.name == name)
            .unwrap_or_else(|| panic!("{} has no design {name}", self.title))
    }
}

impl Report {
    /// Adds the rows of one pair, for each number of threads that both were measured on.
    pub(crate) fn compare(&mut self, options: &Options<'_>, ours: &Series, baseline: &Series) {
        for (threads, rounds) in &ours.points {
            let others = baseline.rounds(*threads);
            if !others.is_empty() {
                self.rows.push(row(
                    options,
                    &ours.name,
                    &baseline.name,
                    *threads,
                    rounds,
                    others,
                ));
            }
        }
    }
}

pub(crate) fn row(
    options: &Options<'_>,
    name: &str,
    baseline: &str,
    threads: u32,
    ours: &[f64],
    others: &[f64],
) -> Row {
    let own = summarize(ours);
    let other = summarize(others);
    let comparison = compare(ours, others);
    Row {
        name: name.to_owned(),
        threads,
        ns_per_op: own.median,
        spread_ns: own.spread,
        unit: "ns",
        per_second: Some(f64::from(threads) * 1e9 / own.median),
        baseline: baseline.to_owned(),
        baseline_ns_per_op: other.median,
        baseline_spread_ns: other.spread,
        ratio: comparison.ratio,
        ratio_spread: comparison.spread,
        reason: comparison.reason,
        rounds: ours.len(),
        driver: options.driver.clone(),
        device: options.device.clone(),
    }
}
