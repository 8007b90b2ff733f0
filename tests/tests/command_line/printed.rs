//! Pins the output of the binary: the tables of a run, and the catalogues.

use crate::call::call;
use balar_tests::assert_snapshot;

#[test]
fn the_tables_of_a_run() {
    for (name, options) in [("summary_of_lud", &[][..]), ("details_of_lud", &["--details"])] {
        let called = call(&[&["--topology", "v100_node", "--workload", "lud:size=48"], options].concat());
        assert_eq!((called.code, called.stderr.as_str()), (0, ""));
        let redacted = |line| if str::starts_with(line, "real time") { "real time  [redacted]" } else { line };
        let lines = called.stdout.lines().map(redacted);
        assert_snapshot("cli", name, &lines.collect::<Vec<_>>().join("\n"));
    }
}

#[test]
fn the_catalogues() {
    for (name, arguments) in [
        ("units_StreamingMultiprocessor", &["units", "StreamingMultiprocessor"][..]),
        ("units_Link", &["units", "Link"]),
        ("workloads", &["workloads"]),
        ("workloads_pointer_chase", &["workloads", "pointer_chase"]),
    ] {
        let called = call(arguments);
        assert_eq!((called.code, called.stderr.as_str()), (0, ""), "{arguments:?}");
        assert_snapshot("cli", name, &called.stdout);
    }
}
