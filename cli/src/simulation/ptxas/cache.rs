//! Cubins that ptxas has made, kept from run to run: by what they were made of, so that nothing in the cache becomes wrong. The folder may
//! be deleted at any time, and several processes may use it.

use balar_actors::simulation::CubinForm;
use balar_isa::cubin::Cubin;
use std::io::Write;
use std::path::{Path, PathBuf};
use xxhash_rust::xxh3::Xxh3;

/// Longer files are no cubins of this cache.
const MAXIMUM_BYTES: u64 = 1 << 30;

/// What identifies a cubin: the text that ptxas reads, the architecture, the form, and the version of ptxas.
pub fn key(text: &str, architecture: u32, form: CubinForm, version: &str) -> u128 {
    let mut hash = Xxh3::new();
    let form = match form {
        CubinForm::Linked => "",
        CubinForm::Relocatable => " -c",
    };
    hash.update(format!("ptxas {version} -arch=sm_{architecture}{form}\0").as_bytes());
    hash.update(text.as_bytes());
    hash.digest128()
}

/// Whether these bytes are a whole cubin for the architecture, in a form.
pub fn is_for(bytes: &[u8], architecture: u32, form: CubinForm) -> bool {
    let is_relocatable = form == CubinForm::Relocatable;
    Cubin::read(bytes).is_ok_and(|cubin| cubin.architecture == architecture && cubin.is_relocatable == is_relocatable)
}

/// A folder of cubins.
#[derive(Debug)]
pub struct CubinCache {
    folder: PathBuf,
}

impl CubinCache {
    /// The cache of the user: `$XDG_CACHE_HOME/balar-actors/cubins`, or in `~/.cache`; `None` where neither is known.
    pub fn of_user() -> Option<CubinCache> {
        let absolute = |variable| std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let folder = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(CubinCache::new(&folder.join("balar-actors")))
    }

    /// The cache in a folder, which is made when something is written.
    pub fn new(folder: &Path) -> CubinCache {
        CubinCache { folder: folder.join("cubins") }
    }

    fn file(&self, key: u128, architecture: u32) -> PathBuf {
        self.folder.join(format!("{key:032x}.sm_{architecture}.cubin"))
    }

    /// A cubin that is there, and whole.
    pub fn read(&self, key: u128, architecture: u32, form: CubinForm) -> Option<Vec<u8>> {
        let path = self.file(key, architecture);
        let metadata = path.metadata().ok()?;
        if !metadata.is_file() || metadata.len() > MAXIMUM_BYTES {
            return None;
        }
        std::fs::read(path).ok().filter(|bytes| is_for(bytes, architecture, form))
    }

    /// Keeps a cubin. Where that cannot be done, it is made again in the next run.
    pub fn write(&self, key: u128, architecture: u32, cubin: &[u8]) {
        let written = std::fs::create_dir_all(&self.folder).and_then(|()| {
            let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
            file.write_all(cubin)?;
            file.persist(self.file(key, architecture))?;
            Ok(())
        });
        if let Err(error) = written {
            tracing::debug!(%error, folder = %self.folder.display(), "a cubin is not kept");
        }
    }
}
