//! Names of kernels as people write them.

use cpp_demangle::{DemangleOptions, Symbol};

/// The name of a kernel as its source has it, without parameters: `scale<float>` of `_Z5scaleIfEvPT_i`.
pub fn readable_name(name: &str) -> String {
    let options = DemangleOptions::new().no_params().no_return_type();
    let symbol = Symbol::new(name).ok().filter(|_| name.starts_with("_Z"));
    symbol.and_then(|symbol| symbol.demangle_with_options(&options).ok()).unwrap_or_else(|| name.to_owned())
}

/// The name of a kernel with its parameters, as profilers write it: `scale<float>(float*, int)`.
pub fn full_name(name: &str) -> String {
    let symbol = Symbol::new(name).ok().filter(|_| name.starts_with("_Z"));
    symbol
        .and_then(|symbol| symbol.demangle_with_options(&DemangleOptions::new().no_return_type()).ok())
        .unwrap_or_else(|| name.to_owned())
}

/// The longest name that tables show as it is.
const LIMIT: usize = 60;
/// Arguments of templates within each other, at most, that an abridged name shows.
const DEEPEST: usize = 3;

/// The name of a kernel for a table: as [`readable_name`], and where that is long, abridged. Namespaces go, a lambda has the name of the
/// function that it is in, and of arguments of templates stay as many levels as there is room for:
/// `vectorized_elementwise_kernel<4, FillFunctor<float>, array<char*, 1ul>>`.
pub fn short_name(name: &str) -> String {
    let readable = readable_name(name);
    if readable.chars().count() <= LIMIT {
        return readable;
    }
    let path = Reader { rest: &readable }.path();
    let abridged = (0..=DEEPEST).rev().map(|depth| path.render(depth));
    abridged.reduce(|best, next| if best.chars().count() <= LIMIT { best } else { next }).unwrap_or(readable)
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
    /// The arguments of a template, and what follows them.
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
struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
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
                    // What an anonymous namespace is called, or parameters.
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

    /// Leaves out what comes before the bracket that closes parameters, and the bracket.
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
            let path = Reader { rest: name }.path();
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
