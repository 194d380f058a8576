//! What is measured beside what.

use std::thread::available_parallelism;
use std::time::Duration;

use crate::c_design::c_design;
use crate::evaluation::{self, Evaluation};
use crate::measure::{Design, calibrate, run_undisturbed};
use crate::report::{Chart, Report, Series};
use crate::{Options, Progress, first_use, modules};

/// What can be asked for by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// A device, and its encoder, found.
    Lookups,
    /// Events taken, given back and recorded.
    Events,
    /// A compiled module found, while another is compiled and while none is.
    Modules,
    /// An empty kernel launched, and a device made current.
    Launch,
    /// `arange * 2 + 1`, read back and checked.
    Evaluations,
    /// A device's first use by many threads at once.
    FirstUse,
}

/// Designs that are measured in turns, and which of ours is compared with what.
pub(crate) struct Set {
    title: &'static str,
    /// How many times as long as others a round is, where the wait at its end would else count for too much.
    length: u32,
    /// How long a run is tried again that other work on the machine disturbs, where the threads fit on the processors. Not
    /// at all where a driver has threads of its own, which disturb as they have to.
    patience: Duration,
    ours: &'static [&'static str],
    baselines: &'static [&'static str],
    pairs: &'static [(&'static str, &'static [&'static str])],
}

const LOOKUPS: &[Set] = &[Set {
    title: "Lookups",
    length: 1,
    patience: Duration::from_millis(250),
    ours: &["device lookup", "device and encoder lookup"],
    baselines: &[
        "thread-local memory alone",
        "eager vector, no lock",
        "shared mutex, hash map",
        "mutex, hash map",
        "rwlock, array",
        "two locks",
    ],
    pairs: &[
        (
            "device lookup",
            &[
                "thread-local memory alone",
                "eager vector, no lock",
                "shared mutex, hash map",
                "mutex, hash map",
                "rwlock, array",
            ],
        ),
        (
            "device and encoder lookup",
            &["thread-local memory alone", "two locks"],
        ),
    ],
}];

const EVENTS: &[Set] = &[
    Set {
        title: "Events, taken and given back",
        length: 1,
        patience: Duration::ZERO,
        ours: &[
            "event create and release",
            "event create alone",
            "event release alone",
            "device lookup",
        ],
        baselines: &[
            "driver create and destroy",
            "one locked pool",
            "first-thread-only pool",
        ],
        pairs: &[
            (
                "event create and release",
                &[
                    "driver create and destroy",
                    "one locked pool",
                    "first-thread-only pool",
                    "device lookup",
                ],
            ),
            ("event create alone", &["device lookup"]),
            ("event release alone", &["device lookup"]),
        ],
    },
    Set {
        title: "Events, recorded",
        length: 1,
        patience: Duration::ZERO,
        ours: &["event record"],
        baselines: &["driver record"],
        pairs: &[("event record", &["driver record"])],
    },
];

const LAUNCH: &[Set] = &[
    Set {
        title: "Launch of an empty kernel, each thread on its own stream",
        length: 4,
        patience: Duration::ZERO,
        ours: &["launch"],
        baselines: &["driver launch"],
        pairs: &[("launch", &["driver launch"])],
    },
    Set {
        title: "Making a device current",
        length: 1,
        patience: Duration::ZERO,
        ours: &["make current"],
        baselines: &["driver set-device"],
        pairs: &[("make current", &["driver set-device"])],
    },
];

const EVALUATIONS: &[Set] = &[Set {
    title: "arange * 2 + 1, read back and checked",
    length: 1,
    patience: Duration::ZERO,
    ours: &[evaluation::NAME, "evaluation by a graph"],
    baselines: &["hand-written driver code", "driver graph"],
    pairs: &[
        (evaluation::NAME, &["hand-written driver code"]),
        (
            "evaluation by a graph",
            &["hand-written driver code", "driver graph"],
        ),
    ],
}];

impl Group {
    /// Every group, in the order in which they are measured.
    pub const ALL: [Self; 6] = [
        Self::Lookups,
        Self::Events,
        Self::Modules,
        Self::Launch,
        Self::Evaluations,
        Self::FirstUse,
    ];

