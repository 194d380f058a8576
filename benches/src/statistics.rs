//! Medians, spreads, and when a ratio says something.

/// Scales the median absolute deviation to the standard deviation, for values that scatter evenly.
const DEVIATION_SCALE: f64 = 1.4826;

/// So few rounds tell no spread.
const FEWEST_ROUNDS: usize = 3;

/// What several rounds came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    /// How far a round is from the median, as a standard deviation that outliers do not move.
    pub(crate) spread: f64,
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

pub(crate) fn summarize(values: &[f64]) -> Summary {
    let center = median(values);
    let distances: Vec<f64> = values.iter().map(|value| (value - center).abs()).collect();
    Summary {
        median: center,
        spread: median(&distances) * DEVIATION_SCALE,
    }
}

/// The value that this share of all is at most.
pub(crate) fn percentile(sorted: &[u32], share: f64) -> f64 {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted
        .get(rank.clamp(1, sorted.len().max(1)) - 1)
        .map_or(f64::NAN, |&value| f64::from(value))
}

/// How many times as long the baseline takes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comparison {
    /// None where it would say nothing.
    pub(crate) ratio: Option<f64>,
    pub(crate) spread: Option<f64>,
    /// Why there is no ratio.
    pub(crate) reason: Option<String>,
}

/// Compares what was measured in the same rounds.
pub(crate) fn compare(ours: &[f64], baseline: &[f64]) -> Comparison {
    let refuse = |spread, reason| Comparison {
        ratio: None,
        spread,
        reason: Some(reason),
    };
    let ratios: Vec<f64> = ours.iter().zip(baseline).map(|(a, b)| b / a).collect();
    if ratios.len() < FEWEST_ROUNDS {
        let reason = format!(
            "{} rounds tell no spread; it takes {FEWEST_ROUNDS}",
            ratios.len()
        );
        return refuse(None, reason);
    }
    if !ratios.iter().all(|ratio| ratio.is_finite() && *ratio > 0.0) {
        return refuse(None, "a round was too short to be measured".to_owned());
    }
    let Summary { median, spread } = summarize(&ratios);
    let effect = (median - 1.0).abs();
    // Below 1 the ratio itself is the smaller of the two: 0.1 with a spread of 0.5 says nothing either.
    let (least, what) = if median < effect {
        (median, "it")
    } else {
        (effect, "its effect")
    };
    if spread > least {
        let reason =
            format!("the spread of {median:.3}, {spread:.3}, is larger than {what}, {least:.3}");
        return refuse(Some(spread), reason);
    }
    Comparison {
        ratio: Some(median),
        spread: Some(spread),
        reason: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn one_outlier_moves_neither_median_nor_spread_far() {
        let calm = summarize(&[10.0, 11.0, 12.0, 13.0, 14.0]);
        let with_outlier = summarize(&[10.0, 11.0, 12.0, 13.0, 5000.0]);
        assert_eq!(calm, with_outlier);
        assert!((calm.spread - DEVIATION_SCALE).abs() < 1e-12);
    }

    #[test]
    fn percentiles_are_values_that_were_seen() {
        let values: Vec<u32> = (1..=1000).collect();
        assert_eq!(percentile(&values, 0.5), 500.0);
        assert_eq!(percentile(&values, 0.999), 999.0);
        assert_eq!(percentile(&values, 1.0), 1000.0);
        assert_eq!(percentile(&[7], 0.5), 7.0);
        assert!(percentile(&[], 0.5).is_nan());
    }

    #[test]
    fn a_clear_ratio_is_given_with_its_spread() {
        let found = compare(&[10.0, 10.0, 10.0], &[190.0, 200.0, 210.0]);
        assert_eq!(found.ratio, Some(20.0));
        assert!(
            found
                .spread
                .is_some_and(|spread| (spread - DEVIATION_SCALE).abs() < 1e-9)
        );
        assert_eq!(found.reason, None);
    }

    #[test]
    fn rounds_are_compared_in_pairs() {
        // The machine got ten times slower on the way; each round's own ratio is still 2.
        let found = compare(&[1.0, 5.0, 10.0], &[2.0, 10.0, 20.0]);
        assert_eq!(found.ratio, Some(2.0));
        assert_eq!(found.spread, Some(0.0));
    }

    #[test]
    fn a_ratio_whose_spread_is_larger_than_its_effect_is_refused() {
        let found = compare(&[10.0; 5], &[9.0, 9.5, 10.1, 10.6, 11.0]);
        assert_eq!(found.ratio, None);
        assert!(found.spread.is_some_and(|spread| spread > 0.08));
        let reason = found.reason.expect("a reason");
        assert!(reason.contains("1.010") && reason.contains("larger than its effect"));
        // The same spread around 3 is no hindrance.
        let found = compare(&[10.0; 5], &[29.0, 29.5, 30.1, 30.6, 31.0]);
        assert!(found.ratio.is_some_and(|ratio| (ratio - 3.01).abs() < 1e-9));
        // Nor is it below 1, where ours is the slower one.
        let found = compare(&[10.0; 5], &[1.0, 1.1, 1.2, 1.3, 1.4]);
        assert!(found.ratio.is_some_and(|ratio| (ratio - 0.12).abs() < 1e-9));
    }

    #[test]
    fn a_ratio_near_0_is_refused_where_its_spread_is_larger_than_it() {
        let found = compare(&[10.0; 5], &[0.1, 0.2, 1.0, 3.0, 4.0]);
        assert_eq!(found.ratio, None);
        assert!(
            found
                .reason
                .is_some_and(|reason| reason.contains("larger than it, 0.100"))
        );
    }

    #[test]
    fn two_rounds_and_rounds_of_no_length_are_refused() {
        let found = compare(&[1.0, 1.0], &[5.0, 5.0]);
        assert_eq!(found.ratio, None);
        assert!(
            found
                .reason
                .is_some_and(|reason| reason.contains("2 rounds"))
        );
        let found = compare(&[1.0, 0.0, 1.0], &[5.0, 5.0, 5.0]);
        assert_eq!(found.ratio, None);
        assert!(
            found
                .reason
                .is_some_and(|reason| reason.contains("too short"))
        );
        let found = compare(&[1.0, 1.0, 1.0], &[5.0, f64::NAN, 5.0]);
        assert_eq!(found.ratio, None);
    }
}
