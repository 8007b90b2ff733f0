//! Device code in object files and archives of the host, which programs link at run time.

use crate::session::code::image::CONTAINER;
use balar_host::CudaError;
use object::read::archive::ArchiveFile;
use object::{Architecture, Object as _, ObjectSection as _};

/// The sections of an object file of the host with device code, which is to be linked or was.
const OBJECT_SECTIONS: [&str; 2] = ["__nv_relfatbin", ".nv_fatbin"];
/// The only member of `libcudadevrt.a`.
const DEVICE_RUNTIME: &[u8] = b"cuda_device_runtime.o";
/// The functions of the device runtime by which the threads of a grid wait for each other; the first lines of a text are missing.
const COOPERATIVE_GROUPS: &str = include_str!("cooperative_groups.ptx");

/// The contents of an archive.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Archive {
    /// The device code of its members.
    pub images: Vec<Vec<u8>>,
    /// Whether it is the device runtime (`libcudadevrt.a`).
    pub is_device_runtime: bool,
}

/// The device code of an object file of the host.
///
/// # Errors
///
/// Where it is none, or has none.
pub fn of_object(data: &[u8]) -> Result<Vec<Vec<u8>>, CudaError> {
    let file = object::File::parse(data).map_err(|_| CudaError::InvalidKernelImage)?;
    let sections = file.sections().filter(|section| section.name().is_ok_and(|name| OBJECT_SECTIONS.contains(&name)));
    let images = sections.filter_map(|section| section.data().ok()).filter(|image| !image.is_empty());
    let images: Vec<Vec<u8>> = images.map(<[u8]>::to_vec).collect();
    if images.is_empty() { Err(CudaError::InvalidKernelImage) } else { Ok(images) }
}

/// The device code of an archive: its members that are cubins, fatbin containers, or object files with such code.
///
/// # Errors
///
/// Where it is no archive.
pub fn of_archive(data: &[u8]) -> Result<Archive, CudaError> {
    let broken = |_| CudaError::InvalidKernelImage;
    let mut archive = Archive::default();
    for member in ArchiveFile::parse(data).map_err(broken)?.members() {
        let member = member.map_err(broken)?;
        let content = member.data(data).map_err(broken)?;
        archive.is_device_runtime |= member.name() == DEVICE_RUNTIME;
        let is_container = content.starts_with(&CONTAINER.to_le_bytes());
        if is_container || is_cubin(content) {
            archive.images.push(content.to_vec());
        } else if let Ok(images) = of_object(content) {
            archive.images.extend(images);
        }
    }
    Ok(archive)
}

/// Is this an ELF file for a GPU?
fn is_cubin(data: &[u8]) -> bool {
    object::File::parse(data).is_ok_and(|file| file.architecture() == Architecture::Unknown)
}

/// The device runtime's functions of cooperative groups, as PTX for the target of this PTX.
pub fn cooperative_groups(beside: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(beside);
    let line = |directive: &str, default: &'static str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(directive));
        found.map_or_else(|| format!("{directive} {default}"), str::to_owned)
    };
    let (version, target) = (line(".version", "6.0"), line(".target", "sm_30"));
    format!("{version}\n{target}\n{COOPERATIVE_GROUPS}\0").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::write::Object;
    use object::{BinaryFormat, Endianness, SectionKind};

    /// An object file of the host with a section.
    fn file(section: &str, data: &[u8]) -> Vec<u8> {
        let mut file = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let section = file.add_section(Vec::new(), section.into(), SectionKind::ReadOnlyData);
        file.append_section_data(section, data, 8);
        file.write().expect("an object file")
    }

    /// An archive (`ar`(5) of System V): a line of 60 bytes before each member, which begins at an even offset. The first one has the names.
    fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
        let (mut names, mut bytes) = (String::new(), b"!<arch>\n".to_vec());
        let mut add = |name: String, content: &[u8]| {
            bytes.extend(format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, content.len()).bytes());
            bytes.extend(content);
            bytes.extend((content.len() % 2 == 1).then_some(b'\n'));
        };
        let places = members.iter().map(|(name, _)| {
            let place = format!("/{}", names.len());
            names.push_str(&format!("{name}/\n"));
            place
        });
        let places: Vec<String> = places.collect();
        add("//".to_owned(), names.as_bytes());
        places.into_iter().zip(members).for_each(|(place, (_, content))| add(place, content));
        bytes
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

    #[test]
    fn members_of_archives_are_read_one_by_one() {
        let container = [&CONTAINER.to_le_bytes()[..], b"rest of it"].concat();
        let object = file(OBJECT_SECTIONS[0], b"relocatable");
        let host = file(".text", b"code of the host");
        let members = [("a.fatbin", &container[..]), ("b.o", &object), ("c.o", &host), ("readme", b"text")];
        let expected = Archive { images: vec![container.clone(), b"relocatable".to_vec()], is_device_runtime: false };
        assert_eq!(of_archive(&archive(&members)), Ok(expected));
        // Nothing that a GPU runs is no mistake: as a linker, the driver takes what it needs.
        assert_eq!(of_archive(&archive(&[])), Ok(Archive::default()));
        assert_eq!(of_archive(b"text"), Err(CudaError::InvalidKernelImage));
        let devrt = of_archive(&archive(&[("cuda_device_runtime.o", &object)])).expect("an archive");
        assert!(devrt.is_device_runtime);
    }

    #[test]
    fn cooperative_groups_are_for_the_target_of_the_program() {
        let text = |beside: &[u8]| String::from_utf8(cooperative_groups(beside)).expect("text");
        let own = text(b"//\n.version 8.3\n.target sm_70\n.address_size 64\n\0");
        assert!(own.starts_with(".version 8.3\n.target sm_70\n.address_size 64\n") && own.ends_with("}\n\0"));
        assert!(text(b"").starts_with(".version 6.0\n.target sm_30\n"));
    }
}