    /// The group's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lookups => "lookups",
            Self::Events => "events",
            Self::Modules => "modules",
            Self::Launch => "launch",
            Self::Evaluations => "evaluations",
            Self::FirstUse => "first-use",
        }
    }

    /// The group of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.name() == name)
    }

    pub(crate) fn sets(self) -> &'static [Set] {
        match self {
            Self::Lookups => LOOKUPS,
            Self::Events => EVENTS,
            Self::Launch => LAUNCH,
            Self::Evaluations => EVALUATIONS,
            Self::Modules | Self::FirstUse => &[],
        }
    }

    /// How many times progress is told.
    pub(crate) fn steps(self, options: &Options<'_>) -> u64 {
        match self {
            Self::Modules => modules::steps(options),
            Self::FirstUse => first_use::steps(options),
            _ => self.sets().iter().map(|set| set.steps(options)).sum(),
        }
    }
}

fn design(name: &str) -> &'static dyn Design {
    if name == evaluation::NAME {
        &Evaluation
    } else {
        c_design(name)
    }
}

impl Set {
    fn names(&self) -> impl Iterator<Item = (&'static str, bool)> {
        let ours = self.ours.iter().map(|&name| (name, true));
        ours.chain(self.baselines.iter().map(|&name| (name, false)))
    }

    fn steps(&self, options: &Options<'_>) -> u64 {
        let runs = u64::from(options.rounds) + 1;
        (options.threads.len() * self.names().count()) as u64 * runs
    }

    pub(crate) fn run(
        &self,
        options: &Options<'_>,
        progress: &mut dyn Progress,
        report: &mut Report,
    ) -> Result<(), String> {
        let mut chart = Chart {
            title: self.title.to_owned(),
            series: self
                .names()
                .map(|(name, is_ours)| Series::new(name, is_ours))
                .collect(),
        };
        for &threads in &options.threads {
            self.run_with(options, threads, progress, &mut chart)?;
        }
        for (ours, baselines) in self.pairs {
            for baseline in *baselines {
                report.compare(options, chart.series(ours), chart.series(baseline));
            }
        }
        report.charts.push(chart);
        Ok(())
    }

    fn run_with(
        &self,
        options: &Options<'_>,
        threads: u32,
        progress: &mut dyn Progress,
        chart: &mut Chart,
    ) -> Result<(), String> {
        let device = options.device_index;
        let round_time = options.round_time * self.length;
        let fits = available_parallelism().is_ok_and(|count| threads as usize <= count.get());
        let patience = if fits { self.patience } else { Duration::ZERO };
        let mut iterations = Vec::new();
        for series in &mut chart.series {
            let design = design(&series.name);
            iterations.push(calibrate(design, threads, device, round_time)?);
            series.points.push((threads, Vec::new()));
            progress.step(&series.name);
        }
        let count = chart.series.len();
        for round in 0..options.rounds {
            for turn in 0..count {
                let place = if round % 2 == 0 {
                    turn
                } else {
                    count - 1 - turn
                };
                let series = &mut chart.series[place];
                let ns = run_undisturbed(
                    design(&series.name),
                    threads,
                    device,
                    iterations[place],
                    patience,
                )?;
                if let Some((_, rounds)) = series.points.last_mut() {
                    rounds.push(ns);
                }
                progress.step(&series.name);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_has_a_name_of_its_own() {
        for group in Group::ALL {
            assert_eq!(Group::from_name(group.name()), Some(group));
        }
        assert_eq!(Group::from_name("lookup"), None);
    }

    #[test]
    fn every_design_that_is_named_exists_and_is_measured() {
        for group in Group::ALL {
            for set in group.sets() {
                for (name, _) in set.names() {
                    assert_eq!(design(name).name(), name);
                }
                for (ours, baselines) in set.pairs {
                    assert!(set.ours.contains(ours), "{ours}");
                    for baseline in *baselines {
                        assert!(set.names().any(|(name, _)| name == *baseline), "{baseline}");
                    }
                }
            }
        }
    }
}
