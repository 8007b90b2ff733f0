use super::counters::CounterChange;
use super::kernels::LaunchPair;
use super::*;
use crate::output::folder;
use balar_actors::kinds::UNITS;
use balar_protocol::statistics::KernelRecord;
use balar_record::result::RunRecord;
use balar_record::run_folder::instruction_table::FILE;
use balar_record::sample::record;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

fn options(format: TableFormat, details: bool) -> CompareOptions {
    CompareOptions { before: "a".into(), after: "b".into(), limit: 10, kernel: None, format, details }
}

fn written(folder: &Path, record: &RunRecord) -> RunFolder {
    folder::write(folder, record, "Topology(").expect("written");
    RunFolder::read(folder).expect("read back")
}

/// The record of tests, and a changed one.
fn compared(change: impl FnOnce(&mut RunRecord)) -> (TempDir, Comparison) {
    let parent = tempfile::tempdir().expect("a folder");
    let mut other = record();
    change(&mut other);
    let runs =
        Pair { before: written(&parent.path().join("a"), &record()), after: written(&parent.path().join("b"), &other) };
    let comparison = Comparison::of(runs, &options(TableFormat::Table, false), UNITS).expect("compared");
    (parent, comparison)
}

fn change_kernels(record: &mut RunRecord, change: impl Fn(&mut KernelRecord)) {
    let mut kernels: Vec<KernelRecord> = record.statistics.kernels.iter().collect();
    kernels.iter_mut().for_each(change);
    record.statistics.kernels = kernels.into_iter().collect();
}

#[test]
fn runs_that_are_alike_say_so() {
    let (_folder, comparison) = compared(|other| {
        other.threads = 7;
        other.wall = std::time::Duration::from_secs(3);
    });
    assert!(comparison.is_alike());
    let text = table::text(&comparison, &options(TableFormat::Table, false), None);
    assert!(text.contains("\nthe runs are alike: 3 launches and "), "{text}");
    assert!(text.contains("inputs are the same\n"), "{text}");
    // The topologies of the two folders are none.
    assert!(text.contains("note: parameters of the topologies are not compared: "), "{text}");
}

#[test]
fn kernels_are_matched_by_name_and_the_greatest_change_comes_first() {
    let (_folder, comparison) = compared(|other| {
        change_kernels(other, |kernel| {
            if &*kernel.name == "lud_internal" {
                kernel.end_ps += 76_200;
                kernel.cycles += 100;
            } else {
                kernel.counters.ctas.inst_executed += 10;
            }
        });
    });
    let names: Vec<&str> = comparison.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    assert_eq!(names, ["lud_internal", "lud_diagonal"]);
    let internal = &comparison.kernels[0];
    assert_eq!((internal.cycles.before, internal.cycles.after), (Some(400), Some(500)));
    // 800 instructions in 400 cycles, then in 500.
    let figure = &internal.figures[0];
    assert_eq!((figure.name, figure.values), ("warp instructions per cycle", Pair { before: 2.0, after: 1.6 }));
    // 200 and 280 instructions, 20 more of two launches.
    let diagonal = comparison.kernels[1].figures.iter().find(|figure| figure.name == "warp instructions");
    assert_eq!(diagonal.map(|figure| figure.values), Some(Pair { before: 480.0, after: 500.0 }));
    let same: Vec<bool> = comparison.launches.iter().map(LaunchPair::is_alike).collect();
    assert_eq!(same, [false; 3]);
    assert!(comparison.launches[1].same_work && !comparison.launches[0].same_work);
    assert!(!comparison.is_alike());
}

#[test]
fn kernels_of_one_run_alone_are_listed() {
    let (_folder, comparison) = compared(|other| {
        change_kernels(other, |kernel| {
            if &*kernel.name == "lud_diagonal" {
                kernel.name = "_Z5scaleIfEvPT_i".into();
            }
        });
    });
    assert_eq!(comparison.only.before, [("lud_diagonal".to_owned(), 2)]);
    assert_eq!(comparison.only.after, [("_Z5scaleIfEvPT_i".to_owned(), 2)]);
    let text = table::text(&comparison, &options(TableFormat::Table, false), None);
    assert!(text.contains("\n only before: lud_diagonal (2 calls)\n only after: scale<float> (2 calls)\n"), "{text}");
}

