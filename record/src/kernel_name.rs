//! Names of kernels as people write them.

use crate::system::printable::printable_name;
use cpp_demangle::{DemangleOptions, Symbol};
use regex::Regex;
use std::collections::BTreeMap;

/// The name of a kernel as its source has it, without parameters: `scale<float>` of `_Z5scaleIfEvPT_i`.
pub fn readable_name(name: &str) -> String {
    let options = DemangleOptions::new().no_params().no_return_type();
    let symbol = Symbol::new(name).ok().filter(|_| name.starts_with("_Z"));
    let readable = symbol.and_then(|symbol| symbol.demangle_with_options(&options).ok());
    readable.unwrap_or_else(|| printable_name(name).into_owned())
}

/// The name of a kernel with its parameters, as profilers write it: `scale<float>(float*, int)`.
pub fn full_name(name: &str) -> String {
    let symbol = Symbol::new(name).ok().filter(|_| name.starts_with("_Z"));
    symbol
        .and_then(|symbol| symbol.demangle_with_options(&DemangleOptions::new().no_return_type()).ok())
        .unwrap_or_else(|| printable_name(name).into_owned())
}

/// The longest name that tables show as it is.
const LIMIT: usize = 60;
/// The longest name that is shown at all: longer ones lose their middle.
const LONGEST: usize = 140;
/// Letters of the end of a name that has lost its middle.
const KEPT_END: usize = 40;
/// Arguments of templates within each other, at most, that an abridged name shows.
const DEEPEST: usize = 3;
/// The same, where names would read alike otherwise.
const DEEPEST_APART: usize = 5;

/// The name of a kernel for a table: as [`readable_name`], and where that is long, abridged. Namespaces go, a lambda has the name of the
/// function that it is in, and of arguments of templates stay as many levels as there is room for:
/// `vectorized_elementwise_kernel<4, FillFunctor<float>, array<char*, 1ul>>`.
pub fn short_name(name: &str) -> String {
    let readable = readable_name(name);
    Abridged::of(&readable).map_or(readable, |abridged| abridged.text)
}

/// Short names of the kernels of one table, by their names. Those that [`short_name`] makes alike show more levels of their arguments:
/// all kernels of Kokkos are `cuda_parallel_launch_local_memory<ParallelFor<...>>` or few others.
pub fn short_names<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, String> {
    let names: BTreeMap<&str, String> = names.into_iter().map(|name| (name, readable_name(name))).collect();
    let mut abridged: Vec<(&str, Result<Abridged, &str>)> =
        names.iter().map(|(name, readable)| (*name, Abridged::of(readable).ok_or(&**readable))).collect();
    for _ in 0..DEEPEST_APART {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (_, abridged) in &abridged {
            if let Ok(Abridged { text, .. }) = abridged {
                *counts.entry(text.clone()).or_default() += 1;
            }
        }
        let is_alike = |it: &Abridged| it.depth < DEEPEST_APART && counts.get(&it.text).is_some_and(|count| *count > 1);
        let alike = abridged.iter_mut().filter_map(|(_, it)| it.as_mut().ok()).filter(|it| is_alike(it));
        alike.for_each(Abridged::deepen);
    }
    abridged.into_iter().map(|(name, it)| (name, it.map_or_else(str::to_owned, |abridged| abridged.text))).collect()
}

/// A long name, abridged.
struct Abridged {
    path: Path,
    /// How many levels of arguments it shows.
    depth: usize,
    text: String,
}

impl Abridged {
    /// A readable name with as many levels as there is room for; `None` if it is short.
    fn of(readable: &str) -> Option<Abridged> {
        if readable.chars().count() <= LIMIT {
            return None;
        }
        let path = NameReader { rest: readable }.path();
        let fits = |depth: &usize| path.render(*depth).chars().count() <= LIMIT;
        let depth = (0..=DEEPEST).rev().find(fits).unwrap_or(0);
        Some(Abridged { text: without_middle(path.render(depth)), path, depth })
    }

    fn deepen(&mut self) {
        self.depth += 1;
        self.text = without_middle(self.path.render(self.depth));
    }
}

