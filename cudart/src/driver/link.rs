//! Linking at run time (`cuLink*`): several images become one, which a module is made of later.

use crate::abi::arguments::{In, Out, Text};
use crate::abi::jit::{Log, answer_options, error_text};
use crate::driver_api;
use crate::session::api::Outcome;
use crate::session::code::{Code, Image};
use crate::session::handles::{Handles, Kind};
use crate::session::{connection, image, thread};
use balar_host::{Call, CudaError};
use object::{Object as _, ObjectSection as _};
use std::ffi::{c_int, c_void};

/// The images that have been added, and the linked image.
#[derive(Default)]
struct Linker {
    images: Vec<Vec<u8>>,
    /// The linked image; the program reads it until it destroys the linker.
    linked: Option<Box<[u8]>>,
    /// Where errors are written, until the linker is destroyed.
    errors: Log,
}

static LINKERS: Handles<Linker> = Handles::new(Kind::Linker);

/// `CUjitInputType`.
const CUBIN: c_int = 0;
const PTX: c_int = 1;
const FATBINARY: c_int = 2;
const OBJECT: c_int = 3;

/// The sections of an object file of the host with device code, which is to be linked or was.
const OBJECT_SECTIONS: [&str; 2] = ["__nv_relfatbin", ".nv_fatbin"];

fn create(count: u32, options: In<u32>, values: Out<*mut c_void>, place: Out<u64>) -> Outcome {
    place.check()?;
    let names = options.array(count as usize)?;
    // SAFETY: the caller passes as many values as options, whose buffers are there as long as the linker.
    let errors = if values.is_null() { Log::default() } else { unsafe { Log::of_errors(&names, values.pointer()) } };
    answer_options(options, values, count, || place.set(LINKERS.insert(Linker { errors, ..Linker::default() })))
}

fn add(linker: u64, kind: c_int, mut data: Vec<u8>) -> Outcome {
    match kind {
        PTX if !data.ends_with(&[0]) => data.push(0),
        PTX | CUBIN | FATBINARY => {}
        OBJECT => {
            let images = of_object(&data)?;
            return LINKERS.with(linker, |linker| linker.images.extend(images));
        }
        // Libraries of the host, and code of compilers.
        _ => return Err(CudaError::NotSupported),
    }
    LINKERS.with(linker, |linker| linker.images.push(data))
}

/// The device code of an object file of the host.
fn of_object(data: &[u8]) -> Result<Vec<Vec<u8>>, CudaError> {
    let file = object::File::parse(data).map_err(|_| CudaError::InvalidKernelImage)?;
    let sections = file.sections().filter(|section| section.name().is_ok_and(|name| OBJECT_SECTIONS.contains(&name)));
    let images = sections.filter_map(|section| section.data().ok()).filter(|image| !image.is_empty());
    let images: Vec<Vec<u8>> = images.map(<[u8]>::to_vec).collect();
    if images.is_empty() { Err(CudaError::InvalidKernelImage) } else { Ok(images) }
}

fn add_data(linker: u64, kind: c_int, data: *const c_void, bytes: usize) -> Outcome {
    if data.is_null() || bytes == 0 {
        return Err(CudaError::InvalidValue);
    }
    // SAFETY: the caller passes `bytes` bytes.
    add(linker, kind, unsafe { std::slice::from_raw_parts(data.cast::<u8>(), bytes) }.to_vec())
}

fn add_file(linker: u64, kind: c_int, path: Text) -> Outcome {
    let data = std::fs::read(path.get()?).map_err(|_| CudaError::FileNotFound)?;
    add(linker, kind, data)
}

/// Loads the images like a module, so that mistakes in them are reported now.
fn check(images: &[Vec<u8>]) -> Outcome {
    let images = images.iter().map(|image| Image::Copied(image.as_slice().into())).collect();
    let device = thread::device();
    let module = Code::new("cuLinkComplete", images).on(device)?;
    connection::call_on(device, &Call::ModuleUnload { module: module.number }).map(|_| ())
}

driver_api! {
    context fn cuLinkCreate(count: u32, options: In<u32>, values: Out<*mut c_void>, place: Out<u64>) {
        create(count, options, values, place)
    }

    context fn cuLinkCreate_v2(count: u32, options: In<u32>, values: Out<*mut c_void>, place: Out<u64>) {
        create(count, options, values, place)
    }

    context fn cuLinkAddData(
        linker: u64, kind: c_int, data: *mut c_void, bytes: usize, _name: *const c_void,
        count: u32, options: In<u32>, values: Out<*mut c_void>,
    ) {
        answer_options(options, values, count, || add_data(linker, kind, data, bytes))
    }

    context fn cuLinkAddData_v2(
        linker: u64, kind: c_int, data: *mut c_void, bytes: usize, _name: *const c_void,
        count: u32, options: In<u32>, values: Out<*mut c_void>,
    ) {
        answer_options(options, values, count, || add_data(linker, kind, data, bytes))
    }

    context fn cuLinkAddFile(
        linker: u64, kind: c_int, path: Text, count: u32, options: In<u32>, values: Out<*mut c_void>,
    ) {
        answer_options(options, values, count, || add_file(linker, kind, path))
    }

    context fn cuLinkAddFile_v2(
        linker: u64, kind: c_int, path: Text, count: u32, options: In<u32>, values: Out<*mut c_void>,
    ) {
        answer_options(options, values, count, || add_file(linker, kind, path))
    }

    context fn cuLinkComplete(linker: u64, image: Out<*const c_void>, bytes: Out<usize>) {
        image.check()?;
        let images = LINKERS.with(linker, |linker| linker.images.clone())?;
        if images.is_empty() {
            return Err(CudaError::InvalidValue);
        }
        if let Err(error) = check(&images) {
            LINKERS.with(linker, |linker| linker.errors)?.write(&error_text(error));
            return Err(error);
        }
        let linked = image::linked(&images).into_boxed_slice();
        let (address, length) = LINKERS.with(linker, |linker| {
            // If it is completed twice, the program may still read the first result.
            let linked = linker.linked.get_or_insert(linked);
            (linked.as_ptr().cast::<c_void>(), linked.len())
        })?;
        bytes.set_if_wanted(length);
        image.set(address)
    }

    context fn cuLinkDestroy(linker: u64) {
        LINKERS.remove(linker).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::write::Object;
    use object::{Architecture, BinaryFormat, Endianness, SectionKind};

    /// An object file of the host with a section.
    fn file(section: &str, data: &[u8]) -> Vec<u8> {
        let mut file = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let section = file.add_section(Vec::new(), section.into(), SectionKind::ReadOnlyData);
        file.append_section_data(section, data, 8);
        file.write().expect("an object file")
    }

    #[test]
    fn objects_of_the_host_have_device_code_in_a_section() {
        for section in OBJECT_SECTIONS {
            assert_eq!(of_object(&file(section, b"container")), Ok(vec![b"container".to_vec()]));
        }
        for broken in [&file(".text", b"container")[..], &file(OBJECT_SECTIONS[0], b""), b"\x7fELF", b"text"] {
            assert_eq!(of_object(broken), Err(CudaError::InvalidKernelImage));
        }
    }
}
