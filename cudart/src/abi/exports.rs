//! The exports of NVIDIA's libraries: the names that programs link against.

/// The function behind the names of the runtime libraries and the driver library that have no implementation: it says so.
pub const UNIMPLEMENTED: &str = "balar_unimplemented";

/// A shared library that CUDA programs load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Library {
    /// The name in the program's list of needed libraries, and of the file.
    pub soname: &'static str,
    /// The end of the names of implementations for this library alone ("_12"); the driver library has none.
    pub suffix: &'static str,
    /// Whether every symbol has the library's name as its version.
    pub versioned: bool,
    /// The major version of CUDA that a runtime library is of.
    pub major: Option<u32>,
    /// Where its names lead that have no implementation.
    pub unimplemented: &'static str,
    table: &'static str,
}

/// The runtime libraries and the driver library that programs find.
pub const LIBRARIES: [Library; 4] = [
    Library {
        soname: "libcudart.so.11.0",
        suffix: "_11",
        versioned: true,
        major: Some(11),
        unimplemented: UNIMPLEMENTED,
        table: include_str!("../../exports/libcudart.so.11.0.txt"),
    },
    Library {
        soname: "libcudart.so.12",
        suffix: "_12",
        versioned: true,
        major: Some(12),
        unimplemented: UNIMPLEMENTED,
        table: include_str!("../../exports/libcudart.so.12.txt"),
    },
    Library {
        soname: "libcudart.so.13",
        suffix: "_13",
        versioned: true,
        major: Some(13),
        unimplemented: UNIMPLEMENTED,
        table: include_str!("../../exports/libcudart.so.13.txt"),
    },
    DRIVER,
];

/// The driver library. Its names end in the version that a header maps the plain name to: `cuMemAlloc_v2`.
pub const DRIVER: Library = Library {
    soname: "libcuda.so.1",
    suffix: "",
    versioned: false,
    major: None,
    unimplemented: UNIMPLEMENTED,
    table: include_str!("../../exports/libcuda.so.1.txt"),
};

/// Functions of NVRTC that programs find in a library of the simulator's before NVRTC itself.
pub const NVRTC: Library = Library {
    soname: "libbalar_nvrtc.so",
    suffix: "",
    versioned: false,
    major: None,
    unimplemented: UNIMPLEMENTED,
    table: "nvrtcGetCUBIN\nnvrtcGetCUBINSize\n",
};

/// Functions of the C library that Python programs find before its own: they say that there is a GPU.
pub const DEVICE_FILES: Library = Library {
    soname: "libbalar_device_files.so",
    suffix: "",
    versioned: false,
    major: None,
    unimplemented: UNIMPLEMENTED,
    table: "__xstat\n__xstat64\naccess\nfstatat\nfstatat64\nstat\nstat64\n",
};

/// The profiling libraries.
pub const PROFILING: [Library; 3] = [
    Library {
        soname: "libcupti.so.11.8",
        suffix: "_11",
        versioned: true,
        major: None,
        unimplemented: "balar_cupti_not_supported",
        table: include_str!("../../exports/libcupti.so.11.8.txt"),
    },
    Library {
        soname: "libcupti.so.12",
        suffix: "_12",
        versioned: true,
        major: None,
        unimplemented: "balar_cupti_not_supported",
        table: include_str!("../../exports/libcupti.so.12.txt"),
    },
    Library {
        soname: "libcupti.so.13",
        suffix: "_13",
        versioned: true,
        major: None,
        unimplemented: "balar_cupti_not_supported",
        table: include_str!("../../exports/libcupti.so.13.txt"),
    },
];

/// The management library.
pub const MANAGEMENT: Library = Library {
    soname: "libnvidia-ml.so.1",
    suffix: "",
    versioned: false,
    major: None,
    unimplemented: "balar_nvml_not_supported",
    table: include_str!("../../exports/libnvidia-ml.so.1.txt"),
};

impl Library {
    /// Is it the driver library?
    pub fn is_driver(&self) -> bool {
        self.soname == DRIVER.soname
    }

    /// The names of the functions that the library exports, in the order of their bytes.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        lines(self.table).filter_map(|line| line.split(' ').next())
    }
}

/// A function of the driver library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DriverFunction {
    /// The exported name: `cuMemAlloc_v2`.
    pub symbol: &'static str,
    /// The name that `cuGetProcAddress` knows it by: `cuMemAlloc`.
    pub name: &'static str,
    /// The version of CUDA (1000 * major + 10 * minor) from which on that name means this function.
    pub since: u32,
}

impl DriverFunction {
    /// Whether its default stream is that of the calling thread.
    pub fn of_threads(&self) -> bool {
        self.symbol.ends_with("_ptsz") || self.symbol.ends_with("_ptds")
    }
}

/// The functions of the driver library.
pub fn driver_functions() -> impl Iterator<Item = DriverFunction> {
    lines(DRIVER.table).filter_map(|line| {
        let mut words = line.split(' ');
        Some(DriverFunction { symbol: words.next()?, name: words.next()?, since: words.next()?.parse().ok()? })
    })
}

/// Those that a driver of this version of CUDA (1000 * major + 10 * minor) has.
pub fn driver_functions_until(version: u32) -> impl Iterator<Item = DriverFunction> {
    driver_functions().filter(move |function| function.since <= version)
}

fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|line| !line.starts_with('#') && !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of functions of the libraries of CUDA 11.8, 12.9 and 13.5, by `nm`.
    #[test]
    fn the_runtime_libraries_export_as_many_functions_as_the_real_ones() {
        let counts: Vec<usize> = LIBRARIES[..3].iter().map(|library| library.names().count()).collect();
        assert_eq!(counts, [395, 435, 458]);
    }

    #[test]
    fn names_are_sorted_and_unique() {
        for library in LIBRARIES {
            let names: Vec<_> = library.names().collect();
            assert!(names.is_sorted_by(|a, b| a < b), "{}", library.soname);
        }
    }

    #[test]
    fn every_line_of_the_driver_table_is_a_function() {
        assert_eq!(driver_functions().count(), DRIVER.names().count());
        let allocate: Vec<_> = driver_functions().filter(|function| function.name == "cuMemAlloc").collect();
        let versions: Vec<_> = allocate.iter().map(|function| (function.symbol, function.since)).collect();
        assert_eq!(versions, [("cuMemAlloc", 2000), ("cuMemAlloc_v2", 3020)]);
    }
}
