//! The effects of common mistakes: the reports that `docs/prototyping.md` shows are those that the program prints.

use std::path::Path;
use std::process::Command;

const DOCUMENT: &str = include_str!("../../docs/prototyping.md");
const TOPOLOGY: &str = include_str!("../topologies/v100_prefetcher.ron");

/// What `topology check` says of the topology with `right` replaced by `wrong`.
fn report(right: &str, wrong: &str) -> String {
    assert!(TOPOLOGY.contains(right), "the topology has no {right}");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(wrong.replace(|c: char| !c.is_ascii_alphanumeric(), ""));
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("node.ron"), TOPOLOGY.replacen(right, wrong, 1)).expect("a file");
    let mut program = Command::new(env!("CARGO_BIN_EXE_balar-examples"));
    let output = program.args(["topology", "check", "node.ron"]).current_dir(&folder).output().expect("the program");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    String::from_utf8(output.stderr).expect("text")
}

/// The report of the mistake that `says` is in: the message, the text beside the place, and the help.
fn mistake<'a>(report: &'a str, says: &str) -> Vec<&'a str> {
    let found = report.split("Error: ").find(|mistake| mistake.contains(says)).expect("a mistake");
    let message = found.lines().next();
    let label = found.lines().find(|line| line.trim_start().starts_with("label at"));
    let label = label.and_then(|line| line.split_once(": ")).map(|(_, label)| label);
    let help = found.lines().find_map(|line| line.strip_prefix("diagnostic help: "));
    [message, label, help].into_iter().flatten().collect()
}

#[test]
fn the_document_shows_the_reports_that_there_are() {
    let (first, second) = (
        r#"("sm[*].memory", "prefetcher[*].upstream", latency: "10 ns"),"#,
        r#"("prefetcher[*].downstream", "crossbar.sm[*]", latency: "10 ns"),"#,
    );
    for (right, wrong, says) in [
        ("StreamPrefetcher(", "StreamPrefecher(", "there is no kind of unit"),
        (r#"clock: "1312 MHz","#, r#"clock: "1312 MHz", degre: 8,"#, "has no parameter `degre`"),
        (r#"clock: "1312 MHz","#, r#"clock: "1312","#, "1312"),
        (first, &first.replace("10 ns", "0 ns"), "takes no time"),
        (second, "", "`downstream` of StreamPrefetcher"),
        (r#"without: [("sm[*].memory", "crossbar.sm[*]")],"#, "", "is wired twice"),
    ] {
        let report = report(right, wrong);
        assert!(report.contains(says), "{report}");
        // Where the other place is, is the business of the part's file.
        for text in mistake(&report, says).into_iter().filter(|text| !text.contains("parts/")) {
            assert!(DOCUMENT.contains(text), "docs/prototyping.md does not show: {text}");
        }
    }
}

#[test]
fn a_link_that_the_part_does_not_have_cannot_be_left_out() {
    let report = report(r#"[("sm[*].memory", "crossbar.sm[*]")]"#, r#"[("sm[*].memory", "crossbar.sn[*]")]"#);
    assert!(report.contains(r#"the part has no link ("sm[*].memory", "crossbar.sn[*]") to leave out"#), "{report}");
    assert!(report.contains(r#"the nearest name is `("sm[*].memory", "crossbar.sm[*]")`"#), "{report}");
}
