//! Ratios that have to hold.

use std::str::FromStr;

use crate::{Group, Report};

/// A ratio of a group that has to be at least so large, on so many threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// The group that it is measured in.
    pub group: Group,
    /// On how many threads.
    pub threads: u32,
    /// The least ratio.
    pub at_least: f64,
}

const DEFAULT_THREADS: u32 = 2;

/// What stands for a group: ours, and what it is compared with.
fn pair(group: Group) -> Option<(&'static str, &'static str)> {
    match group {
        Group::Lookups => Some(("device and encoder lookup", "two locks")),
        Group::Events => Some(("event create and release", "driver create and destroy")),
        Group::Launch => Some(("launch", "driver launch")),
        Group::Evaluations => Some(("evaluation", "hand-written driver code")),
        Group::Modules | Group::FirstUse => None,
    }
}

impl FromStr for Check {
    type Err = String;

    /// `lookups=20`, or `lookups@16=150` for another number of threads than 2.
    fn from_str(text: &str) -> Result<Self, String> {
        let form = "it has the form GROUP=RATIO or GROUP@THREADS=RATIO, such as lookups=20";
        let (place, ratio) = text.split_once('=').ok_or(form)?;
        let (name, threads) = match place.split_once('@') {
            None => (place, DEFAULT_THREADS),
            Some((name, threads)) => (name, threads.parse().map_err(|_| form)?),
        };
        let group = Group::from_name(name)
            .filter(|group| pair(*group).is_some())
            .ok_or("GROUP is lookups, events, launch or evaluations")?;
        match ratio.parse() {
            Ok(at_least) if at_least > 0.0 && f64::is_finite(at_least) => Ok(Self {
                group,
                threads,
                at_least,
            }),
            _ => Err(format!("RATIO is a number above 0, not {ratio:?}")),
        }
    }
}

impl Check {
    /// Whether it holds, with the figure in words either way.
    ///
    /// # Errors
    ///
    /// Why it does not hold.
    pub fn judge(&self, report: &Report) -> Result<String, String> {
        let (name, baseline) = pair(self.group).ok_or("no ratio stands for this group")?;
        let title = format!("{name} on {} threads against {baseline}", self.threads);
        let row = report
            .rows
            .iter()
            .find(|row| row.name == name && row.baseline == baseline && row.threads == self.threads)
            .ok_or_else(|| format!("{title}: it was not measured"))?;
        match (row.ratio, &row.reason) {
            (Some(ratio), _) if ratio >= self.at_least => {
                Ok(format!("{title}: {ratio:.1}, at least {}", self.at_least))
            }
            (Some(ratio), _) => Err(format!("{title}: {ratio:.1}, less than {}", self.at_least)),
            (None, reason) => Err(format!(
                "{title}: no ratio, since {}",
                reason.as_deref().unwrap_or("it is not known")
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Row;

    fn report(threads: u32, ratio: Option<f64>) -> Report {
        let row = Row {
            name: "device and encoder lookup".to_owned(),
            threads,
            ns_per_op: 1.0,
            spread_ns: 0.0,
            unit: "ns",
            per_second: None,
            baseline: "two locks".to_owned(),
            baseline_ns_per_op: 1.0,
            baseline_spread_ns: 0.0,
            ratio,
            ratio_spread: None,
            reason: ratio.is_none().then(|| "it is noise".to_owned()),
            rounds: 7,
            driver: "sim".to_owned(),
            device: "a GPU".to_owned(),
        };
        Report {
            rows: vec![row],
            charts: Vec::new(),
        }
    }

    #[test]
    fn checks_are_read_strictly() {
        let check: Check = "lookups=20".parse().unwrap();
        assert_eq!((check.group, check.threads), (Group::Lookups, 2));
        let check: Check = "events@16=500.5".parse().unwrap();
        assert_eq!((check.threads, check.at_least), (16, 500.5));
        for text in [
            "lookups",
            "lookups=",
            "lookups=x",
            "lookups=0",
            "lookups=-1",
            "lookups=inf",
            "lookups=nan",
            "lookup=1",
            "modules=1",
            "lookups@=1",
            "lookups@x=1",
            "",
        ] {
            assert!(text.parse::<Check>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_check_holds_only_for_a_ratio_that_is_there_and_large_enough() {
        let check: Check = "lookups=20".parse().unwrap();
        assert!(check.judge(&report(2, Some(20.0))).is_ok());
        let error = check.judge(&report(2, Some(19.9))).unwrap_err();
        assert!(error.contains("19.9, less than 20"), "{error}");
        let error = check.judge(&report(2, None)).unwrap_err();
        assert!(error.contains("no ratio, since it is noise"), "{error}");
        let error = check.judge(&report(4, Some(99.0))).unwrap_err();
        assert!(error.contains("not measured"), "{error}");
    }
}
