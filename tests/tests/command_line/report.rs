//! `--report` and `report`: pages about runs.

use crate::call::{Called, call_in};
use balar_tests::assert_snapshot;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const LUD: [&str; 6] = ["--topology", "v100_node", "--workload", "lud:size=64", "--isa", "ptx"];

fn run(folder: &Path, arguments: &[&str]) -> Called {
    let called = call_in(folder, &[&LUD[..], &["--quiet"], arguments].concat());
    assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{arguments:?}");
    called
}

fn page(folder: &Path, name: &str) -> String {
    let text = fs::read_to_string(folder.join(name)).expect("written");
    assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>\n"), "{name} is a page");
    assert!(text.len() < 1_000_000, "{name} has {} bytes", text.len());
    text
}

/// The sections of a page, by the names of their addresses.
fn sections(page: &str) -> Vec<&str> {
    page.split("<section id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// The row of a table that begins with a name, without its markup.
fn row<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let start = page.find(&format!("<th scope=\"row\">{name}</th>")).unwrap_or_else(|| panic!("no row {name}"));
    let row = page[start..].split("</tr>").next().expect("a row");
    row.split("<td class=\"number\"").skip(1).filter_map(|cell| cell.split(['>', '<']).nth(1)).collect()
}

#[test]
fn a_run_writes_a_page_that_is_the_same_for_any_number_of_threads() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let printed = run(path, &["--report", "one.html", "--format", "csv"]);
    run(path, &["--report", "two.html", "--threads", "2"]);
    // What else is asked for changes nothing either: a board that is looked at, files.
    let plain = run(path, &["--report", "three.html", "--output", "out", "--format", "csv"]);
    let one = page(path, "one.html");
    assert_eq!(one, page(path, "two.html"));
    assert_eq!(one, page(path, "three.html"));
    assert_eq!(printed.stdout, plain.stdout);
    assert_eq!(sections(&one), ["node", "kernels", "stalls", "roofline", "over-time", "balance", "links"]);
    for wanted in ["lud on v100_node", "completed, result verified", "Device memory", "gpu.sm[0]", "--load:"] {
        assert!(one.contains(wanted), "{wanted} is missing");
    }
    // Four tiles on the diagonal; kernels.csv has the same times and cycles.
    let kernels = fs::read_to_string(path.join("out/kernels.csv")).expect("written");
    let mut reader = csv::Reader::from_reader(kernels.as_bytes());
    let header = reader.headers().expect("a header").clone();
    let at = |name: &str| header.iter().position(|column| column == name).expect(name);
    let (name, cycles) = (at("name"), at("cycles"));
    let of_diagonal = reader.records().map(|row| row.expect("a row")).filter(|row| &row[name] == "lud_diagonal");
    let cycles: Vec<u64> = of_diagonal.map(|row| row[cycles].parse().expect("a number")).collect();
    let shown = row(&one, "lud_diagonal");
    assert_eq!((shown[0], cycles.len()), ("4", 4));
    assert_eq!(shown[3].replace('\u{202f}', ""), cycles.iter().sum::<u64>().to_string());
}

#[test]
fn pages_of_folders_say_what_would_give_what_they_lack() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    run(path, &["--output", "plain"]);
    run(path, &["--output", "full", "--sample-interval", "2us", "--profile-instructions"]);
    for name in ["plain", "full"] {
        let called = call_in(path, &["report", name, "--output", &format!("{name}.html")]);
        assert_eq!((called.code, &*called.stdout, &*called.stderr), (0, "", ""), "{name}");
    }
    let (plain, full) = (page(path, "plain.html"), page(path, "full.html"));
    for wanted in ["no samples", "<code>--sample-interval</code>"] {
        assert!(plain.contains(wanted) && !full.contains(wanted), "{wanted}");
    }
    // Charts over time; a bar of stalls for each kernel has nothing to do with samples.
    assert!(full.contains("Occupancy over time") && !plain.contains("Occupancy over time"));
    let stalls = |page: &str| {
        let section = page.split("id=\"stalls\"").nth(1).and_then(|rest| rest.split("id=\"roofline\"").next());
        section.map_or(0, |section| section.matches("lud_internal").count())
    };
    assert!(stalls(&plain) > 0 && stalls(&plain) == stalls(&full), "{} {}", stalls(&plain), stalls(&full));
    // A document alone has no topology.
    fs::copy(path.join("plain/stats.json"), path.join("alone.json")).expect("copied");
    let called = call_in(path, &["report", "alone.json", "--output", "alone.html"]);
    assert_eq!((called.code, &*called.stderr), (0, ""));
    let alone = page(path, "alone.html");
    assert!(alone.contains("the node is not drawn: there is no topology.ron"));
    // Nor does it say how many warps an SM has room for: there is no occupancy.
    let mut known = row(&plain, "lud_diagonal");
    known.remove(7);
    assert_eq!(row(&alone, "lud_diagonal"), known);
}

