//! The modules of a crate as its source files declare them, with the names that each brings into being or into scope.

use proc_macro2::{Spacing, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ImplItem, Item, ItemImpl, ItemMacro, ItemMod, ItemUse, Lit, Macro, Meta, Stmt, Token, Type,
    UseTree, Visibility,
};

/// A path as code has it: `crate::a::b`, segment by segment.
pub type Segments = Vec<String>;

/// A module. The root of a crate, or of one of its programs, is one, too.
#[derive(Debug, Default)]
pub struct Module {
    /// The file that it stands in, among those of its crate.
    pub file: usize,
    /// The module around it; `None` of a root.
    pub parent: Option<usize>,
    /// The modules in it, by their names.
    pub children: BTreeMap<String, usize>,
    /// The items that it defines.
    pub items: BTreeSet<String>,
    /// The words in calls of macros that stand in place of items: some of them name items that the macro defines.
    pub words_of_macros: BTreeSet<String>,
    /// Names that `use` brings into scope, and what each stands for.
    pub aliases: BTreeMap<String, Segments>,
    /// Of what all names are brought into scope: `use a::*`.
    pub globs: Vec<Segments>,
    /// What it imports for its own code: `use` without `pub`.
    pub imports: Vec<Segments>,
    /// The paths in its code.
    pub paths: BTreeSet<Segments>,
    /// The paths of macros that it calls.
    pub calls: BTreeSet<Segments>,
    /// The types that it has `impl TYPE` of, without a trait.
    pub continued: BTreeSet<Segments>,
}

/// A crate's source as far as it is compiled without `cfg(test)`.
#[derive(Debug, Default)]
pub struct SourceTree {
    /// The names by which its own code may call it.
    pub name: String,
    /// Its files, relative to the crate's folder.
    pub files: Vec<PathBuf>,
    /// Its modules; those of a file follow the one that declares it.
    pub modules: Vec<Module>,
    /// The macros that it defines by `macro_rules!`, and the modules that define one of that name.
    pub macros: BTreeMap<String, Vec<usize>>,
    /// Those of them that are exported: they lie in the root.
    pub exported: BTreeSet<String>,
    folder: PathBuf,
}

impl SourceTree {
    /// Reads the crate in `folder`, from its library and its programs.
    pub fn read(folder: &Path) -> SourceTree {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("a crate has a manifest");
        let value = |line: &str, key: &str| {
            let (name, value) = line.split_once('=')?;
            (name.trim() == key).then(|| value.trim().trim_matches('"').to_owned())
        };
        let name = manifest.lines().find_map(|line| value(line, "name")).expect("a crate has a name").replace('-', "_");
        let usual = ["src/lib.rs", "src/main.rs"].map(str::to_owned).into_iter();
        let told = manifest.lines().filter_map(|line| value(line, "path"));
        let roots: BTreeSet<String> =
            usual.chain(told).filter(|path| path.starts_with("src/") && folder.join(path).is_file()).collect();
        let mut tree = SourceTree { name, folder: folder.to_owned(), ..SourceTree::default() };
        for root in roots {
            let place = folder.join(&root);
            tree.read_file(&place, place.parent().expect("a file lies in a folder").to_owned(), None);
        }
        tree
    }

    /// Reads a file that is the module `module`, or a root; the files of its own modules lie in `folder`.
    fn read_file(&mut self, file: &Path, folder: PathBuf, module: Option<usize>) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        if is_of_tests(&parsed.attrs) {
            return;
        }
        self.files.push(file.strip_prefix(&self.folder).unwrap_or(file).to_owned());
        let file = self.files.len() - 1;
        let module = module.unwrap_or_else(|| self.add(Module::default()));
        self.modules[module].file = file;
        Reader { tree: self, module, folder }.visit_file(&parsed);
    }

    fn add(&mut self, module: Module) -> usize {
        self.modules.push(module);
        self.modules.len() - 1
    }
}

/// Takes in what one module holds.
struct Reader<'a> {
    tree: &'a mut SourceTree,
    module: usize,
    /// Where the files of its modules lie.
    folder: PathBuf,
}

