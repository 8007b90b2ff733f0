//! The texts that an assembler outside the simulator is given, and the code that runs where it fails.

mod images;

use super::*;
use balar_host::CudaError;
use std::sync::Mutex;

const PTX: &[u8] = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { exit; }";
const CUBIN: &[u8] = include_bytes!("../../../../isa/tests/cubins/vectoradd.sm_70.cubin");

/// Makes the same cubin of each text, but of those with a mistake.
#[derive(Debug, Default)]
struct Fake {
    warned: Mutex<Vec<String>>,
}

impl Assembler for Fake {
    fn assemble(&self, text: &NamedText, architecture: u32, form: CubinForm) -> Result<Assembled, AssemblyError> {
        assert_eq!(architecture, 70);
        if text.1.contains("mistake") {
            return Err(AssemblyError::Refused("a mistake".into()));
        }
        if text.1.contains("sm_80") {
            return Err(AssemblyError::Generation { target: 80, architecture });
        }
        let mut cubin = CUBIN.to_vec();
        cubin[16] = if form == CubinForm::Relocatable { 1 } else { 2 };
        Ok(Assembled { cubin: cubin.into(), by: "ptxas 12.9".into(), target: 70 })
    }

    fn warn(&self, words: &str) {
        self.warned.lock().expect("no panic").push(words.to_owned());
    }
}

/// The chosen code, or the error that the program gets; and the message to the user.
fn chosen(images: &[&[u8]], capability: (u32, u32), isa: IsaChoice) -> (Result<&'static str, CudaError>, Vec<String>) {
    let fake = Arc::new(Fake::default());
    let choice = CodeChoice { isa, assembler: Some(Arc::clone(&fake) as Arc<dyn Assembler>), ..CodeChoice::default() };
    let source = choice.of_images(images, "app", capability);
    let source = source.map_err(|error| error.cuda_error()).map(|source| match source {
        ModuleSource::Ptx(_) => "ptx",
        ModuleSource::Machine { origin: None, .. } => "sass",
        ModuleSource::Machine { origin: Some(origin), cubins } => {
            assert_eq!(&*origin.assembler, "ptxas 12.9");
            let are_linked = cubins.iter().all(|(_, bytes)| bytes[16] == 2);
            assert_eq!(are_linked, cubins.len() == 1);
            if are_linked { "assembled" } else { "parts" }
        }
    });
    let warned = fake.warned.lock().expect("no panic").clone();
    (source, warned)
}

#[test]
fn ptx_is_assembled_where_there_is_no_machine_code() {
    let mistake = &b"mistake"[..];
    let later = &b".target sm_80"[..];
    let mut piece = CUBIN.to_vec();
    piece[16] = 1;
    let no_image = Err(CudaError::NoKernelImageForDevice);
    for (images, [ptx, auto, sass], warning) in [
        (&[PTX][..], [Ok("ptx"), Ok("assembled"), Ok("assembled")], None),
        (&[CUBIN], [no_image, Ok("sass"), Ok("sass")], None),
        (&[PTX, PTX], [Ok("ptx"), Ok("parts"), Ok("parts")], None),
        (&[mistake], [Ok("ptx"), Ok("ptx"), Err(CudaError::InvalidPtx)], Some("app.ptx: runs as PTX: a mistake")),
        (&[later], [Ok("ptx"), Ok("ptx"), no_image], Some("app.ptx: runs as PTX: PTX for compute_80")),
        // Pieces that are linked as they are loaded.
        (&[&piece], [no_image, Ok("sass"), Ok("sass")], None),
        (&[&piece, PTX], [no_image, Ok("parts"), Ok("parts")], None),
        (&[&piece, mistake], [no_image, Err(CudaError::InvalidPtx), Err(CudaError::InvalidPtx)], None),
        // A linked cubin is no piece.
        (&[CUBIN, PTX], [no_image, no_image, no_image], None),
    ] {
        assert_eq!(chosen(images, (7, 0), IsaChoice::Ptx), (ptx, Vec::new()));
        let (source, warned) = chosen(images, (7, 0), IsaChoice::Auto);
        assert_eq!(source, auto);
        assert_eq!(warned.len(), usize::from(warning.is_some()), "{warned:?}");
        assert!(warned.iter().all(|words| warning.is_some_and(|start| words.starts_with(start))), "{warned:?}");
        assert_eq!(chosen(images, (7, 0), IsaChoice::Sass), (sass, Vec::new()));
    }
    // Of GPUs whose machine code is not known, PTX runs.
    assert_eq!(chosen(&[PTX], (6, 0), IsaChoice::Auto), (Ok("ptx"), Vec::new()));
    assert_eq!(chosen(&[PTX], (6, 0), IsaChoice::Sass).0, no_image);
}

#[test]
fn parts_that_cannot_be_assembled_run_as_the_texts_that_there_are() {
    let fake = Arc::new(Fake::default());
    let text = |words: &str| ("k.ptx".to_owned(), Arc::from(words));
    let piece = || ModulePart::Cubin(("piece.cubin".to_owned(), CUBIN.into()));
    let run = |isa, words: &str, texts: Option<Vec<NamedText>>| {
        let choice =
            CodeChoice { isa, assembler: Some(Arc::clone(&fake) as Arc<dyn Assembler>), ..CodeChoice::default() };
        choice.of_parts(vec![piece(), ModulePart::Text(text(words))], texts, (7, 0))
    };
    let Ok(ModuleSource::Machine { cubins, origin }) = run(IsaChoice::Auto, "text", None) else { panic!("parts") };
    assert_eq!(cubins.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["piece.cubin", "k.ptx"]);
    assert_eq!(origin, Some(PtxOrigin { assembler: "ptxas 12.9".into(), target: 70 }));
    let texts = vec![text("of the piece"), text("mistake")];
    let source = run(IsaChoice::Auto, "mistake", Some(texts.clone())).expect("all have PTX");
    assert_eq!(source, ModuleSource::Ptx(texts.clone()));
    assert_eq!(*fake.warned.lock().expect("no panic"), ["k.ptx, k.ptx: runs as PTX: a mistake"]);
    for error in [run(IsaChoice::Sass, "mistake", Some(texts)), run(IsaChoice::Auto, "mistake", None)] {
        assert_eq!(error.expect_err("a mistake").to_string(), "piece.cubin, k.ptx: a mistake");
    }
}

#[test]
fn texts_that_are_loaded_from_the_start_need_an_assembler() {
    let text = || vec![("k.ptx".to_owned(), Arc::from("text"))];
    let choice = CodeChoice::from(IsaChoice::Sass);
    let error = choice.of_texts(text(), (7, 0)).expect_err("no assembler");
    assert!(error.to_string().starts_with("k.ptx: PTX alone; there is no assembler"), "{error}");
    let choice = CodeChoice::from(IsaChoice::Auto);
    assert_eq!(choice.of_texts(text(), (7, 0)).ok(), Some(ModuleSource::Ptx(text())));
}