#[test]
fn two_runs_stand_side_by_side() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    run(path, &["--output", "a"]);
    run(path, &["--output", "b", "--set", "gpu.sm[*].latencies.integer=9"]);
    let called = call_in(path, &["report", "a", "b", "--output", "both.html"]);
    assert_eq!((called.code, &*called.stdout, &*called.stderr), (0, "", ""));
    let both = page(path, "both.html");
    let expected = ["node", "kernels", "stalls", "roofline", "over-time", "balance", "links", "differences"];
    assert_eq!(sections(&both), expected);
    assert_eq!(both.matches("<svg role=\"img\" aria-label=\"The node").count(), 2, "two pictures");
    assert!(both.contains("gpu.sm[*] latencies.integer (84 units)"), "what went in differently");
    let kernel = &both[both.find("lud_diagonal</th>").expect("a row")..];
    let kernel = kernel.split("</tr>").next().expect("its end");
    // As many launches; the second run is slower.
    assert!(kernel.contains(">4<span class=\"change\">=</span>"), "{kernel}");
    assert!(kernel.contains("<span class=\"change\">+"), "{kernel}");
}

#[test]
fn a_workload_of_managed_memory_has_its_panels() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let managed = ["--topology", "gtx1080ti_node", "--workload", "hotspot:size=128,memory=managed"];
    let called = call_in(path, &[&managed[..], &["--quiet", "--report", "page.html"]].concat());
    assert_eq!((called.code, &*called.stderr), (0, ""));
    let page = page(path, "page.html");
    assert!(sections(&page).contains(&"unified-memory"), "{:?}", sections(&page));
    let wanted = [
        "Managed allocations, in the order in which the program made them",
        "of these, chosen by the prefetcher",
        "migration_link.to_device",
        "batches of faults",
    ];
    for wanted in wanted {
        assert!(page.contains(wanted), "{wanted} is missing");
    }
    // GMMUs of this node report no uses.
    assert!(!page.contains("without a report of their use"), "what is not known is not shown");
}

#[test]
fn mistakes_are_named() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    run(path, &["--output", "out"]);
    let refused = |name: &str, arguments: &[&str]| {
        let called = call_in(path, arguments);
        assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{}", called.stderr);
        assert_snapshot("errors", name, &called.stderr);
    };
    fs::create_dir(path.join("empty")).expect("made");
    let text = fs::read_to_string(path.join("out/stats.json")).expect("written");
    fs::write(path.join("other.json"), text.replacen("\"schema\": 1", "\"schema\": 2", 1)).expect("written");
    refused("report_without_a_run", &["report", "--output", "p.html"]);
    refused("report_of_an_empty_folder", &["report", "empty", "--output", "p.html"]);
    refused("report_of_another_schema", &["report", "other.json", "--output", "p.html"]);
    refused("report_of_three_runs", &["report", "out", "out", "out", "--output", "p.html"]);
    refused("report_that_cannot_be_written", &["report", "out", "--output", "nowhere/p.html"]);
    // Before the run, which would take longer than the test may.
    let long = ["--topology", "v100_node", "--workload", "gemm:size=4096", "--quiet", "--report", "nowhere/p.html"];
    refused("report_of_a_run_that_cannot_be_written", &long);
    assert!(!path.join("p.html").exists(), "nothing is written");
    // A broken file in a folder is named; a topology that cannot be read leaves a note.
    fs::write(path.join("out/samples.jsonl"), "{\n").expect("written");
    refused("report_of_broken_samples", &["report", "out", "--output", "p.html"]);
    fs::remove_file(path.join("out/samples.jsonl")).expect("removed");
    fs::write(path.join("out/topology.ron"), "Topology(").expect("written");
    let called = call_in(path, &["report", "out", "--output", "p.html"]);
    assert_eq!((called.code, &*called.stderr), (0, ""));
    assert!(page(path, "p.html").contains("the node is not drawn: "));
}

#[test]
fn names_of_kernels_are_text() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    run(path, &["--output", "out"]);
    let document = path.join("out/stats.json");
    let text = fs::read_to_string(&document).expect("written");
    let hostile = "<img src=x onerror=alert(1)>&'\\\"";
    fs::write(&document, text.replace("\"lud_diagonal\"", &format!("\"{hostile}\""))).expect("written");
    let called = call_in(path, &["report", "out", "--output", "p.html"]);
    assert_eq!((called.code, &*called.stderr), (0, ""));
    let page = page(path, "p.html");
    assert!(!page.contains("<img") && page.contains("&lt;img src=x onerror=alert(1)&gt;"));
}
