//! The code in a CUDA executable: the fatbin containers of its section `.nv_fatbin`.

/// The first bytes of an ELF file.
pub(super) const ELF_MAGIC: &[u8] = b"\x7fELF";
/// The first bytes of a fatbin container.
const CONTAINER_MAGIC: u32 = 0xba55_ed50;

/// The containers of a 64-bit ELF file.
pub(super) fn containers(file: &[u8]) -> Result<Vec<&[u8]>, String> {
    if !file.starts_with(ELF_MAGIC) || file.get(4..6) != Some(&[2, 1]) {
        return Err("expected an ELF file of 64 bits, little-endian".to_owned());
    }
    let cut = || "the ELF file is cut off".to_owned();
    let sections = number::<8>(file, 40).ok_or_else(cut)?;
    let size = number::<2>(file, 58).ok_or_else(cut)?;
    let count = number::<2>(file, 60).ok_or_else(cut)?;
    let names = number::<2>(file, 62).ok_or_else(cut)?;
    let section = |index: u64| -> Option<(u64, u64, u64)> {
        let at = sections.checked_add(index.checked_mul(size)?)?;
        Some((number::<4>(file, at)?, number::<8>(file, at.checked_add(24)?)?, number::<8>(file, at.checked_add(32)?)?))
    };
    let (_, names, _) = section(names).ok_or_else(cut)?;
    let mut found = Vec::new();
    for index in 0..count {
        let (name, offset, bytes) = section(index).ok_or_else(cut)?;
        let name = names.checked_add(name).and_then(|at| file.get(usize::try_from(at).ok()?..)).ok_or_else(cut)?;
        if name.starts_with(b".nv_fatbin\0") {
            let range = slice(file, offset, bytes).ok_or_else(cut)?;
            found.extend(split(range)?);
        }
    }
    if found.is_empty() {
        return Err("it has no section .nv_fatbin: no CUDA code".to_owned());
    }
    Ok(found)
}

/// Containers one after another; each begins at a multiple of 8 bytes.
fn split(mut section: &[u8]) -> Result<Vec<&[u8]>, String> {
    let mut found = Vec::new();
    loop {
        let padding = section.iter().position(|&byte| byte != 0).unwrap_or(section.len()) & !7;
        section = &section[padding..];
        if section.iter().all(|&byte| byte == 0) {
            return Ok(found);
        }
        let header = number::<4>(section, 0).zip(number::<2>(section, 6)).zip(number::<8>(section, 8));
        let container = header.and_then(|((magic, header), payload)| {
            let is_container = magic == u64::from(CONTAINER_MAGIC);
            is_container.then(|| slice(section, 0, header.checked_add(payload)?)).flatten()
        });
        let Some(container) = container.filter(|container| !container.is_empty()) else {
            return Err("expected a fatbin container in its section .nv_fatbin".to_owned());
        };
        found.push(container);
        section = &section[container.len()..];
    }
}

fn slice(file: &[u8], offset: u64, bytes: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    file.get(start..start.checked_add(usize::try_from(bytes).ok()?)?)
}

/// A little-endian number of `N` bytes.
fn number<const N: usize>(file: &[u8], offset: u64) -> Option<u64> {
    let bytes = slice(file, offset, N as u64)?;
    Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A fatbin container that holds `payload`.
    pub fn container(payload: &[u8]) -> Vec<u8> {
        let mut bytes = CONTAINER_MAGIC.to_le_bytes().to_vec();
        bytes.extend([1, 0, 16, 0]);
        bytes.extend((payload.len() as u64).to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    /// An ELF file with a section of this name.
    pub fn executable(name: &str, section: &[u8]) -> Vec<u8> {
        let names = format!("\0{name}\0.shstrtab\0");
        let mut file = vec![0; 64];
        file[..6].copy_from_slice(b"\x7fELF\x02\x01");
        let section_at = file.len();
        file.extend(section);
        let names_at = file.len();
        file.extend(names.bytes());
        let headers_at = file.len();
        for (name, offset, bytes) in
            [(0, 0, 0), (1, section_at, section.len()), (name.len() + 2, names_at, names.len())]
        {
            let mut header = [0; 64];
            header[..4].copy_from_slice(&(name as u32).to_le_bytes());
            header[24..32].copy_from_slice(&(offset as u64).to_le_bytes());
            header[32..40].copy_from_slice(&(bytes as u64).to_le_bytes());
            file.extend(header);
        }
        file[40..48].copy_from_slice(&(headers_at as u64).to_le_bytes());
        file[58..64].copy_from_slice(&[64, 0, 3, 0, 2, 0]);
        file
    }

    #[test]
    fn containers_are_found() {
        let (first, second) = (container(b"12345678"), container(b"abcdefgh12345678"));
        let section = [&first[..], &[0; 8], &second, &[0; 16]].concat();
        assert_eq!(containers(&executable(".nv_fatbin", &section)), Ok(vec![&first[..], &second]));
        let file = executable(".text", &section);
        assert!(containers(&file).expect_err("no code").contains("no section .nv_fatbin"));
        let file = executable(".nv_fatbin", b"something else..");
        assert!(containers(&file).expect_err("no container").contains("expected a fatbin container"));
    }

    #[test]
    fn damaged_files_are_errors() {
        let file = executable(".nv_fatbin", &container(b"12345678"));
        // The end of the last section's header says nothing that is read.
        for length in 0..file.len() - 24 {
            assert!(containers(&file[..length]).is_err(), "{length}");
        }
        for at in 0..file.len() {
            for value in [0, 1, 0x7f, 0xff] {
                let mut changed = file.clone();
                changed[at] = value;
                // Nothing but an answer is expected.
                let _ = containers(&changed);
            }
        }
    }
}