/// A text of at most [`LONGEST`] letters: a name without scopes and templates, such as one that cannot be demangled, may have thousands.
fn without_middle(text: String) -> String {
    let letters = text.chars().count();
    if letters <= LONGEST {
        return text;
    }
    let start = text.chars().take(LONGEST - KEPT_END - 3);
    start.chain("...".chars()).chain(text.chars().skip(letters - KEPT_END)).collect()
}

/// A name with the scopes that it is in.
#[derive(Debug, Default)]
struct Path {
    components: Vec<Component>,
}

/// A part of a path: a namespace, a class, a function, a lambda.
#[derive(Debug, Default)]
struct Component {
    base: String,
    /// The arguments of a template, and the text behind them.
    arguments: Option<(Vec<Path>, String)>,
    /// Whether parameters follow.
    is_function: bool,
}

impl Component {
    fn is_lambda(&self) -> bool {
        self.base.starts_with('{')
    }

    fn push(&mut self, letter: char) {
        match &mut self.arguments {
            Some((_, after)) => after.push(letter),
            None => self.base.push(letter),
        }
    }
}

impl Path {
    fn render(&self, depth: usize) -> String {
        let Some(last) = self.components.last() else { return String::new() };
        let is_named = |it: &&Component| it.is_function && !it.is_lambda() && !it.base.starts_with("operator");
        let function = self.components.iter().find(is_named).filter(|_| last.is_lambda());
        let mut text = function.map_or(String::new(), |function| format!("{}::", function.base.trim()));
        text += last.base.trim();
        if let Some((arguments, after)) = &last.arguments {
            let shown: Vec<String> = match depth {
                0 => vec!["...".to_owned()],
                depth => arguments.iter().map(|argument| argument.render(depth - 1)).collect(),
            };
            text += &format!("<{}>{}", shown.join(", "), after.trim_end());
        }
        text
    }
}

/// Reads a demangled name.
struct NameReader<'a> {
    rest: &'a str,
}

impl NameReader<'_> {
    /// Reads up to a comma or bracket that ends an argument, or to the end.
    fn path(&mut self) -> Path {
        let mut path = Path::default();
        let mut component = Component::default();
        while let Some(letter) = self.rest.chars().next() {
            if matches!(letter, ',' | '>' | ')') {
                break;
            }
            if let Some(rest) = self.rest.strip_prefix("::") {
                self.rest = rest;
                path.components.push(std::mem::take(&mut component));
                continue;
            }
            self.rest = &self.rest[letter.len_utf8()..];
            match letter {
                '<' => component.arguments = Some((self.arguments(), String::new())),
                '(' => {
                    // The name of an anonymous namespace, or parameters.
                    component.is_function |= !self.rest.starts_with("anonymous namespace)");
                    self.skip_parameters();
                }
                '{' => {
                    component.base.push('{');
                    self.lambda(&mut component.base);
                }
                letter => component.push(letter),
            }
        }
        path.components.push(component);
        path
    }

    /// Reads arguments and the bracket behind them.
    fn arguments(&mut self) -> Vec<Path> {
        let mut arguments = Vec::new();
        loop {
            arguments.push(self.path());
            let Some(end) = self.rest.chars().next() else { return arguments };
            self.rest = self.rest[end.len_utf8()..].trim_start();
            if end != ',' {
                return arguments;
            }
        }
    }

    /// Leaves out the text before the bracket that closes parameters, and the bracket.
    fn skip_parameters(&mut self) {
        let mut open = 1;
        while let Some(letter) = self.rest.chars().next().filter(|_| open > 0) {
            self.rest = &self.rest[letter.len_utf8()..];
            match letter {
                '(' => open += 1,
                ')' => open -= 1,
                _ => {}
            }
        }
    }

    /// Reads a lambda without its parameters.
    fn lambda(&mut self, text: &mut String) {
        while let Some(letter) = self.rest.chars().next() {
            self.rest = &self.rest[letter.len_utf8()..];
            match letter {
                '(' => self.skip_parameters(),
                letter => text.push(letter),
            }
            if letter == '}' {
                return;
            }
        }
    }
}

