//! Cost against threads, on logarithmic axes: a chart for each set, a line for each design.

use std::ops::Range;

use plotters::coord::combinators::LogCoord;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::Report;
use crate::report::{Chart, Series};
use crate::statistics::summarize;

const WIDTH: u32 = 1120;
const HEIGHT: u32 = 560;
/// Room for the names of the lines, right of them.
const NAMES_WIDTH: u32 = 330;
const NAME_HEIGHT: i32 = 17;

/// Colors that can be told apart, also by those who see few.
const COLORS: [RGBColor; 8] = [
    RGBColor(0, 90, 181),
    RGBColor(220, 50, 32),
    RGBColor(0, 128, 96),
    RGBColor(170, 90, 0),
    RGBColor(120, 60, 170),
    RGBColor(60, 60, 60),
    RGBColor(200, 60, 140),
    RGBColor(0, 140, 170),
];

/// One SVG document with all charts of the report, one below the other.
///
/// # Errors
///
/// What keeps a chart from being drawn, such as a report without any.
pub fn svg(report: &Report) -> Result<String, String> {
    let charts: Vec<(&Chart, Vec<Line<'_>>)> = report
        .charts
        .iter()
        .map(|chart| (chart, chart.series.iter().filter_map(Line::of).collect()))
        .filter(|(_, lines): &(_, Vec<Line<'_>>)| !lines.is_empty())
        .collect();
    if charts.is_empty() {
        return Err(
            "there is nothing to plot: only what runs on several numbers of threads is".to_owned(),
        );
    }
    let mut text = String::new();
    {
        let size = (WIDTH, HEIGHT * charts.len() as u32);
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        let drawn = root.fill(&WHITE).map_err(|error| error.to_string());
        drawn.and_then(|()| {
            for (area, (chart, lines)) in root.split_evenly((charts.len(), 1)).iter().zip(&charts) {
                draw(area, chart, lines).map_err(|error| format!("{}: {error}", chart.title))?;
            }
            root.present().map_err(|error| error.to_string())
        })?;
    }
    Ok(text)
}

struct Line<'a> {
    series: &'a Series,
    points: Vec<(f64, f64)>,
}

impl<'a> Line<'a> {
    fn of(series: &'a Series) -> Option<Self> {
        let mut points: Vec<(f64, f64)> = series
            .points
            .iter()
            .map(|(threads, rounds)| (f64::from(*threads), summarize(rounds).median))
            .filter(|(_, ns)| ns.is_finite() && *ns > 0.0)
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        (!points.is_empty()).then_some(Self { series, points })
    }
}

/// From the power of `base` below the least to the one above the greatest.
fn powers(values: impl Iterator<Item = f64> + Clone, base: f64) -> Range<f64> {
    let least = values.clone().fold(f64::INFINITY, f64::min);
    let greatest = values.fold(0.0, f64::max);
    let low = least.log(base).floor();
    // A little above counts as on it.
    let high = (greatest.log(base) - 1e-9).ceil().max(low + 1.0);
    base.powf(low)..base.powf(high)
}

/// 1 ns, 20 us, 3 ms.
fn time_label(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    format!("{} {unit}", (value * 100.0).round() / 100.0)
}

fn draw<'a>(
    area: &DrawingArea<SVGBackend<'a>, plotters::coord::Shift>,
    chart: &Chart,
    lines: &[Line<'_>],
) -> Result<(), DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>> {
    let all = || lines.iter().flat_map(|line| line.points.iter());
    let threads = powers(all().map(|point| point.0), 2.0);
    let times = powers(all().map(|point| point.1), 10.0);
    let mut context = ChartBuilder::on(area)
        .caption(&chart.title, ("sans-serif", 22))
        .margin(14)
        .margin_right(NAMES_WIDTH)
        .x_label_area_size(44)
        .y_label_area_size(76)
        .build_cartesian_2d(threads.log_scale().base(2.0), times.log_scale())?;
    context
        .configure_mesh()
        .x_desc("threads")
        .y_desc("time of one operation on its thread")
        .x_label_formatter(&|threads| format!("{threads}"))
        .y_label_formatter(&|ns| time_label(*ns))
        .axis_desc_style(("sans-serif", 15))
        .label_style(("sans-serif", 14))
        .bold_line_style(BLACK.mix(0.18))
        .light_line_style(BLACK.mix(0.05))
        .draw()?;
    for (number, line) in lines.iter().enumerate() {
        let color = COLORS[number % COLORS.len()];
        let width = if line.series.is_ours { 3 } else { 1 };
        context.draw_series(LineSeries::new(
            line.points.iter().copied(),
            color.stroke_width(width),
        ))?;
        let markers = line
            .points
            .iter()
            .map(|&point| Circle::new(point, width + 1, color.filled()));
        context.draw_series(markers)?;
    }
    draw_names(area, &context, lines)
}

type Plane<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<LogCoord<f64>, LogCoord<f64>>>;

/// Each line's name right of its end, moved where two would cover each other.
fn draw_names<'b>(
    area: &DrawingArea<SVGBackend<'b>, plotters::coord::Shift>,
    context: &Plane<'_, 'b>,
    lines: &[Line<'_>],
) -> Result<(), DrawingAreaErrorKind<<SVGBackend<'b> as DrawingBackend>::ErrorType>> {
    let (left, top) = area.get_base_pixel();
    let mut names: Vec<(i32, (i32, i32), usize)> = lines
        .iter()
        .enumerate()
        .filter_map(|(number, line)| {
            let (x, y) = context.backend_coord(line.points.last()?);
            let end = (x - left, y - top);
            Some((end.1, end, number))
        })
        .collect();
    names.sort_unstable();
    let heights = spread_out(&names.iter().map(|name| name.0).collect::<Vec<_>>());
    let x = WIDTH as i32 - NAMES_WIDTH as i32 + 24;
    for ((_, end, number), height) in names.iter().zip(heights) {
        let color = COLORS[number % COLORS.len()];
        let series = lines[*number].series;
        area.draw(&PathElement::new(
            vec![(end.0 + 5, end.1), (x - 4, height)],
            color.mix(0.4),
        ))?;
        let style = TextStyle::from(("sans-serif", 15).into_font())
            .color(&color)
            .pos(Pos::new(HPos::Left, VPos::Center));
        let owner = if series.is_ours { " (ours)" } else { "" };
        area.draw(&Text::new(
            format!("{}{owner}", series.name),
            (x, height),
            style,
        ))?;
    }
    Ok(())
}

/// Sorted heights, moved apart until no two names cover each other, and none is below the chart.
fn spread_out(wanted: &[i32]) -> Vec<i32> {
    let mut heights = wanted.to_vec();
    for place in 1..heights.len() {
        heights[place] = heights[place].max(heights[place - 1] + NAME_HEIGHT);
    }
    let mut lowest = HEIGHT as i32 - NAME_HEIGHT;
    for height in heights.iter_mut().rev() {
        *height = (*height).min(lowest);
        lowest = *height - NAME_HEIGHT;
    }
    heights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_at_powers() {
        assert_eq!(powers([1.0, 16.0].into_iter(), 2.0), 1.0..16.0);
        assert_eq!(powers([1.0, 12.0].into_iter(), 2.0), 1.0..16.0);
        assert_eq!(powers([2.0].into_iter(), 2.0), 2.0..4.0);
        let range = powers([0.7, 2800.0].into_iter(), 10.0);
        assert!((range.start - 0.1).abs() < 1e-12 && (range.end - 10000.0).abs() < 1e-6);
    }

    #[test]
    fn times_have_the_unit_that_reads_best() {
        assert_eq!(time_label(0.1), "0.1 ns");
        assert_eq!(time_label(1000.0), "1 us");
        assert_eq!(time_label(2.5e7), "25 ms");
        assert_eq!(time_label(1e9), "1 s");
    }

    #[test]
    fn names_never_cover_each_other() {
        for wanted in [
            vec![100, 100, 101, 300],
            vec![540, 545, 550, 555],
            vec![0],
            vec![],
        ] {
            let heights = spread_out(&wanted);
            assert_eq!(heights.len(), wanted.len());
            assert!(heights.windows(2).all(|two| two[1] - two[0] >= NAME_HEIGHT));
            assert!(heights.iter().all(|height| *height < HEIGHT as i32));
        }
    }

    #[test]
    fn a_report_without_charts_can_not_be_plotted() {
        assert!(svg(&Report::default()).is_err());
    }
}