impl Reader<'_> {
    fn here(&mut self) -> &mut Module {
        &mut self.tree.modules[self.module]
    }

    fn read_module(&mut self, item: &ItemMod) {
        let name = name_of(&item.ident);
        let inner = self.folder.join(&name);
        let child = Module { file: self.here().file, parent: Some(self.module), ..Module::default() };
        let child = self.tree.add(child);
        if let Some((_, items)) = &item.content {
            self.here().children.insert(name, child);
            let mut reader = Reader { tree: self.tree, module: child, folder: inner };
            items.iter().for_each(|item| reader.visit_item(item));
            return;
        }
        let told = item.attrs.iter().find_map(told_path).map(|path| (self.folder.join(path), self.folder.clone()));
        let beside = self.folder.join(format!("{name}.rs"));
        let usual = if beside.is_file() { (beside, inner) } else { (inner.join("mod.rs"), inner) };
        let (file, folder) = told.unwrap_or(usual);
        self.here().children.insert(name, child);
        self.tree.read_file(&file, folder, Some(child));
    }

    fn read_use(&mut self, prefix: &Segments, tree: &UseTree, public: bool) {
        let below = |name: String| prefix.iter().cloned().chain([name]).collect::<Segments>();
        let (path, alias) = match tree {
            UseTree::Path(path) => return self.read_use(&below(name_of(&path.ident)), &path.tree, public),
            UseTree::Group(group) => return group.items.iter().for_each(|tree| self.read_use(prefix, tree, public)),
            UseTree::Glob(_) => return self.here().globs.push(prefix.clone()),
            UseTree::Name(name) if name.ident == "self" => (prefix.clone(), prefix.last().cloned().unwrap_or_default()),
            UseTree::Name(name) => (below(name_of(&name.ident)), name_of(&name.ident)),
            UseTree::Rename(rename) if rename.ident == "self" => (prefix.clone(), name_of(&rename.rename)),
            UseTree::Rename(rename) => (below(name_of(&rename.ident)), name_of(&rename.rename)),
        };
        let here = self.here();
        if !public {
            here.imports.push(path.clone());
        }
        if alias != "_" {
            here.aliases.insert(alias, path);
        }
    }

    /// Takes in the paths of a macro's call, or of what a macro is defined as: of the latter, those from the root of the crate alone.
    fn read_tokens(&mut self, tokens: TokenStream, is_definition: bool) {
        let mut path = Segments::new();
        let mut before = [' '; 2];
        for token in tokens {
            let ends = match &token {
                TokenTree::Ident(name) => {
                    let follows = before == [':', ':'];
                    if !follows {
                        self.keep(std::mem::take(&mut path), is_definition, false);
                    }
                    // A name behind a point is that of a field or method; one behind a bracket is not followed.
                    let is_member = before[1] == '.' && before[0] != '.';
                    if !is_member && (!follows || !path.is_empty()) {
                        path.push(name_of(name));
                    }
                    before = [' '; 2];
                    false
                }
                TokenTree::Punct(punct) => {
                    before = [before[1], punct.as_char()];
                    punct.as_char() != ':' || (before[0] != ':' && punct.spacing() == Spacing::Alone)
                }
                TokenTree::Group(_) | TokenTree::Literal(_) => {
                    before = [' '; 2];
                    true
                }
            };
            if ends {
                let is_call = before[1] == '!';
                self.keep(std::mem::take(&mut path), is_definition, is_call);
            }
            if let TokenTree::Group(group) = token {
                self.read_tokens(group.stream(), is_definition);
            }
        }
        self.keep(path, is_definition, false);
    }

    fn keep(&mut self, path: Segments, is_definition: bool, is_call: bool) {
        let wanted = path.first().is_some_and(|first| !is_definition || first == "crate");
        if wanted {
            let here = self.here();
            if is_call { &mut here.calls } else { &mut here.paths }.insert(path);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_item(&mut self, item: &'ast Item) {
        if is_of_tests(attributes_of(item)) {
            return;
        }
        if let Some(name) = defined_name(item) {
            self.here().items.insert(name);
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes: &[Attribute] = match item {
            ImplItem::Fn(function) => &function.attrs,
            ImplItem::Const(constant) => &constant.attrs,
            _ => &[],
        };
        if !is_of_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        let attributes: &[Attribute] = match statement {
            Stmt::Local(local) => &local.attrs,
            Stmt::Expr(Expr::Block(block), _) => &block.attrs,
            Stmt::Macro(call) => &call.attrs,
            _ => &[],
        };
        if !is_of_tests(attributes) {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        self.read_module(item);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if item.leading_colon.is_none() {
            self.read_use(&Segments::new(), &item.tree, !matches!(item.vis, Visibility::Inherited));
        }
    }

    fn visit_item_macro(&mut self, item: &'ast ItemMacro) {
        let Some(name) = &item.ident else {
            words_of(item.mac.tokens.clone(), &mut self.here().words_of_macros);
            return self.visit_macro(&item.mac);
        };
        let name = name_of(name);
        self.tree.macros.entry(name.clone()).or_default().push(self.module);
        if item.attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) {
            self.tree.exported.insert(name);
        }
        self.read_tokens(item.mac.tokens.clone(), true);
    }

    fn visit_macro(&mut self, call: &'ast Macro) {
        self.keep(segments_of(&call.path), false, true);
        self.read_tokens(call.tokens.clone(), false);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.keep(segments_of(path), false, false);
        visit::visit_path(self, path);
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if let (None, Type::Path(of)) = (&item.trait_, &*item.self_ty) {
            self.here().continued.insert(segments_of(&of.path));
        }
        visit::visit_item_impl(self, item);
    }
}

/// The names of a path; none of one that begins with another crate.
fn segments_of(path: &syn::Path) -> Segments {
    match path.leading_colon {
        Some(_) => Segments::new(),
        None => path.segments.iter().map(|segment| name_of(&segment.ident)).collect(),
    }
}

fn name_of(name: &proc_macro2::Ident) -> String {
    name.to_string().trim_start_matches("r#").to_owned()
}

fn words_of(tokens: TokenStream, words: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Ident(name) => drop(words.insert(name_of(&name))),
            TokenTree::Group(group) => words_of(group.stream(), words),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// What `#[path = "..."]` says.
fn told_path(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(literal) = &pair.value else { return None };
    match &literal.lit {
        Lit::Str(text) if pair.path.is_ident("path") => Some(text.value()),
        _ => None,
    }
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// The name of an item that can be imported. Modules and macros are kept by themselves.
fn defined_name(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name_of(name))
}

/// Whether something is compiled for tests alone.
fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => list.parse_args().is_ok_and(|meta| needs_test(&meta)),
        _ => false,
    })
}

fn needs_test(condition: &Meta) -> bool {
    let parts = |list: &syn::MetaList| {
        list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).into_iter().flatten().collect::<Vec<_>>()
    };
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => parts(list).iter().any(needs_test),
        Meta::List(list) if list.path.is_ident("any") => {
            let parts = parts(list);
            !parts.is_empty() && parts.iter().all(needs_test)
        }
        _ => false,
    }
}
