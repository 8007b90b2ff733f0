//! Linking at run time (`cuLink*`): several images become one, which a module is made of later.

use crate::abi::arguments::{In, Out, Text};
use crate::abi::jit::{Log, answer_options, error_text};
use crate::driver_api;
use crate::session::api::Outcome;
use crate::session::code::archive::{self, Archive};
use crate::session::code::{Code, Image, image};
use crate::session::connection;
use crate::session::state::handles::{Handles, Kind};
use crate::session::state::thread;
use balar_host::{Call, CudaError};
use std::ffi::{c_int, c_void};

/// The images and archives that have been added, and the linked image.
#[derive(Default)]
struct Linker {
    images: Vec<Vec<u8>>,
    /// The first of them that is PTX.
    text: Option<Vec<u8>>,
    archives: Vec<Archive>,
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
const LIBRARY: c_int = 4;

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
            let images = archive::of_object(&data)?;
            return LINKERS.with(linker, |linker| linker.images.extend(images));
        }
        LIBRARY => {
            let archive = archive::of_archive(&data)?;
            return LINKERS.with(linker, |linker| linker.archives.push(archive));
        }
        // Code of compilers.
        _ => return Err(CudaError::NotSupported),
    }
    LINKERS.with(linker, |linker| {
        if kind == PTX {
            linker.text.get_or_insert_with(|| data.clone());
        }
        linker.images.push(data);
    })
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

impl Linker {
    /// The code of the archives that is to be linked, beside the images. PTX needs no more of the device runtime than its cooperative
    /// groups, which are there as PTX: the simulator knows the other functions by itself.
    fn of_archives(&self) -> Vec<Vec<u8>> {
        let mut images = Vec::new();
        for archive in &self.archives {
            match &self.text {
                Some(text) if archive.is_device_runtime => images.push(archive::cooperative_groups(text)),
                _ => images.extend(archive.images.iter().cloned()),
            }
        }
        images
    }
}

/// The images that make a module: those given, with those of archives, unless the archives have nothing for this GPU.
fn checked(mut images: Vec<Vec<u8>>, of_archives: Vec<Vec<u8>>) -> Result<Vec<Vec<u8>>, CudaError> {
    let given = images.len();
    images.extend(of_archives);
    match check(&images) {
        Err(CudaError::NoKernelImageForDevice) if images.len() > given => {
            images.truncate(given);
            check(&images)?;
        }
        outcome => outcome?,
    }
    Ok(images)
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
        let (given, of_archives) = LINKERS.with(linker, |linker| (linker.images.clone(), linker.of_archives()))?;
        if given.is_empty() && of_archives.is_empty() {
            return Err(CudaError::InvalidValue);
        }
        let images = match checked(given, of_archives) {
            Ok(images) => images,
            Err(error) => {
                LINKERS.with(linker, |linker| linker.errors)?.write(&error_text(error));
                return Err(error);
            }
        };
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
