//! Containers made here, whole and broken.

use super::*;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

const PTX: &str = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry kernel() { ret; }\n";

#[derive(Clone, Copy)]
enum Form {
    Plain,
    Lz4,
    Zstandard,
}

/// An entry, as tools write it.
fn entry(kind: u16, architecture: u32, form: Form, data: &[u8]) -> Vec<u8> {
    let (flag, mut payload) = match form {
        Form::Plain => (0, data.to_vec()),
        Form::Lz4 => (0x2000u64, lz4_flex::block::compress(data)),
        Form::Zstandard => (0x8000, compress_to_vec(data, CompressionLevel::Fastest)),
    };
    let compressed = if flag == 0 { 0 } else { payload.len() as u32 };
    payload.resize(payload.len().next_multiple_of(8), 0);
    let mut entry = Vec::new();
    entry.extend(kind.to_le_bytes());
    entry.extend(0x101u16.to_le_bytes());
    entry.extend(80u32.to_le_bytes());
    entry.extend((payload.len() as u64).to_le_bytes());
    entry.extend(compressed.to_le_bytes());
    entry.extend(64u32.to_le_bytes());
    entry.extend([4u16, 7].iter().flat_map(|number| number.to_le_bytes()));
    entry.extend(architecture.to_le_bytes());
    entry.extend([72u32, 4].iter().flat_map(|number| number.to_le_bytes()));
    entry.extend((0x11 | flag).to_le_bytes());
    entry.extend(0u64.to_le_bytes());
    entry.extend(if flag == 0 { 0 } else { data.len() as u64 }.to_le_bytes());
    entry.extend(72u64.to_le_bytes());
    entry.extend(b"name\0\0\0\0");
    entry.extend(payload);
    entry
}

fn container(entries: &[Vec<u8>]) -> Vec<u8> {
    let body = entries.concat();
    let mut container = MAGIC.to_le_bytes().to_vec();
    container.extend([1u16, 16].iter().flat_map(|number| number.to_le_bytes()));
    container.extend((body.len() as u64).to_le_bytes());
    container.extend(body);
    container
}

/// A PTX text that names its target.
fn ptx(architecture: u32, form: Form) -> Vec<u8> {
    entry(1, architecture, form, format!("// {architecture}\n{PTX}").as_bytes())
}

fn elf(architecture: u32) -> Vec<u8> {
    let mut file = vec![0; 64];
    file[..4].copy_from_slice(b"\x7fELF");
    (file[8], file[18]) = (8, 190);
    file[48..52].copy_from_slice(&(architecture << 8 | 0x0600_0004).to_le_bytes());
    file
}

/// The first lines of the texts chosen for a GPU.
fn chosen(image: &[u8], capability: (u32, u32)) -> Vec<String> {
    let texts = texts(image, capability).expect("the image has PTX");
    texts.iter().map(|text| text.text.lines().next().expect("a first line").to_owned()).collect()
}

#[test]
fn every_form_of_data_is_read() {
    for form in [Form::Plain, Form::Lz4, Form::Zstandard] {
        let image = container(&[entry(2, 75, form, &elf(75)), ptx(75, form)]);
        let containers = containers(&image).expect("well-formed");
        let [elf_entry, ptx_entry] = &containers[0].entries[..] else { panic!("two entries") };
        assert_eq!((elf_entry.kind, elf_entry.architecture, elf_entry.version), (EntryKind::Elf, 75, (7, 4)));
        assert_eq!(elf_entry.data().expect("whole"), elf(75));
        assert_eq!(ptx_entry.text().expect("whole"), format!("// 75\n{PTX}"));
        assert_eq!(texts(&image, (7, 5)).expect("PTX")[0].name.as_deref(), Some("name"));
    }
}

#[test]
fn the_highest_architecture_that_fits_is_taken() {
    let image = container(&[
        ptx(60, Form::Plain),
        ptx(70, Form::Lz4),
        ptx(80, Form::Zstandard),
        entry(2, 70, Form::Plain, &elf(70)),
    ]);
    assert_eq!(chosen(&image, (7, 5)), ["// 70"]);
    assert_eq!(chosen(&image, (9, 0)), ["// 80"]);
    assert_eq!(chosen(&image, (6, 1)), ["// 60"]);
    // Newer code alone: the oldest of it.
    let newer = container(&[ptx(90, Form::Plain), ptx(75, Form::Plain)]);
    assert_eq!(chosen(&newer, (7, 0)), ["// 75"]);
}

