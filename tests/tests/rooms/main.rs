//! How the code is laid out: what is in one folder can be read at a glance, files do not lead in circles, and functions are of a size
//! that can be read.

mod circles;
mod modules;

use crate::circles::circles_of;
use crate::modules::SourceTree;
use proc_macro2::{TokenStream, TokenTree};
use std::fs;
use std::path::{Path, PathBuf};

/// Files of code in a folder, at most.
const MOST_LOOSE: usize = 25;
/// Files that may import each other, each the others.
const LONGEST_CIRCLE: usize = 2;
/// Limits of functions that nobody excuses himself from.
const LIMITS: [&str; 2] = ["too_many_arguments", "too_many_lines"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All folders from `folder` down, each with its files.
fn folders(folder: &Path, found: &mut Vec<(PathBuf, Vec<PathBuf>)>) {
    let entries: Vec<_> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    let (inner, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.into_iter().partition(|path| path.is_dir());
    found.push((folder.to_owned(), files));
    for inner in inner {
        let name = inner.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if !name.starts_with('.') && name != "target" {
            folders(&inner, found);
        }
    }
}

/// The folders of the repository, each with its files of code.
fn folders_of_code() -> Vec<(PathBuf, Vec<PathBuf>)> {
    let mut found = Vec::new();
    folders(&repository(), &mut found);
    for (_, files) in &mut found {
        files.retain(|path| path.extension().is_some_and(|extension| extension == "rs"));
    }
    found.retain(|(_, files)| !files.is_empty());
    assert!(found.len() > 100, "the code was not found");
    found
}

/// The crates of the repository that have a source folder.
fn crates() -> Vec<PathBuf> {
    let mut found = Vec::new();
    folders(&repository(), &mut found);
    let is_crate = |folder: &PathBuf| folder.join("Cargo.toml").is_file() && folder.join("src").is_dir();
    let mut crates: Vec<_> = found.into_iter().map(|(folder, _)| folder).filter(is_crate).collect();
    crates.sort();
    crates
}

/// The excuses in code from [`LIMITS`]: what an `expect` or `allow` names of them.
fn excuses(tokens: TokenStream, found: &mut Vec<String>) {
    let mut excuses_something = false;
    for token in tokens {
        let TokenTree::Group(group) = token else {
            excuses_something = matches!(&token, TokenTree::Ident(name) if name == "expect" || name == "allow");
            continue;
        };
        if excuses_something {
            let lints = group.stream().into_iter().map(|token| token.to_string());
            found.extend(lints.filter(|lint| LIMITS.contains(&lint.as_str())));
        }
        excuses_something = false;
        excuses(group.stream(), found);
    }
}

fn excuses_in(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    excuses(code.parse().expect("code"), &mut found);
    found
}

#[test]
fn no_folder_has_more_than_25_loose_files() {
    let full: Vec<_> = folders_of_code()
        .into_iter()
        .map(|(folder, files)| (folder, files.len()))
        .filter(|(_, files)| *files > MOST_LOOSE)
        .collect();
    assert!(full.is_empty(), "divide into rooms: {full:?}");
}

#[test]
fn no_more_than_two_files_of_a_crate_import_each_other() {
    let crates = crates();
    let trees: Vec<SourceTree> = crates.iter().map(|folder| SourceTree::read(folder)).collect();
    let (files, imports) =
        trees.iter().fold((0, 0), |(files, imports), tree| (files + tree.files.len(), imports + tree.imports().len()));
    assert!(files > 800 && imports > 2 * files, "the code was not read: {files} files, {imports} imports");
    let circles: Vec<String> = trees.iter().flat_map(|tree| tree.circles(LONGEST_CIRCLE)).collect();
    assert!(circles.is_empty(), "give what they share a file of its own:\n{}", circles.join("\n"));
}

#[test]
fn no_function_is_excused_from_its_limits() {
    let mut excused = Vec::new();
    for file in folders_of_code().into_iter().flat_map(|(_, files)| files) {
        let found = excuses_in(&fs::read_to_string(&file).expect("a file of code"));
        excused.extend(found.into_iter().map(|lint| format!("{}: {lint}", file.display())));
    }
    assert!(excused.is_empty(), "make structs of arguments and functions of parts:\n{}", excused.join("\n"));
}

#[test]
fn excuses_are_found_wherever_they_stand() {
    let code = "#![expect(dead_code, clippy::too_many_lines, reason = \"no\")]
        fn f() { g.expect(too_many_things); }
        mod m { #[cfg_attr(x, allow(clippy::too_many_arguments))] fn h() {} }
        // #[allow(clippy::too_many_arguments)]
        const TEXT: &str = \"expect(too_many_lines)\";";
    assert_eq!(excuses_in(code), ["too_many_lines", "too_many_arguments"]);
}

/// A crate of these files, in a folder of its own.
fn made_up(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    write("Cargo.toml", "[package]\nname = \"made-up\"\n");
    files.iter().for_each(|(path, text)| write(path, text));
    folder
}

/// The circles of more than `most` files in a crate of these files, each as its number of files and what ties them.
fn circles_in(files: &[(&str, &str)], most: usize) -> Vec<Vec<String>> {
    let folder = made_up(files);
    let told = circles_of(folder.path(), most);
    told.iter().map(|circle| circle.lines().map(|line| line.trim().to_owned()).collect()).collect()
}

#[test]
fn a_circle_of_three_is_found_with_what_ties_it_and_one_of_two_is_left() {
    let files = [
        ("src/lib.rs", "mod one; mod two; mod three; mod left; mod right;"),
        // By a `use`, by a path in code, and by a path in a macro's call.
        ("src/one.rs", "use crate::two::Two; pub struct One(Two);"),
        ("src/two.rs", "pub struct Two; fn f() { super::three::call(); }"),
        ("src/three.rs", "pub fn call() { println!(\"{}\", size_of::<crate::one::One>()); }"),
        ("src/left.rs", "use crate::right::Right; pub struct Left(Option<Box<Right>>); use super::one::One;"),
        ("src/right.rs", "pub struct Right(super::left::Left);"),
    ];
    let three = [
        "made_up: 3 files import each other",
        "src/one.rs -> src/two.rs: Two, crate::two::Two",
        "src/three.rs -> src/one.rs: crate::one::One",
        "src/two.rs -> src/three.rs: super::three::call",
    ];
    let mut found = circles_in(&files, LONGEST_CIRCLE);
    found.iter_mut().for_each(|circle| circle.sort());
    assert_eq!(found, [three]);
    assert_eq!(circles_in(&files, 1).len(), 2);
}

#[test]
fn a_module_that_only_passes_names_on_ties_nothing() {
    // `rooms` re-exports what `front` and `back` define; each of them takes names from it, and `back` only one way.
    let rooms = [
        ("src/lib.rs", "mod rooms; pub use rooms::Front;"),
        ("src/rooms/mod.rs", "mod back; mod front; pub use back::Back; pub use front::Front;"),
        ("src/rooms/front.rs", "use super::Back; use crate::rooms; pub struct Front(Back, rooms::Back);"),
        ("src/rooms/back.rs", "pub struct Back;"),
    ];
    assert!(circles_in(&rooms, 1).is_empty());
    // The same where `back` looks forward again, by the root of the crate.
    let mut looped = rooms;
    looped[3].1 = "pub struct Back(Option<Box<crate::Front>>);";
    assert_eq!(circles_in(&looped, 1).len(), 1);
}

#[test]
fn code_of_tests_ties_nothing() {
    let files = [
        ("src/lib.rs", "mod upper; mod lower; #[cfg(test)] mod checks;"),
        ("src/upper.rs", "use crate::lower::LOWER; pub const UPPER: u32 = LOWER;"),
        ("src/lower.rs", "pub const LOWER: u32 = 1; #[cfg(all(test, unix))] mod tests { use crate::upper::UPPER; }"),
        ("src/checks.rs", "use crate::upper::UPPER;"),
    ];
    assert!(circles_in(&files, 1).is_empty());
    let mut compiled = files;
    compiled[2].1 = "pub const LOWER: u32 = 1; #[cfg(not(test))] mod code { use crate::upper::UPPER; }";
    assert_eq!(circles_in(&compiled, 1).len(), 1);
}

#[test]
fn a_file_below_a_type_goes_on_with_it() {
    // The unit is one type over three files; the first takes what the others keep for it.
    let unit = [
        ("src/lib.rs", "mod unit;"),
        ("src/unit/mod.rs", "mod a; mod b; pub struct Unit { a: a::State, b: b::State } pub fn help() {}"),
        ("src/unit/a.rs", "use super::Unit; pub struct State; impl Unit { fn a(&self) {} }"),
        ("src/unit/b.rs", "use super::Unit; pub struct State; impl Unit { fn b(&self) { Unit::c(self) } }"),
    ];
    assert!(circles_in(&unit, 1).is_empty());
    // It may not take anything else from there, and a file that only uses the type takes it.
    let mut helped = unit;
    helped[2].1 = "use super::Unit; pub struct State; impl Unit { fn a(&self) { super::help() } }";
    helped[3].1 = "pub struct State; fn b(unit: &super::Unit) {}";
    let found = circles_in(&helped, LONGEST_CIRCLE);
    assert_eq!(found.len(), 1);
    let back: Vec<&String> = found[0].iter().filter(|line| line.contains("-> src/unit/mod.rs")).collect();
    assert_eq!(
        back,
        ["src/unit/a.rs -> src/unit/mod.rs: super::help", "src/unit/b.rs -> src/unit/mod.rs: super::Unit"]
    );
}

#[test]
fn names_that_macros_make_and_use_are_seen() {
    let files = [
        ("src/lib.rs", "mod maker; mod made;"),
        (
            "src/maker.rs",
            "#[macro_export] macro_rules! make { ($name:ident) => { pub struct $name($crate::made::Base); } }",
        ),
        // What `made` needs the macro for, and what the macro names of `made`.
        ("src/made.rs", "pub struct Base; crate::make!(Made);"),
        // `Made` is a word in the call of a macro.
        ("src/maker/unused.rs", ""),
    ];
    assert_eq!(circles_in(&files, 1).len(), 1);
    let one_way = [
        ("src/lib.rs", "mod maker; mod made; mod user;"),
        ("src/maker.rs", "macro_rules! make { ($name:ident) => { pub struct $name(u8); } } pub(crate) use make;"),
        ("src/made.rs", "use crate::maker::make; make!(Made); fn f() { crate::user::call(); }"),
        ("src/user.rs", "pub fn call() {} fn g(made: super::made::Made) {}"),
    ];
    let found = circles_in(&one_way, 1);
    assert_eq!(found.len(), 1);
    assert!(found[0].iter().any(|line| line == "src/user.rs -> src/made.rs: super::made::Made"), "{found:?}");
}
