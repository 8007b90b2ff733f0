//! The program that runs the workloads on a GPU, here on a simulated one: every workload gives the right values by the driver's API
//! too.

use assert_cmd::Command;
use std::time::Duration;

/// What `balar-hardware` prints on a simulated V100.
fn table(arguments: &[&str]) -> Vec<csv::StringRecord> {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("table.csv");
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["run", "--topology", "v100_node", "--", env!("CARGO_BIN_EXE_hardware-under-test"), "--output"]);
    command.arg(&file).args(arguments).timeout(Duration::from_secs(120)).assert().success();
    csv::Reader::from_path(&file).expect("a table").records().map(|row| row.expect("a row")).collect()
}

#[test]
fn the_workloads_give_the_right_values_as_programs_of_the_driver_api() {
    for memory in [&[][..], &["--with", "memory=managed"]] {
        let rows = table(&[&["--small", "--repeat", "1", "--cold"], memory].concat());
        let programs: Vec<_> = rows.iter().filter(|row| &row[4] == "program").collect();
        assert_eq!(programs.len(), balar_workloads::workloads().len());
        for row in rows {
            assert_eq!(&row[10], "passed", "{row:?}");
            assert_eq!(row[3].contains("memory=managed"), !memory.is_empty(), "{row:?}");
        }
    }
}

#[test]
fn the_time_of_a_kernel_is_the_median_of_the_runs() {
    let rows = table(&["lud:size=64", "--repeat", "2"]);
    let figures: Vec<_> = rows.iter().map(|row| (&row[4], &row[5])).collect();
    assert_eq!(figures, [("lud_diagonal", "4"), ("lud_internal", "3"), ("lud_perimeter", "3"), ("program", "10")]);
    for row in &rows {
        let [median, least, greatest] = [7, 8, 9].map(|column| row[column].parse::<f64>().expect("a number"));
        assert!(0.0 < least && least <= median && median <= greatest, "{row:?}");
    }
}

#[test]
fn a_workload_with_a_typing_error_is_named() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_command-line-under-test"));
    command.args(["run", "--topology", "v100_node", "--", env!("CARGO_BIN_EXE_hardware-under-test"), "vectorad"]);
    let output = command.timeout(Duration::from_secs(120)).output().expect("runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("vectorad") && error.contains("vectoradd"), "{error}");
    assert_eq!(output.status.code(), Some(1));
}