#[test]
fn counters_are_rolled_up_and_ranked_by_how_much_they_matter() {
    let (_folder, comparison) = compared(|other| {
        for row in &mut other.statistics.rows {
            match (row.what, row.value) {
                // 130 instructions become 120. A bank's 7 hits become 1: more of itself.
                ("inst_executed", value) if value > 0 => row.value -= 5,
                ("read_hits", 7) => row.value = 1,
                // One of 13 warps.
                ("warps_launched", 8) => row.value = 9,
                _ => {}
            }
        }
    });
    let told: Vec<_> =
        comparison.counters.iter().map(|it| (&*it.location, &*it.what, it.values.before, it.values.after)).collect();
    assert_eq!(
        told,
        [
            ("gpu.l2[*].bank[*]", "read_hits", Some(7), Some(1)),
            ("gpu.sm[*]", "inst_executed", Some(130), Some(120)),
            ("gpu.sm[*]", "warps_launched", Some(13), Some(14)),
        ]
    );
    // Each is the greatest in its unit of measure: the relative change alone counts.
    let significance = comparison.counters[1].significance;
    assert!((significance - 10.0 / 130.0).abs() < 1e-12, "{significance}");
}

#[test]
fn small_counters_come_behind_great_ones() {
    let change = |what: &str, before, after| (what.to_owned(), before, after);
    let document = |values: &[(String, u64, u64)], second: bool| {
        let mut document = balar_record::sample::document();
        document.statistics = values
            .iter()
            .map(|(what, before, after)| balar_record::run_folder::document::Statistic {
                location: "gpu.sm[0]".to_owned(),
                what: what.clone(),
                value: if second { *after } else { *before },
                unit: "sector".to_owned(),
            })
            .collect();
        document
    };
    let values = [change("great", 10_000, 9_000), change("tiny", 2, 4), change("same", 100_000, 100_000)];
    let (before, after) = (document(&values, false), document(&values, true));
    let changes = counters::changes(&Pair { before: &before, after: &after });
    let order: Vec<&str> = changes.iter().map(|change| change.what.as_str()).collect();
    assert_eq!(order, ["great", "tiny"]);
    // A tenth, of a tenth of the greatest: 0.1 x sqrt(0.1); half, of 4 in 100000: 0.5 x sqrt(0.00004).
    assert!((changes[0].significance - 0.1 * 0.1_f64.sqrt()).abs() < 1e-12);
    assert!((changes[1].significance - 0.5 * 0.00004_f64.sqrt()).abs() < 1e-12);
}

#[test]
fn parts_that_tell_the_same_are_left_out() {
    let of = |location: &str, after| CounterChange {
        location: location.to_owned(),
        what: "reads".to_owned(),
        unit: "sector".to_owned(),
        values: Pair { before: Some(1), after: Some(after) },
        significance: 1.0,
    };
    let changes = [of("gpu.hbm[*]", 2), of("gpu.hbm[*].channel[*]", 2), of("gpu.hbm[*].bus[*]", 3), of("gpu.hbmx", 2)];
    let told: Vec<&str> = counters::without_parts(&changes).into_iter().map(|it| it.location.as_str()).collect();
    assert_eq!(told, ["gpu.hbm[*]", "gpu.hbm[*].bus[*]", "gpu.hbmx"]);
}

