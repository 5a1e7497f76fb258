//! The table of a larger farm's hot keys (`eke_bench_farm::hot`), from the measurements of the farm that was run.

use std::path::Path;

use anyhow::{Context, Result};
use eke_bench_farm::hot::Requests;
use eke_results::report::{Report, saved};

const FILE: &str = "farm.json";
const VARIANT: &str = "eke, shared";
/// Of the run, in its command and its conditions.
const CONTENT_MB: f64 = 480.0 * 1.048_576;
const NODES: f64 = 4.0;
/// What TCP carries on a link of 1 Gb/s, in MB/s.
const LINK: f64 = 118.0;
const LAWS: [f64; 2] = [0.8, 1.0];
const FARMS: [f64; 2] = [100.0, 10_000.0];
const HEAD: &str = "| files | Zipf | machines | masters | most popular file, of all requests | hottest file, of what the engine sends | from its master | busiest master \
    | one file fills a link from |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n";

/// All farms; what a link of 1 Gb/s does not carry is bold.
///
/// # Errors
/// The result cannot be read, or lacks a measurement.
pub(super) fn keys(results: &Path) -> Result<String> {
    let text = std::fs::read_to_string(results.join(FILE)).context(FILE)?;
    written(&saved::parse(&text).context(FILE)?)
}

fn written(report: &Report) -> Result<String> {
    let value = |metric: &str| {
        let row = report.rows.iter().find(|row| row.variant == VARIANT && row.metric == metric);
        Ok::<f64, anyhow::Error>(row.with_context(|| format!("{FILE} has no \"{metric}\""))?.median)
    };
    let each = value("sent by the engine")? / NODES;
    let files_of_the_run = CONTENT_MB / (value("throughput")? / value("answered requests")?);
    let hits = value("found in the node's store")? / 100.0;
    let mut out = HEAD.to_owned();
    for files in [rounded(files_of_the_run), 100_000] {
        for zipf in LAWS {
            let spread = Requests { files, zipf, hits }.spread();
            let (popular, hottest) = (spread.popular, spread.hottest());
            for nodes in FARMS {
                let all = each * nodes;
                let masters = (all / LINK).ceil();
                let busiest = spread.busiest(masters as usize);
                let cells = [
                    format!("{:.2} %", popular * 100.0),
                    format!("{:.3} %", hottest * 100.0),
                    rate(all * hottest),
                    rate(all * busiest),
                    format!("{} machines", rounded(LINK / (each * hottest))),
                ];
                out += &format!("| {files} | {zipf:.1} | {nodes} | {masters} | {} |\n", cells.join(" | "));
            }
        }
    }
    Ok(out)
}

/// To the nearest hundred.
fn rounded(number: f64) -> u32 {
    (number / 100.0).round() as u32 * 100
}

fn rate(mb_per_s: f64) -> String {
    let text = if mb_per_s < 10.0 { format!("{mb_per_s:.1} MB/s") } else { format!("{mb_per_s:.0} MB/s") };
    if mb_per_s > LINK { format!("**{text}**") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_fills_a_link_is_bold_and_a_missing_measurement_is_named() {
        let row = |metric: &str, median: f64| serde_json::json!({"variant": VARIANT, "params": {}, "metric": metric, "unit": "", "samples": [median], "median": median});
        let rows = [
            ("sent by the engine", 64.0),
            ("throughput", 320.0),
            ("answered requests", 1456.0),
            ("found in the node's store", 39.0),
        ];
        let report = |rows: &[(&str, f64)]| {
            let rows: Vec<_> = rows.iter().map(|(metric, median)| row(metric, *median)).collect();
            let machine = serde_json::json!({"kernel": "", "architecture": "", "cpus": 1, "ram": 1});
            saved::parse(
                &serde_json::json!({"experiment": "farm", "machine": machine, "rows": rows}).to_string(),
            )
            .unwrap()
        };
        let table = written(&report(&rows)).unwrap();
        assert!(
            table.contains("| 2300 | 1.0 | 10000 | 1356 | 12.02 % |") && table.contains("| **1430 MB/s** |"),
            "{table}"
        );
        assert!(table.contains("| 2300 | 1.0 | 100 | 14 | 12.02 % | 0.894 % | 14 MB/s |"), "{table}");
        let error = written(&report(&rows[1..])).unwrap_err().to_string();
        assert!(error.contains("sent by the engine"), "{error}");
    }
}
