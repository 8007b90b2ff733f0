//! Images of several kinds: which of their code is chosen, and how it is named.

use super::super::*;
use balar_host::CudaError;
use balar_isa::fatbin;

const PTX: &[u8] = b".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k() { exit; }";
const SM_70: &[u8] = include_bytes!("../../../../../isa/tests/cubins/vectoradd.sm_70.cubin");
const SM_75: &[u8] = include_bytes!("../../../../../isa/tests/cubins/vectoradd.sm_75.cubin");

/// A fatbin container of PTX and cubins.
fn container(entries: &[&[u8]]) -> Vec<u8> {
    let mut body = Vec::new();
    for data in entries {
        let cubin = fatbin::cubin(data);
        let padded = data.len().next_multiple_of(8);
        body.extend(if cubin.is_some() { 2u16 } else { 1 }.to_le_bytes());
        body.extend(0x101u16.to_le_bytes());
        body.extend(64u32.to_le_bytes());
        body.extend((padded as u64).to_le_bytes());
        body.extend([0; 12]);
        body.extend(cubin.map_or(70, |cubin| cubin.architecture).to_le_bytes());
        body.extend([0; 32]);
        body.extend(*data);
        body.resize(body.len() + padded - data.len(), 0);
    }
    let mut container = fatbin::MAGIC.to_le_bytes().to_vec();
    container.extend([1u16, 16].iter().flat_map(|number| number.to_le_bytes()));
    container.extend((body.len() as u64).to_le_bytes());
    container.extend(body);
    container
}

/// The names of the parts that are chosen for a GPU, or why there are none.
fn chosen(images: &[&[u8]], capability: (u32, u32), isa: IsaChoice) -> Result<String, String> {
    let source = CodeChoice::from(isa).of_images(images, "app", capability);
    source.map(|source| source.names()).map_err(|error| error.to_string())
}

#[test]
fn images_are_named_and_refused_as_cuda_does() {
    assert_eq!(chosen(&[PTX, PTX], (7, 0), IsaChoice::Ptx).as_deref(), Ok("app.ptx, app.1.ptx"));
    assert_eq!(chosen(&[SM_70, SM_75], (7, 5), IsaChoice::Sass).as_deref(), Ok("app.cubin, app.1.cubin"));
    let refused =
        |image: &[u8], isa: IsaChoice| CodeChoice::from(isa).of_images(&[image], "app", (7, 0)).expect_err("no code");
    let error = refused(SM_75, IsaChoice::Ptx);
    assert_eq!(error.cuda_error(), CudaError::NoKernelImageForDevice);
    assert!(error.to_string().starts_with("app: cudaErrorNoKernelImageForDevice: no PTX in the image"), "{error}");
    let error = refused(&container(&[PTX, SM_75]), IsaChoice::Sass);
    assert_eq!(error.cuda_error(), CudaError::NoKernelImageForDevice);
    let found = "no machine code for sm_70 in the image, which has PTX for compute_70, machine code for sm_75";
    assert!(error.to_string().contains(found), "{error}");
    assert!(error.to_string().ends_with("; there is no assembler (ptxas) for the PTX"), "{error}");
    let error = refused(b"\xff", IsaChoice::Auto);
    assert_eq!(error.cuda_error(), CudaError::InvalidKernelImage);
}

#[test]
fn machine_code_is_taken_where_all_images_have_some() {
    let both = container(&[PTX, SM_70]);
    let mut piece = SM_70.to_vec();
    piece[16] = 1;
    let unlinked = container(&[PTX, &piece]);
    for (images, choices) in [
        (&[&both[..]][..], ["ptx", "cubin", "cubin"]),
        (&[&both, PTX], ["ptx, app.1.ptx", "ptx, app.1.ptx", "-"]),
        (&[SM_70], ["-", "cubin", "cubin"]),
        (&[PTX], ["ptx", "ptx", "-"]),
        (&[&unlinked], ["ptx", "cubin", "cubin"]),
        (&[&unlinked, PTX], ["ptx, app.1.ptx", "ptx, app.1.ptx", "-"]),
        (&[&piece], ["-", "cubin", "cubin"]),
        (&[&piece, PTX], ["-", "-", "-"]),
        (&[&piece, &piece], ["-", "cubin, app.1.cubin", "cubin, app.1.cubin"]),
        // Code that was compiled in pieces, with the linker's output for them.
        (&[&unlinked, &unlinked, &container(&[SM_70])], ["ptx, app.1.ptx", "2.cubin", "2.cubin"]),
        (&[&unlinked, &container(&[])], ["ptx", "ptx", "-"]),
    ] {
        for (isa, expected) in [IsaChoice::Ptx, IsaChoice::Auto, IsaChoice::Sass].into_iter().zip(choices) {
            let found = chosen(images, (7, 0), isa).map_or("-".to_owned(), |names| names[4..].to_owned());
            assert_eq!(found, expected, "{isa:?}");
        }
    }
    assert_eq!(chosen(&[&both], (8, 0), IsaChoice::Auto).as_deref(), Ok("app.ptx"));
}