#[test]
fn containers_follow_each_other() {
    let mut image = container(&[ptx(70, Form::Plain), ptx(75, Form::Plain)]);
    image.extend([0; 24]);
    image.extend(container(&[entry(2, 75, Form::Plain, &elf(75))]));
    image.extend(container(&[ptx(72, Form::Lz4)]));
    image.extend([0; 3]);
    assert_eq!(chosen(&image, (7, 0)), ["// 70", "// 72"]);
    image.push(1);
    let error = texts(&image, (7, 0)).expect_err("a byte too many");
    assert!(
        error.to_string().contains("a container's header of 16 bytes, expected no more than the 1 that are there"),
        "{error}"
    );
}

#[test]
fn images_that_are_no_containers() {
    assert_eq!(texts(PTX.as_bytes(), (7, 0)).expect("text")[0].text, PTX);
    assert_eq!(texts(format!("{PTX}\0rest").as_bytes(), (7, 0)).expect("text")[0].text, PTX);
    for (image, expected) in [
        (
            elf(75),
            "cudaErrorNoKernelImageForDevice: no PTX in the image, which has machine code for sm_75 alone (a cubin)",
        ),
        (
            b"\xff\xfe12".to_vec(),
            "an image of 4 bytes that begins with [ff, fe, 31, 32], expected a fatbin container, PTX or a cubin",
        ),
        (Vec::new(), "an image of 0 bytes that begins with [], expected a fatbin container, PTX or a cubin"),
        (
            container(&[entry(2, 75, Form::Plain, &elf(75)), entry(8, 90, Form::Plain, b"intermediate")]),
            "cudaErrorNoKernelImageForDevice: no PTX in the image, which has machine code for sm_75, an entry of kind 8 for sm_90",
        ),
        (container(&[]), "cudaErrorNoKernelImageForDevice: no PTX in the image, which has no entries"),
    ] {
        assert_eq!(texts(&image, (7, 0)).expect_err(expected).to_string(), expected);
    }
    let mut old = elf(0);
    (old[8], old[48]) = (7, 70);
    assert_eq!(cubin(&old), Some(CubinDescription { architecture: 70, is_relocatable: false }));
    old[16] = 1;
    assert_eq!(cubin(&old), Some(CubinDescription { architecture: 70, is_relocatable: true }));
    assert_eq!(cubin(&old[..63]), None);
}

#[test]
fn machine_code_is_for_one_generation() {
    let code = |architecture| entry(2, architecture, Form::Zstandard, &elf(architecture));
    let image = container(&[ptx(70, Form::Plain), code(60), code(70), code(72), code(75), code(80)]);
    let chosen = |capability| {
        let cubins = cubins(&image, capability).expect("code for the GPU");
        let [found] = &cubins[..] else { panic!("one container") };
        assert_eq!(found.name.as_deref(), Some("name"));
        cubin(&found.bytes).expect("a cubin").architecture
    };
    assert_eq!([(7, 0), (7, 2), (7, 3), (7, 5)].map(chosen), [70, 72, 72, 75]);
    let turing = container(&[code(70), code(72)]);
    assert_eq!(cubins(&turing, (7, 5)).expect("older code of the generation")[0].bytes, elf(72));
    assert_eq!(cubins(&elf(70), (7, 5)).expect("a cubin"), [CubinImage { name: None, bytes: elf(70) }]);
    let several = [image.clone(), container(&[]), turing].concat();
    assert_eq!(cubins(&several, (7, 0)).expect("two containers").len(), 2);
}

