//! Which files of a crate import each other in circles.

use crate::modules::{Segments, SourceTree};
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// Re-exports are followed no further than this.
const FURTHEST: usize = 32;

/// What files of a crate take from each other: (who imports, from whom) and the names.
pub type Imports = BTreeMap<(usize, usize), BTreeSet<String>>;

/// What a name is wanted for: modules and functions may have the same.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    /// A further name is looked for in it.
    Holder,
    /// Code uses it.
    Name,
    /// A macro is called.
    Macro,
    /// All that has the name is brought into scope.
    Import,
}

/// What a path leads to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Module(usize),
    /// Something that this file defines.
    Item(usize),
}

impl SourceTree {
    /// What its files import from each other.
    ///
    /// A name counts where its item is defined: neither `mod x;` nor `pub use` of something that the file does not use itself ties a
    /// file to another. A module that is imported counts by what is taken out of it. Calls of methods do not count. A file that lies
    /// below the one of a type and goes on with its `impl` is part of that type: the type's name does not count there.
    pub fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (at, module) in self.modules.iter().enumerate() {
            let continued: BTreeSet<_> = module.continued.iter().filter_map(|path| self.continued(at, path)).collect();
            let imported = module.imports.iter().map(|path| (path, Wanted::Import));
            let used = module.paths.iter().map(|path| (path, Wanted::Name));
            let called = module.calls.iter().map(|path| (path, Wanted::Macro));
            for (path, wanted) in imported.chain(used).chain(called) {
                let Some(Place::Item(file)) = self.place(at, path, wanted, FURTHEST) else { continue };
                let is_continued = path.iter().any(|name| continued.contains(&(file, name.clone())));
                if file != module.file && !is_continued {
                    imports.entry((module.file, file)).or_default().insert(path.join("::"));
                }
            }
        }
        imports
    }

    /// The file and the name of a type that the `impl` of a module goes on with, where that file is of a module around it.
    fn continued(&self, at: usize, path: &Segments) -> Option<(usize, String)> {
        let Place::Item(file) = self.place(at, path, Wanted::Name, FURTHEST)? else { return None };
        let is_around = self.around(at).any(|module| self.modules[module].file == file);
        is_around.then(|| Some((file, path.last()?.clone())))?
    }

    /// What `path` leads to from a module; `None` where that is outside the crate, or cannot be told.
    fn place(&self, from: usize, path: &[String], wanted: Wanted, left: usize) -> Option<Place> {
        let (first, mut rest) = path.split_first()?;
        let wanted_at = |rest: &[String]| if rest.is_empty() { wanted } else { Wanted::Holder };
        let mut place = match first.as_str() {
            "crate" => Place::Module(self.root_of(from)),
            "self" => Place::Module(from),
            "super" => Place::Module(self.modules[from].parent?),
            own if own == self.name => Place::Module(0),
            name => {
                let wanted = wanted_at(rest);
                let textual = || (wanted == Wanted::Macro).then(|| self.textual_macro(from, name))?;
                self.named(from, name, wanted, left).or_else(textual)?
            }
        };
        while let (Place::Module(module), Some((name, further))) = (place, rest.split_first()) {
            place = match name.as_str() {
                "super" => Place::Module(self.modules[module].parent?),
                "self" => place,
                name => self.named(module, name, wanted_at(further), left).or_else(|| self.made(module, name))?,
            };
            rest = further;
        }
        Some(place)
    }

    /// What a name stands for in a module.
    fn named(&self, at: usize, name: &str, wanted: Wanted, left: usize) -> Option<Place> {
        let left = left.checked_sub(1)?;
        let module = &self.modules[at];
        let child = || module.children.get(name).map(|&child| Place::Module(child));
        let item = || module.items.contains(name).then_some(Place::Item(module.file));
        let own = match wanted {
            Wanted::Holder => child().or_else(item),
            Wanted::Name => item().or_else(child),
            Wanted::Macro => self.macro_in(at, name),
            Wanted::Import => item().or_else(child).or_else(|| self.macro_in(at, name)),
        };
        own.or_else(|| {
            let path = module.aliases.get(name)?;
            // `use name;` brings in another crate, not itself.
            (path.first().is_some_and(|first| first != name)).then(|| self.place(at, path, wanted, left))?
        })
        .or_else(|| {
            module.globs.iter().find_map(|path| match self.place(at, path, Wanted::Holder, left)? {
                Place::Module(of) if of != at => self.named(of, name, wanted, left),
                _ => None,
            })
        })
    }

    /// An item that a macro in a module probably defines.
    fn made(&self, at: usize, name: &str) -> Option<Place> {
        let module = &self.modules[at];
        module.words_of_macros.contains(name).then_some(Place::Item(module.file))
    }

    /// A macro that a module defines; those that are exported lie in the root.
    fn macro_in(&self, at: usize, name: &str) -> Option<Place> {
        let modules = self.macros.get(name)?;
        let in_root = self.modules[at].parent.is_none() && self.exported.contains(name);
        let of = if in_root { modules.first() } else { modules.iter().find(|module| **module == at) };
        of.map(|module| Place::Item(self.modules[*module].file))
    }

    /// A macro that stands before its call in the text of the crate: in a module around it, or in the only one that has such a macro.
    fn textual_macro(&self, at: usize, name: &str) -> Option<Place> {
        let modules = self.macros.get(name)?;
        let around = self.around(at).find(|at| modules.contains(at));
        let only = || (modules.len() == 1).then(|| modules[0]);
        around.or_else(only).map(|module| Place::Item(self.modules[module].file))
    }

    /// A module, and those around it.
    fn around(&self, module: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(module), |at| self.modules[*at].parent)
    }

    fn root_of(&self, module: usize) -> usize {
        self.around(module).last().unwrap_or(module)
    }

    /// The circles of more than `most` files, each with what ties its files, in words.
    pub fn circles(&self, most: usize) -> Vec<String> {
        let imports = self.imports();
        let graph: DiGraphMap<usize, ()> = imports.keys().copied().collect();
        let long = tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > most);
        long.map(|circle| self.tell(&circle, &imports)).collect()
    }

    fn tell(&self, circle: &[usize], imports: &Imports) -> String {
        let mut told = format!("{}: {} files import each other\n", self.name, circle.len());
        for ((from, to), names) in imports.iter().filter(|((from, to), _)| circle.contains(from) && circle.contains(to))
        {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let _ = writeln!(
                told,
                "  {} -> {}: {}",
                self.files[*from].display(),
                self.files[*to].display(),
                names.join(", ")
            );
        }
        told
    }
}

/// The circles of more than `most` files of the crate in `folder`.
pub fn circles_of(folder: &Path, most: usize) -> Vec<String> {
    SourceTree::read(folder).circles(most)
}
