//! The cubins that a file holds. Those for other architectures than the wanted ones are not looked at.

use balar_isa::fatbin::{self, Container, Entry, EntryKind};
use object::{Object as _, ObjectSection as _};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// The section of a program that holds its fatbins.
const FATBIN_SECTION: &str = ".nv_fatbin";

/// What holds cubins.
enum Holder<'a> {
    /// The file is one.
    Cubin(&'a [u8]),
    /// Fatbin containers.
    Containers(Vec<Container<'a>>),
}

/// The cubins of a file.
pub struct Images<'a> {
    holder: Holder<'a>,
    wanted: &'a dyn Fn(u32) -> bool,
}

/// A cubin of a file.
pub struct Image<'a> {
    /// Its number among all that the file holds, from 1 on.
    pub number: usize,
    /// What it is for, as its container says.
    pub architecture: u32,
    source: ImageSource<'a>,
}

enum ImageSource<'a> {
    Whole(&'a [u8]),
    Entry(&'a Entry<'a>),
}

impl<'a> Images<'a> {
    /// Those of a cubin, a fatbin, or a program or library, for the architectures that are wanted.
    ///
    /// # Errors
    ///
    /// The file is something else, or its containers are broken.
    pub fn of(bytes: &'a [u8], wanted: &'a dyn Fn(u32) -> bool) -> Result<Images<'a>, String> {
        if fatbin::cubin(bytes).is_some() {
            return Ok(Images { holder: Holder::Cubin(bytes), wanted });
        }
        let fatbins = if bytes.starts_with(&fatbin::MAGIC.to_le_bytes()) {
            bytes
        } else {
            let expected = "expected a cubin, a fatbin, or a program or library with device code";
            let program = object::File::parse(bytes).map_err(|_| expected.to_owned())?;
            let section = program.section_by_name(FATBIN_SECTION);
            let data = section.and_then(|section| section.data().ok());
            data.ok_or_else(|| format!("no section {FATBIN_SECTION}: {expected}"))?
        };
        let containers = fatbin::containers(fatbins).map_err(|error| error.to_string())?;
        Ok(Images { holder: Holder::Containers(containers), wanted })
    }

    /// Whether the file is a cubin itself.
    pub fn is_one(&self) -> bool {
        matches!(self.holder, Holder::Cubin(_))
    }

    /// The wanted ones.
    pub fn iter(&self) -> impl Iterator<Item = Image<'_>> {
        self.all().filter(|image| (self.wanted)(image.architecture))
    }

    /// The architectures of the others.
    pub fn others(&self) -> BTreeSet<u32> {
        self.all().map(|image| image.architecture).filter(|architecture| !(self.wanted)(*architecture)).collect()
    }

    fn all(&self) -> impl Iterator<Item = Image<'_>> {
        let (whole, containers) = match &self.holder {
            Holder::Cubin(bytes) => (Some(*bytes), &[][..]),
            Holder::Containers(containers) => (None, &containers[..]),
        };
        let entries = containers.iter().flat_map(|container| &container.entries);
        let entries = entries.filter(|entry| matches!(entry.kind, EntryKind::Elf));
        let whole = whole.map(|bytes| {
            let architecture = fatbin::cubin(bytes).map_or(0, |cubin| cubin.architecture);
            (architecture, ImageSource::Whole(bytes))
        });
        let all = whole.into_iter().chain(entries.map(|entry| (entry.architecture, ImageSource::Entry(entry))));
        all.enumerate().map(|(index, (architecture, source))| Image { number: index + 1, architecture, source })
    }
}

impl Image<'_> {
    /// Its bytes, decompressed.
    ///
    /// # Errors
    ///
    /// What is compressed is broken.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>, String> {
        match self.source {
            ImageSource::Whole(bytes) => Ok(Cow::Borrowed(bytes)),
            ImageSource::Entry(entry) => entry.data().map(Cow::Owned).map_err(|error| error.to_string()),
        }
    }

    /// What it is called in messages.
    pub fn name(&self) -> String {
        format!("cubin {} (sm_{})", self.number, self.architecture)
    }
}
