//! Result rows: medians, ratios, targets.

use std::path::Path;

/// The unit of a row's samples.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// More is better.
    StepsPerSecond,
    /// Less is better.
    Milliseconds,
    /// Less is better.
    BytesPerStep,
    /// Less is better.
    #[cfg_attr(not(feature = "bench"), expect(dead_code, reason = "only workloads with the bench feature use it"))]
    Megabytes,
}

/// The target of a row.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// At least this fraction of raw.
    OfRaw(f64),
    /// At most this many times raw.
    #[cfg_attr(not(feature = "bench"), expect(dead_code, reason = "only workloads with the bench feature use it"))]
    Raws(f64),
    /// At most this many times the baseline.
    Baselines(f64),
    /// At least this fraction of the baseline.
    OfBaseline(f64),
    /// At most this much.
    AtMost(f64),
    /// No target; the value is only shown.
    None,
}

pub(crate) struct Row {
    /// The name of the measurement.
    pub(crate) what: String,
    pub(crate) unit: Unit,
    /// Samples of raw; empty if they are not comparable.
    pub(crate) raw: Vec<f64>,
    pub(crate) baseline: Vec<f64>,
    pub(crate) ours: Vec<f64>,
    pub(crate) target: Target,
}

/// The median; `None` without samples.
pub(crate) fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        length if length % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

impl Unit {
    fn show(self, value: Option<f64>) -> String {
        match (self, value) {
            (_, None) => String::new(),
            (Self::StepsPerSecond, Some(value)) => format!("{value:.0}/s"),
            (Self::Milliseconds, Some(value)) if value < 1.0 => format!("{value:.2} ms"),
            (Self::Milliseconds, Some(value)) => format!("{value:.1} ms"),
            (Self::Megabytes, Some(value)) => format!("{value:.0} MB"),
            (Self::BytesPerStep, Some(value)) => format!("{value:.0} B"),
        }
    }
}

impl Row {
    fn line(&self) -> String {
        let (raw, baseline, ours) = (median(&self.raw), median(&self.baseline), median(&self.ours));
        let ratio = |to: Option<f64>| ours.zip(to).map(|(ours, to)| ours / to);
        let shown = |ratio: Option<f64>| ratio.map_or(String::new(), |ratio| format!("{ratio:.2}"));
        let (target, met) = match self.target {
            Target::OfRaw(share) => (format!("≥ {share} raw"), ratio(raw).map(|ratio| ratio >= share)),
            Target::Raws(times) => (format!("≤ {times} raw"), ratio(raw).map(|ratio| ratio <= times)),
            Target::Baselines(times) => (format!("≤ {times} baselines"), ratio(baseline).map(|ratio| ratio <= times)),
            Target::OfBaseline(share) => (format!("≥ {share} baselines"), ratio(baseline).map(|ratio| ratio >= share)),
            Target::AtMost(limit) => (format!("≤ {}", self.unit.show(Some(limit))), ours.map(|ours| ours <= limit)),
            Target::None => (String::new(), None),
        };
        let met = met.map_or("", |met| if met { "yes" } else { "no" });
        let cells = [
            self.what.clone(),
            self.unit.show(raw),
            self.unit.show(baseline),
            self.unit.show(ours),
            shown(ratio(raw)),
            shown(ratio(baseline)),
            target,
            met.to_owned(),
        ];
        format!("| {} |", cells.join(" | "))
    }
}

/// The rows as a Markdown table.
pub(crate) fn markdown(rows: &[Row], rounds: usize) -> String {
    let head = "| workload | raw | baseline | ours | ours ÷ raw | ours ÷ baseline | target | met |\n| --- | --- | --- | --- | --- | --- | --- | --- |";
    let lines: Vec<String> = rows.iter().map(Row::line).collect();
    format!("Medians of {rounds}; raw, baseline and ours took turns in one run.\n\n{head}\n{}", lines.join("\n"))
}

const BEGIN: &str = "<!-- begin: written by cargo xtask bench --write -->";
const END: &str = "<!-- end -->";

/// Writes the result between the markers of a document.
pub(crate) fn write(document: &Path, text: &str) -> Result<(), String> {
    let old = std::fs::read_to_string(document).map_err(|error| format!("cannot read {}: {error}", document.display()))?;
    let new = between_marks(&old, text).ok_or_else(|| format!("{} lacks the lines {BEGIN:?} and {END:?}", document.display()))?;
    std::fs::write(document, new).map_err(|error| format!("cannot write {}: {error}", document.display()))
}

fn between_marks(old: &str, text: &str) -> Option<String> {
    let (before, rest) = old.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{text}\n\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_row_shows_whether_its_target_is_met() {
        let row = |ours: f64| Row {
            what: "W1".into(),
            unit: Unit::StepsPerSecond,
            raw: vec![1000.0],
            baseline: vec![900.0],
            ours: vec![ours],
            target: Target::OfRaw(0.7),
        };
        assert_eq!(row(750.0).line(), "| W1 | 1000/s | 900/s | 750/s | 0.75 | 0.83 | ≥ 0.7 raw | yes |");
        assert!(row(600.0).line().ends_with("| no |"));
    }

    #[test]
    fn only_text_between_the_markers_is_replaced() {
        let old = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        assert_eq!(between_marks(&old, "new").unwrap(), format!("a\n{BEGIN}\n\nnew\n\n{END}\nb\n"));
        assert_eq!(between_marks("a", "new"), None);
    }
}
