//! `metrics`: the catalogue of metrics, under all names.

use crate::options::format::CatalogueFormat;
use crate::options::selection::unknown;
use crate::output::table::Lines;
use balar_record::json::to_text;
use balar_record::metrics::{self, Dialect, METRICS, Metric, Place};
use balar_record::system::failure::Failure;
use serde::Serialize;
use std::fmt::Write;

/// A metric, as JSON has it.
#[derive(Serialize)]
struct MetricEntry {
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    counted_by: &'static str,
    of_launches: bool,
    made_of: String,
    nvprof_events: Vec<&'static str>,
    nvprof_metrics: Vec<&'static str>,
    ncu: Vec<&'static str>,
    gpgpu_sim: Vec<&'static str>,
    sst: Vec<&'static str>,
}

impl MetricEntry {
    fn of(metric: &'static Metric) -> MetricEntry {
        let names = |dialect| metric.names_in(dialect).collect();
        MetricEntry {
            name: metric.name,
            unit: metric.unit(),
            meaning: metric.meaning(),
            counted_by: metric.place.name(),
            of_launches: metric.is_of_launches(),
            made_of: metric.formula.to_string(),
            nvprof_events: names(Dialect::NvprofEvent),
            nvprof_metrics: names(Dialect::NvprofMetric),
            ncu: names(Dialect::Ncu),
            gpgpu_sim: names(Dialect::GpgpuSim),
            sst: names(Dialect::Sst),
        }
    }

    /// nvprof's names, each once.
    fn nvprof(&self) -> Vec<&'static str> {
        let mut names = self.nvprof_events.clone();
        names.extend(self.nvprof_metrics.iter().filter(|name| !self.nvprof_events.contains(name)));
        names
    }

    /// What it is known of.
    fn known_of(&self) -> &'static str {
        match (self.of_launches, self.counted_by == Place::Launch.name()) {
            (true, true) => "launch",
            (true, false) => "launch, run",
            (false, _) => "run",
        }
    }

    fn in_full(&self) -> String {
        let mut text = format!("{}: {}\n\n", self.name, self.meaning);
        let mut line = |name: &str, value: &str| {
            if !value.is_empty() {
                writeln!(text, "{name:<13}{value}").expect("a String takes every byte");
            }
        };
        line("unit", self.unit);
        line("counted by", self.counted_by);
        line("known of", self.known_of());
        line("made of", &self.made_of);
        let of_nvprof = [(&self.nvprof_events, "event"), (&self.nvprof_metrics, "metric")];
        let of_nvprof =
            of_nvprof.iter().flat_map(|(names, kind)| names.iter().map(move |name| format!("{name} ({kind})")));
        line("nvprof", &of_nvprof.collect::<Vec<_>>().join(", "));
        line("ncu", &self.ncu.join(", "));
        line("GPGPU-Sim", &self.gpgpu_sim.join(", "));
        line("SST", &self.sst.join(", "));
        text
    }
}

/// All metrics in a table, those that a pattern names, or one in full.
///
/// # Errors
///
/// A name that no metric has, with the nearest one.
pub fn metrics(pattern: Option<&str>, format: CatalogueFormat, width: Option<u16>) -> Result<String, Failure> {
    let chosen: Vec<&'static Metric> = match pattern {
        Some(pattern) => metrics::find(pattern).into_iter().map(|choice| choice.metric).collect(),
        None => METRICS.iter().collect(),
    };
    let entries: Vec<MetricEntry> = chosen.into_iter().map(MetricEntry::of).collect();
    match (pattern, format, &entries[..]) {
        (Some(name), _, []) => Err(unknown(format_args!("there is no metric `{name}`"), name, [])),
        (_, CatalogueFormat::Json, entries) => Ok(to_text(&entries)),
        (Some(_), CatalogueFormat::Table, [one]) => Ok(one.in_full()),
        (_, CatalogueFormat::Table, entries) => Ok(overview(entries, width)),
    }
}

