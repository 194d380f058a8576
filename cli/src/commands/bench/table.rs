//! The table of `rdm bench`, and below it why a ratio is left out.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use rocm_device_map_benches::Row;

/// Three digits that count, in the unit that reads best.
fn time(ns: f64) -> String {
    let (value, unit) = match ns.abs() {
        size if size < 1e4 => (ns, "ns"),
        size if size < 1e7 => (ns / 1e3, "us"),
        _ => (ns / 1e6, "ms"),
    };
    format!("{} {unit}", number(value))
}

fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.decimals$}")
}

fn ratio(row: &Row) -> String {
    match (row.ratio, row.ratio_spread) {
        (Some(ratio), Some(spread)) => format!("{} ± {}", number(ratio), number(spread)),
        _ => "-".to_owned(),
    }
}

pub fn text(rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_preset(UTF8_FULL_CONDENSED).set_header([
        "what",
        "threads",
        "time",
        "±",
        "a second, in all",
        "baseline",
        "its time",
        "±",
        "ratio",
    ]);
    for row in rows {
        table.add_row([
            row.name.clone(),
            row.threads.to_string(),
            time(row.ns_per_op),
            time(row.spread_ns),
            row.per_second
                .map_or_else(String::new, |rate| format!("{rate:.0}")),
            row.baseline.clone(),
            time(row.baseline_ns_per_op),
            time(row.baseline_spread_ns),
            ratio(row),
        ]);
    }
    for column in [1, 2, 3, 4, 6, 7, 8] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = format!("{table}\n");
    for row in rows {
        if let Some(reason) = &row.reason {
            let threads = match row.threads {
                1 => "1 thread".to_owned(),
                count => format!("{count} threads"),
            };
            let (name, baseline) = (&row.name, &row.baseline);
            let _ = writeln!(
                text,
                "no ratio for {name} on {threads} against {baseline}: {reason}"
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_digits() {
        assert_eq!(number(1.234), "1.23");
        assert_eq!(number(9.999), "10.0");
        assert_eq!(number(58.04), "58.0");
        assert_eq!(number(2827.4), "2827");
        assert_eq!(time(0.612), "0.61 ns");
        assert_eq!(time(34525.0), "34.5 us");
        assert_eq!(time(32.4e6), "32.4 ms");
    }

    fn row(ratio: Option<f64>) -> Row {
        Row {
            name: "device lookup".to_owned(),
            threads: 4,
            ns_per_op: 1.5,
            spread_ns: 0.1,
            unit: "ns",
            per_second: Some(2.6e9),
            baseline: "two locks".to_owned(),
            baseline_ns_per_op: 30.0,
            baseline_spread_ns: 1.0,
            ratio,
            ratio_spread: Some(0.5),
            reason: ratio.is_none().then(|| "it is noise".to_owned()),
            rounds: 7,
            driver: "sim".to_owned(),
            device: "a GPU".to_owned(),
        }
    }

    #[test]
    fn a_refused_ratio_is_a_dash_with_its_reason_below() {
        let given = text(&[row(Some(20.0))]);
        assert!(
            given.contains("20.0 ± 0.50") && !given.contains("no ratio"),
            "{given}"
        );
        let refused = text(&[row(None)]);
        assert!(
            refused
                .contains("no ratio for device lookup on 4 threads against two locks: it is noise"),
            "{refused}"
        );
        assert!(!refused.contains("0.50"), "{refused}");
    }
}