/// Is the kernel called that, in the code or in its source?
pub fn is_named(regex: &Regex, kernel: &str) -> bool {
    regex.is_match(kernel) || regex.is_match(&readable_name(kernel))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_names_have_parameters() {
        assert_eq!(full_name("_Z9vectorAddPKfS0_Pfi"), "vectorAdd(float const*, float const*, float*, int)");
        assert_eq!(full_name("lud_internal"), "lud_internal");
    }

    /// Names of kernels of PyTorch 2.6, demangled.
    #[test]
    fn long_names_are_abridged() {
        let abridged = |name: &str| {
            let path = NameReader { rest: name }.path();
            (path.render(DEEPEST), path.render(0))
        };
        let check = |name: &str, deep: &str, shallow: &str| {
            assert_eq!(abridged(name), (deep.to_owned(), shallow.to_owned()), "{name}");
        };
        check(
            "at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >",
            "vectorized_elementwise_kernel<4, FillFunctor<float>, array<char*, 1ul>>",
            "vectorized_elementwise_kernel<...>",
        );
        check("at::native::(anonymous namespace)::write_indices<long>", "write_indices<long>", "write_indices<...>");
        check(
            "at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const\
             ::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul>, 4>",
            "unrolled_elementwise_kernel<direct_copy_kernel_cuda::{lambda#1}, array<char*, 2ul>, 4>",
            "unrolled_elementwise_kernel<...>",
        );
        check("cub::Policy<int, long>::Inner<float const*>::run", "run", "run");
        for broken in ["a<b", "a(b", "{lambda(", ">", "a<b, c<d>", ""] {
            let _ = abridged(broken);
        }
        assert_eq!(short_name("_Z5scaleIfEvPT_i"), "scale<float>");
        assert_eq!(short_name(&"name_".repeat(20)), "name_".repeat(20));
        let long = short_name(&format!("_Zbegin{}end", "name_".repeat(800)));
        assert_eq!(long.chars().count(), 140, "{long}");
        assert!(long.starts_with("_Zbeginname_") && long.contains("...") && long.ends_with("name_end"), "{long}");
    }

    /// Names of kernels of Kokkos, shortened.
    #[test]
    fn names_that_would_read_alike_show_more() {
        let kernel = |functor: &str| {
            format!(
                "void Kokkos::Impl::launch<Kokkos::ParallelFor<Test::{functor}<double, Kokkos::Device<Kokkos::Cuda, Kokkos::CudaSpace> > > >"
            )
        };
        let (add, multiply) = ("AddVectorsOfManyElementsWithACoefficient", "MultiplyVectorsOfManyElementsByANumber");
        let names = ["scale", &kernel(add), &kernel(multiply)];
        let short = short_names(names);
        assert_eq!(short["scale"], "scale");
        assert_eq!(short[names[1]], format!("launch<ParallelFor<{add}<...>>>"));
        assert_eq!(short[names[2]], format!("launch<ParallelFor<{multiply}<...>>>"));
        assert_eq!(short_name(names[1]), "launch<ParallelFor<...>>");
        // Where they differ at no level that is shown, they read alike.
        let deep = |name: &str| kernel(&format!("A<B<C<D<E<F<{name}>>>>>>, T"));
        let names = [deep("G"), deep("H")];
        let short = short_names(names.iter().map(String::as_str));
        assert_eq!(short[&*names[0]], short[&*names[1]]);
    }

    #[test]
    fn names_are_those_of_the_source() {
        for (name, readable) in [
            ("_Z9vectorAddPKfS0_Pfi", "vectorAdd"),
            ("_Z5scaleIfEvPT_i", "scale<float>"),
            ("_ZN3lud8diagonalEPfii", "lud::diagonal"),
            ("vectorAdd", "vectorAdd"),
            ("_Znot a name", "_Znot a name"),
        ] {
            assert_eq!(readable_name(name), readable, "{name}");
        }
    }
}
