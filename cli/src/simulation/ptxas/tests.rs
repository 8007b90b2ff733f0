use super::*;
use std::fs;

const PTX: &str = ".version 9.5\n.target sm_75\n.address_size 64\n.visible .entry k() { ret; }\n";
const CUBIN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../isa/tests/cubins/vectoradd.sm_70.cubin");

/// A script that stands for ptxas: says that it is version 12.9.86, notes each of its runs in the file `runs`, and does `rest`.
fn script(folder: &Path, rest: &str) -> PathBuf {
    let path = folder.join("ptxas");
    let text = format!(
        "#!/bin/sh\nif [ \"$1\" = --version ]; then echo 'Cuda compilation tools, release 12.9, V12.9.86'; exit; fi\n\
         echo \"$1\" >> {}/runs\n{rest}\n",
        folder.display()
    );
    // Written by another process: this one may start a child while the file is open for writing, which then is busy.
    let mut shell = Command::new("sh");
    shell.args(["-c", "cat > \"$0\" && chmod +x \"$0\""]).arg(&path);
    assert!(child::run(&mut shell, text.as_bytes(), TIME_LIMIT).expect("a shell").succeeded);
    path
}

fn runs(folder: &Path) -> String {
    fs::read_to_string(folder.join("runs")).unwrap_or_default()
}

fn named(text: &str) -> NamedText {
    ("app.ptx".to_owned(), text.into())
}

#[test]
fn versions_are_read() {
    let printed =
        "ptxas: NVIDIA (R) Ptx optimizing assembler\nCuda compilation tools, release 12.9, V12.9.86\nBuild cuda_12";
    let version = Version::read(printed).expect("a version");
    assert_eq!(version, Version { major: 12, minor: 9, full: "12.9.86".to_owned() });
    for text in ["", "V", "Volta", "V12", "Vx.y"] {
        assert_eq!(Version::read(text), None, "{text}");
    }
    for (version, ptx) in
        [("V11.8.89", (7, 8)), ("V12.5.1", (8, 5)), ("V12.6.1", (8, 5)), ("V12.9.86", (8, 8)), ("V13.5.37", (9, 5))]
    {
        assert_eq!(Version::read(version).map(|version| version.latest_ptx()), Some(ptx), "{version}");
    }
}

#[test]
fn a_text_is_assembled_once_and_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = script(folder.path(), &format!("cat > {}/read; cat {CUBIN}", folder.path().display()));
    let assemble = |text: &str| {
        let ptxas = Ptxas::new(path.clone(), Some(CubinCache::new(&folder.path().join("cache"))));
        let first = ptxas.assemble(&named(text), 70, CubinForm::Linked).expect("a cubin");
        assert_eq!(ptxas.assemble(&named(text), 70, CubinForm::Linked).expect("a cubin"), first);
        first
    };
    let first = assemble(PTX);
    assert_eq!(&*first.by, "ptxas 12.9");
    assert_eq!(*first.cubin, *fs::read(CUBIN).expect("a cubin"));
    let read = fs::read_to_string(folder.path().join("read")).expect("what the script has read");
    assert_eq!(read, PTX.replace("9.5", "8.8").replace("sm_75", "sm_70"));
    assert_eq!(assemble(PTX), first);
    assert_eq!(runs(folder.path()), "-arch=sm_70\n");
    assemble(&PTX.replace("k()", "l()"));
    assert_eq!(runs(folder.path()), "-arch=sm_70\n-arch=sm_70\n");

    // What is in the cache and is not whole is made again.
    let cache = folder.path().join("cache/cubins");
    for entry in fs::read_dir(cache).expect("the cache") {
        let path = entry.expect("an entry").path();
        fs::write(&path, &fs::read(CUBIN).expect("a cubin")[..2000]).expect("written");
    }
    assert_eq!(assemble(PTX), first);
    assert_eq!(runs(folder.path()).lines().count(), 3);
}

#[test]
fn a_text_has_two_forms() {
    let folder = tempfile::tempdir().expect("a folder");
    let piece = CUBIN.replace("cubins/vectoradd", "machine/pieces_functions");
    let rest = format!("if [ \"$2\" = --compile-only ]; then cat {piece}; else cat {CUBIN}; fi");
    let path = script(folder.path(), &rest);
    for _ in 0..2 {
        let ptxas = Ptxas::new(path.clone(), Some(CubinCache::new(folder.path())));
        for form in [CubinForm::Linked, CubinForm::Relocatable, CubinForm::Linked, CubinForm::Relocatable] {
            let made = ptxas.assemble(&named(PTX), 70, form).expect("a cubin");
            assert!(cache::is_for(&made.cubin, 70, form), "{form:?}");
        }
    }
    assert_eq!(runs(folder.path()).lines().count(), 2);
    // A whole module is no piece.
    let ptxas = Ptxas::new(script(folder.path(), &format!("cat {CUBIN}")), None);
    let error = ptxas.assemble(&named(PTX), 70, CubinForm::Relocatable).expect_err("no piece").to_string();
    assert_eq!(error, "ptxas 12.9 for sm_70: what it wrote is no cubin");
}

#[test]
fn a_cache_that_cannot_be_written_is_no_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = script(folder.path(), &format!("cat {CUBIN}"));
    let ptxas = Ptxas::new(path.clone(), Some(CubinCache::new(&path)));
    assert!(ptxas.assemble(&named(PTX), 70, CubinForm::Linked).is_ok());
}

#[test]
fn failures_are_told_in_the_words_of_ptxas() {
    let folder = tempfile::tempdir().expect("a folder");
    for (rest, words) in [
        (
            "echo \"ptxas /dev/stdin, line 4; error   : Unknown modifier '.s77'\" >&2\n\
             echo 'ptxas fatal   : Ptx assembly aborted due to errors' >&2; exit 255",
            "ptxas 12.9 for sm_70: line 4; error: Unknown modifier '.s77'",
        ),
        ("exit 1", "ptxas 12.9 for sm_70: it failed without a word"),
        ("echo cubin", "ptxas 12.9 for sm_70: what it wrote is no cubin"),
        // A cubin for another architecture.
        (&format!("cat {}", CUBIN.replace("sm_70", "sm_75")), "ptxas 12.9 for sm_70: what it wrote is no cubin"),
    ] {
        let ptxas = Ptxas::new(script(folder.path(), rest), None);
        let error = ptxas.assemble(&named(PTX), 70, CubinForm::Linked).expect_err(words);
        assert_eq!(error.to_string(), words);
    }
    let ptxas = Ptxas::new(folder.path().join("none"), None);
    let error = ptxas.assemble(&named(PTX), 70, CubinForm::Linked).expect_err("no such file").to_string();
    assert!(error.contains("/none is no ptxas that runs: No such file"), "{error}");
    let error = Ptxas::new("/bin/true".into(), None)
        .assemble(&named(PTX), 70, CubinForm::Linked)
        .expect_err("no ptxas")
        .to_string();
    assert!(error.ends_with("--version tells no version"), "{error}");
}

#[test]
fn what_takes_too_long_is_stopped() {
    let error = child::run(Command::new("sleep").arg("60"), &[], Duration::from_millis(50)).expect_err("a time limit");
    assert_eq!(error.to_string(), "it took longer than 0.05 seconds, and was stopped");
}
