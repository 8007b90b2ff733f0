//! The code that `docs/prototyping.md` shows is the code that there is.

const DOCUMENT: &str = include_str!("../../docs/prototyping.md");

const FILES: &[&str] = &[
    include_str!("../../actors/src/engine/unit.rs"),
    include_str!("../../actors/src/prototyping/pass_through.rs"),
    include_str!("../src/first_unit.rs"),
    include_str!("../src/stream_prefetcher.rs"),
    include_str!("../src/stream_prefetcher/tests.rs"),
    include_str!("../src/lib.rs"),
    include_str!("../src/main.rs"),
    include_str!("effect.rs"),
    include_str!("../topologies/v100_prefetcher.ron"),
];

/// A text without indentation.
fn unindented(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim())).collect()
}

#[test]
fn excerpts_are_real_code() {
    let files: Vec<String> = FILES.iter().map(|file| unindented(file)).collect();
    // Between every second pair of fences; the language is on the line of the first.
    let excerpts: Vec<&str> = DOCUMENT.split("```").skip(1).step_by(2).collect();
    assert!(excerpts.len() >= 12, "only {} excerpts", excerpts.len());
    for excerpt in excerpts {
        let (_, code) = excerpt.split_once('\n').expect("a fence ends its line");
        let code = unindented(code);
        assert!(files.iter().any(|file| file.contains(&code)), "docs/prototyping.md shows what is nowhere:\n{code}");
    }
}