/// Stalls by kernel are from instructions.csv, those of the run from the SMs' counters.
#[test]
fn stalls_are_told_by_kernel_where_instructions_were_counted() {
    let parent = tempfile::tempdir().expect("a folder");
    let text = |wait: u64| {
        format!(
            "gpu,kernel,isa,function,code,address,file,line,text,stall_none_selected,stall_wait,stall_barrier\n\
             gpu,lud_internal,sass,lud_internal,ab,0,,,MOV,5,{wait},1\ngpu,lud_internal,sass,lud_internal,ab,16,,,EXIT,5,1,1\n"
        )
    };
    let [before, after] = [("a", 10), ("b", 40)].map(|(name, wait)| {
        let folder = parent.path().join(name);
        let run = written(&folder, &record());
        fs::write(folder.join(FILE), text(wait)).expect("written");
        run
    });
    let runs = Pair { before, after };
    let comparison = Comparison::of(runs, &options(TableFormat::Table, false), UNITS).expect("compared");
    let kernel = comparison.kernels.iter().find(|kernel| kernel.name == "lud_internal").expect("it is in both");
    let stalls = kernel.stalls.as_ref().expect("both have them");
    let expected = [("wait", 11, 41), ("issued", 10, 10), ("barrier", 2, 2)];
    let told: Vec<_> = stalls.iter().map(|(reason, cycles)| (reason.as_str(), cycles.before, cycles.after)).collect();
    assert_eq!(told, expected);
    // 23 and 53 warp cycles in 400 cycles.
    let resident = kernel.figures.iter().find(|figure| figure.name == "resident warps");
    assert_eq!(resident.map(|figure| figure.values), Some(Pair { before: 23.0 / 400.0, after: 53.0 / 400.0 }));
    let text = table::text(&comparison, &options(TableFormat::Table, false), None);
    assert!(
        text.contains("\n  warp cycles 23 -> 53\n    wait                            +30   47.8 % -> 77.4 %\n"),
        "{text}"
    );
}

#[test]
fn launches_without_time_are_told_so() {
    let parent = tempfile::tempdir().expect("a folder");
    let runs = ["a", "b"].map(|name| {
        let folder = parent.path().join(name);
        folder::write(&folder, &record(), "Topology(").expect("written");
        let path = folder.join("stats.json");
        let text = fs::read_to_string(&path).expect("there");
        if name == "b" {
            let text = text.replace("\"cycles\": 400,", "\"cycles\": null, \"detail\": \"functional\",");
            fs::write(&path, text).expect("written");
        }
        RunFolder::read(&folder).expect("read back")
    });
    let [before, after] = runs;
    let comparison =
        Comparison::of(Pair { before, after }, &options(TableFormat::Table, false), UNITS).expect("compared");
    let kernel = comparison.kernels.iter().find(|kernel| kernel.name == "lud_internal").expect("it is in both");
    assert_eq!((kernel.time.before, kernel.time.after), (Some(400 * 762), None));
    let text = table::text(&comparison, &options(TableFormat::Table, true), None);
    assert!(text.contains("not simulated"), "{text}");
}

#[test]
fn machines_get_all_of_it() {
    let (_folder, comparison) = compared(|other| {
        other.parameters[0].1 = "64".to_owned();
        change_kernels(other, |kernel| kernel.cycles += 1);
        other.sim_time = balar_protocol::SimTime(4_000_000);
    });
    let json: serde_json::Value = serde_json::from_str(&machine_readable::json(&comparison)).expect("JSON");
    assert_eq!((&json["schema"], &json["alike"]), (&1.into(), &false.into()));
    assert_eq!(json["kernels"][0]["cycles"], serde_json::json!({"before": 240, "after": 242}));
    assert_eq!(json["launches"].as_array().map(Vec::len), Some(3));
    let input = serde_json::json!(
        {"location": "workload", "what": "size", "units": 0, "before": "32", "after": "64"}
    );
    assert_eq!(json["inputs"][0], input);
    let csv = machine_readable::csv(&comparison);
    assert!(
        csv.starts_with("part,of,what,before,after,change,percent,unit\nrun,,sim_time,3000000,4000000,1000000,33.3")
    );
    assert!(csv.contains("\nkernel,lud_diagonal,cycles,240,242,2,0.8"), "{csv}");
    assert!(csv.ends_with("\ninput,workload,size,32,64,,,\n"), "{csv}");
}