#[test]
fn images_without_machine_code_for_the_gpu() {
    let code = entry(2, 75, Form::Plain, &elf(75));
    let with_ptx = container(&[code.clone(), ptx(70, Form::Plain)]);
    let fitting = container(&[entry(2, 70, Form::Plain, &elf(70))]);
    for (image, found) in [
        (with_ptx.clone(), "machine code for sm_75, PTX for compute_70"),
        ([fitting, with_ptx].concat(), "machine code for sm_75, PTX for compute_70"),
        (elf(75), "machine code for sm_75 alone (a cubin)"),
        (PTX.as_bytes().to_vec(), "PTX alone"),
        (container(&[]), "no entries"),
    ] {
        let expected =
            format!("cudaErrorNoKernelImageForDevice: no machine code for sm_70 in the image, which has {found}");
        assert_eq!(cubins(&image, (7, 0)).expect_err(found).to_string(), expected);
    }
    // Those of an architecture that is not simulated are not run.
    let later = cubins(&container(&[entry(2, 100, Form::Plain, &elf(100))]), (10, 3)).expect_err("sm_100");
    assert!(later.to_string().ends_with("no machine code for sm_103 in the image, which has machine code for sm_100"));
    // Code of sm_80 runs on sm_86, and on no GPU of another generation.
    let ampere = container(&[entry(2, 80, Form::Plain, &elf(80))]);
    assert_eq!(cubins(&ampere, (8, 6)).map(|images| images.len()), Ok(1));
    let hopper = cubins(&ampere, (9, 0)).expect_err("sm_80");
    assert!(hopper.to_string().ends_with("no machine code for sm_90 in the image, which has machine code for sm_80"));
    let unknown = cubins(b"\xff\xfe12", (7, 0)).expect_err("no image");
    assert!(matches!(unknown, ImageError::Unknown { bytes: 4, .. }), "{unknown}");
}

#[test]
fn what_breaks_the_format_is_named() {
    let whole = container(&[ptx(75, Form::Lz4)]);
    type Change = fn(&mut Vec<u8>);
    let cases: [(Change, &str); 9] = [
        (|image| image[4] = 2, "fatbin, offset 0x4: a container of version 2, expected 1"),
        (|image| image[6] = 8, "fatbin, offset 0x6: a container's header of 8 bytes, expected at least 16"),
        (|image| image[15] = 0x80, "expected no more than the"),
        (|image| image[16 + 4] = 63, "fatbin, offset 0x14: an entry's header of 63 bytes, expected at least 64"),
        (|image| image[16 + 7] = 1, "an entry's header of 16777296 bytes, expected no more than"),
        (|image| image[16 + 15] = 0xff, "fatbin, offset 0x60: an entry's data of"),
        (|image| image[16 + 18] = 1, "fatbin, offset 0x20: 65"),
        (|image| image[16 + 41] = 0xa0, "fatbin, offset 0x60: data compressed in two ways, expected one"),
        (|image| image[16 + 60] = 1, "fatbin, offset 0x60: LZ4 data of 4294967"),
    ];
    for (change, expected) in cases {
        let mut image = whole.clone();
        change(&mut image);
        let error = texts(&image, (7, 5)).expect_err(expected).to_string();
        assert!(error.contains(expected), "{error}");
    }
    // Data that is shorter or longer than it says.
    for difference in [-1i8, 1] {
        for form in [Form::Lz4, Form::Zstandard] {
            let mut image = container(&[ptx(75, form)]);
            image[16 + 56] = image[16 + 56].wrapping_add_signed(difference);
            let error = texts(&image, (7, 5)).expect_err("another length").to_string();
            assert!(error.contains(" data "), "{error}");
        }
    }
}

#[test]
fn no_truncation_and_no_flipped_bit_is_more_than_an_error() {
    for form in [Form::Plain, Form::Lz4, Form::Zstandard] {
        let image = container(&[entry(2, 75, form, &elf(75)), ptx(75, form)]);
        for length in 4..image.len() {
            assert!(texts(&image[..length], (7, 5)).is_err(), "{length} of {} bytes", image.len());
        }
        for bit in 0..image.len() * 8 {
            let mut image = image.clone();
            image[bit / 8] ^= 1 << (bit % 8);
            // Some are other PTX, most are errors; all end.
            if let Ok(texts) = texts(&image, (7, 5)) {
                assert!(!texts.is_empty());
            }
        }
    }
}