fn overview(entries: &[MetricEntry], width: Option<u16>) -> String {
    let first = |names: &[&'static str]| names.first().map_or(String::new(), |name| (*name).to_owned());
    let rows = entries.iter().map(|entry| {
        vec![
            entry.name.to_owned(),
            entry.known_of().to_owned(),
            entry.unit.to_owned(),
            first(&entry.nvprof()),
            first(&entry.ncu),
            first(&entry.gpgpu_sim),
            first(&entry.sst),
        ]
    });
    let header = vec!["metric", "known of", "unit", "nvprof", "ncu", "GPGPU-Sim", "SST"];
    let left = (0..header.len()).collect();
    let table = Lines { header, left, droppable: vec![6, 5, 2, 1], elastic: Some(4), rows: rows.collect() };
    table.text(width)
        + "\n`balar-actors metrics NAME` shows one in full: what it means, what it is made of, every name.\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    fn listed(pattern: Option<&str>, format: CatalogueFormat) -> String {
        metrics(pattern, format, None).unwrap_or_else(|_| panic!("{pattern:?}"))
    }

    #[test]
    fn one_metric_is_shown_in_full() {
        let text = listed(Some("thread_inst_executed"), CatalogueFormat::Table);
        for said in [
            "sm.thread_inst_executed: thread instructions executed, lanes inside the active mask\n",
            "\nknown of     launch, run\n",
            "\nnvprof       thread_inst_executed (event)\n",
            "\nGPGPU-Sim    gpu_sim_insn, gpu_tot_sim_insn, gpgpu_n_tot_thrd_icount\n",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }

    #[test]
    fn all_metrics_are_listed_and_are_json() {
        let text = listed(None, CatalogueFormat::Table);
        assert!(METRICS.iter().all(|metric| text.contains(metric.name)), "{text}");
        let some = listed(Some("dram__*"), CatalogueFormat::Table);
        assert!(some.contains("dram.sectors_rd") && !some.contains("sm."), "{some}");
        let json: serde_json::Value = serde_json::from_str(&listed(None, CatalogueFormat::Json)).expect("JSON");
        assert_eq!(json.as_array().map(Vec::len), Some(METRICS.len()));
        let narrow = metrics(None, CatalogueFormat::Table, Some(80)).unwrap_or_default();
        assert!(narrow.lines().all(|line| line.chars().count() <= 120), "{narrow}");
    }

    fn page() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/counters.md")
    }

    /// The table of the page, by the catalogue.
    fn table() -> String {
        let mut text = String::from(
            "| metric | unit | known of | nvprof | ncu | GPGPU-Sim | SST |\n|---|---|---|---|---|---|---|\n",
        );
        for entry in METRICS.iter().map(MetricEntry::of) {
            let code = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" ");
            let names = [entry.nvprof(), entry.ncu.clone(), entry.gpgpu_sim.clone(), entry.sst.clone()];
            let [nvprof, ncu, gpgpu_sim, sst] = names.map(|names| code(&names));
            let MetricEntry { name, unit, .. } = entry;
            let known_of = entry.known_of();
            writeln!(text, "| `{name}` | {unit} | {known_of} | {nvprof} | {ncu} | {gpgpu_sim} | {sst} |")
                .expect("a String");
        }
        text
    }

    #[test]
    fn the_page_has_the_table() {
        let [begin, end] = ["<!-- table of metrics -->\n", "<!-- end of the table -->\n"];
        let text = std::fs::read_to_string(page()).expect("docs/counters.md");
        let (head, rest) = text.split_once(begin).expect("a mark where the table begins");
        let (found, tail) = rest.split_once(end).expect("a mark where it ends");
        let expected = table();
        if std::env::var_os("BALAR_WRITE_DOCS").is_some() {
            std::fs::write(page(), [head, begin, &expected, end, tail].concat()).expect("written");
            return;
        }
        let difference = expected.lines().zip(found.lines()).find(|(expected, found)| expected != found);
        assert!(
            found == expected,
            "docs/counters.md is not up to date: `BALAR_WRITE_DOCS=1 cargo test -p balar-cli the_page_has_the_table` writes it anew; \
             first difference (expected, found): {difference:?}"
        );
    }
}
