//! Lines of a Balar trace.
//!
//! `kind ":" key ":" value ("," key ":" value)*`. Values are not quoted, and hold commas and colons themselves (the name of a
//! template's kernel): a parameter begins where, at the start or after a comma, a word is followed by one colon.

use std::ops::Range;

/// A mistake in a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Where in the line, bytes.
    pub at: Range<usize>,
    /// The mistake, and the expected text.
    pub text: String,
}

/// A line that was understood.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Line {
    Allocate {
        pointer: String,
        bytes: u64,
    },
    /// `from` says whether the copy is to the host.
    Copy {
        to_host: bool,
        pointer: Place,
        bytes: u64,
        file: String,
    },
    Launch(Box<LaunchLine>),
    Free {
        pointer: String,
        at: Range<usize>,
    },
}

/// A device address: an allocation's name, and an offset where one is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub name: String,
    pub offset: u64,
    pub at: Range<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct LaunchLine {
    pub kernel: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub arguments: Vec<Argument>,
    /// Where the kernel's name is.
    pub at: Range<usize>,
    /// Where the arguments are.
    pub arguments_at: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Argument {
    /// The value as it is written.
    pub text: String,
    /// Bytes of the parameter.
    pub bytes: u32,
    pub at: Range<usize>,
}

/// Reads a line; `None` of an empty one.
pub(super) fn parse(line: &str) -> Result<Option<Line>, Problem> {
    if line.trim().is_empty() {
        return Ok(None);
    }
    let all = 0..line.len();
    let Some(colon) = line.find(':') else {
        return Err(problem(all, "expected `kind: key: value, ...`"));
    };
    let kind = &line[..colon];
    let parameters = Parameters::read(line, colon + 1)?;
    let line = if kind.contains("memalloc") {
        Line::Allocate { pointer: parameters.text("dptr")?.to_owned(), bytes: parameters.number("size")? }
    } else if kind.contains("memcpyH2D") || kind.contains("memcpyD2H") {
        Line::Copy {
            to_host: kind.contains("memcpyD2H"),
            pointer: place(parameters.text("device_ptr")?, parameters.at("device_ptr")?)?,
            bytes: parameters.number("size")?,
            file: parameters.text("data_file")?.to_owned(),
        }
    } else if kind.contains("kernel launch") {
        Line::Launch(Box::new(launch(&parameters)?))
    } else if kind.contains("free") {
        Line::Free { pointer: parameters.text("dptr")?.to_owned(), at: parameters.at("dptr")? }
    } else {
        let text = format!(
            "an unknown kind of line, `{}`; expected memalloc, memcpyH2D, memcpyD2H, kernel launch or free",
            kind.trim()
        );
        return Err(Problem { at: 0..colon, text });
    };
    Ok(Some(line))
}

fn problem(at: Range<usize>, text: &str) -> Problem {
    Problem { at, text: text.to_owned() }
}

/// The parameters of a line: key and value with their places.
struct Parameters<'a> {
    line: &'a str,
    given: Vec<(Range<usize>, Range<usize>)>,
}

impl<'a> Parameters<'a> {
    fn read(line: &'a str, start: usize) -> Result<Parameters<'a>, Problem> {
        let mut given: Vec<(Range<usize>, Range<usize>)> = Vec::new();
        let mut from = start;
        loop {
            let begins = std::iter::once(from).chain(line[from..].match_indices(',').map(|(at, _)| from + at + 1));
            let next = begins
                .filter(|&begin| begin == start || begin > from)
                .find_map(|begin| Some((begin, key_at(line, begin)?)));
            let ends = next.as_ref().map_or(line.len(), |(begin, _)| if *begin == start { start } else { begin - 1 });
            match given.last_mut() {
                Some((_, value)) => *value = trimmed(line, value.start..ends),
                None if !line[start..ends].trim().is_empty() => {
                    return Err(problem(trimmed(line, start..ends), "expected `key: value`"));
                }
                None => {}
            }
            let Some((_, key)) = next else { break };
            if let Some((first, _)) = given.iter().find(|(first, _)| line[first.clone()] == line[key.clone()]) {
                let text = format!("`{}` is given twice", &line[first.clone()]);
                return Err(Problem { at: key, text });
            }
            from = key.end;
            // Behind the colon, which may follow blanks.
            let value = from + line[from..].find(':').map_or(0, |colon| colon + 1);
            given.push((key, value..value));
            from = value;
        }
        Ok(Parameters { line, given })
    }

    fn at(&self, key: &str) -> Result<Range<usize>, Problem> {
        let found = self.given.iter().find(|(given, _)| &self.line[given.clone()] == key);
        let missing = || problem(0..self.line.len(), &format!("expected a parameter `{key}`"));
        found.map(|(_, value)| value.clone()).ok_or_else(missing)
    }

    fn text(&self, key: &str) -> Result<&'a str, Problem> {
        let at = self.at(key)?;
        if at.is_empty() {
            return Err(problem(at, &format!("expected a value of `{key}`")));
        }
        Ok(&self.line[at])
    }

    fn number(&self, key: &str) -> Result<u64, Problem> {
        let text = self.text(key)?;
        let at = self.at(key)?;
        integer(text)
            .and_then(|number| u64::try_from(number).ok())
            .ok_or_else(|| Problem { at, text: format!("expected a number as `{key}`, found `{text}`") })
    }

    fn extent(&self, key: &str) -> Result<u32, Problem> {
        let number = self.number(key)?;
        let at = self.at(key)?;
        u32::try_from(number)
            .map_err(|_| Problem { at, text: format!("`{key}` is {number}, expected at most {}", u32::MAX) })
    }
}

/// The word at `begin`, blanks aside, where one colon follows it.
fn key_at(line: &str, begin: usize) -> Option<Range<usize>> {
    let rest = &line[begin..];
    let start = begin + rest.len() - rest.trim_start().len();
    let word =
        line[start..].find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map(|length| start..start + length)?;
    let after = line[word.end..].trim_start();
    let is_key = !word.is_empty() && after.starts_with(':') && !after.starts_with("::");
    is_key.then_some(word)
}

fn trimmed(line: &str, range: Range<usize>) -> Range<usize> {
    let text = &line[range.clone()];
    let start = range.start + (text.len() - text.trim_start().len());
    start..start + text.trim().len()
}

fn launch(parameters: &Parameters) -> Result<LaunchLine, Problem> {
    let extents = |keys: [&str; 3]| -> Result<[u32; 3], Problem> {
        let [x, y, z] = keys;
        Ok([parameters.extent(x)?, parameters.extent(y)?, parameters.extent(z)?])
    };
    let at = parameters.at("args")?;
    Ok(LaunchLine {
        kernel: parameters.text("ptx_name")?.to_owned(),
        grid: extents(["gdx", "gdy", "gdz"])?,
        block: extents(["bdx", "bdy", "bdz"])?,
        shared_bytes: parameters.extent("sharedBytes")?,
        arguments: arguments(parameters.line, at.clone())?,
        at: parameters.at("ptx_name")?,
        arguments_at: at,
    })
}

/// `(value "/" bytes "/")*`.
fn arguments(line: &str, range: Range<usize>) -> Result<Vec<Argument>, Problem> {
    let mut arguments = Vec::new();
    let mut start = range.start;
    while start < range.end && !line[start..range.end].trim().is_empty() {
        let mut pieces = line[start..range.end].split('/');
        let (value, bytes) = (pieces.next().unwrap_or_default(), pieces.next());
        let ended = pieces.next().is_some();
        let length = value.len() + bytes.map_or(0, |bytes| bytes.len() + 2);
        let at = start..(start + length).min(range.end);
        let (Some(bytes), true) = (bytes, ended) else {
            return Err(problem(at, "expected `value/bytes/` for each argument"));
        };
        let Some(bytes) = bytes.trim().parse::<u32>().ok().filter(|bytes| (1..=4096).contains(bytes)) else {
            let text = format!("expected the bytes of an argument, 1 to 4096, found `{bytes}`");
            return Err(Problem { at, text });
        };
        arguments.push(Argument { text: value.trim().to_owned(), bytes, at: at.clone() });
        start += length;
    }
    Ok(arguments)
}

/// `name`, or `name+offset`.
fn place(text: &str, at: Range<usize>) -> Result<Place, Problem> {
    let (name, offset) = match text.rsplit_once('+') {
        None => (text, 0),
        Some((name, offset)) => match integer(offset.trim()).and_then(|offset| u64::try_from(offset).ok()) {
            Some(offset) => (name.trim(), offset),
            None => {
                return Err(Problem { at, text: format!("expected an offset after `{name}+`, found `{offset}`") });
            }
        },
    };
    Ok(Place { name: name.to_owned(), offset, at })
}

/// A decimal or, after `0x`, hexadecimal number; negative ones have a sign.
fn integer(text: &str) -> Option<i128> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let number = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok()?,
        None if digits.starts_with(|c: char| c.is_ascii_digit()) => digits.parse::<u64>().ok()?,
        None => return None,
    };
    Some(sign * i128::from(number))
}

impl Argument {
    /// The allocation that the argument names, where it is none of the ways to write a value.
    pub fn place(&self) -> Result<Option<Place>, Problem> {
        if self.value().is_some() {
            return Ok(None);
        }
        place(&self.text, self.at.clone()).map(Some)
    }

    /// The bytes of a value: an integer, a float (with a point, or as `nan`, `inf`), or `0x` and as many bytes as the argument has,
    /// in the order of memory, where that is not 1, 2, 4 or 8.
    pub fn value(&self) -> Option<Vec<u8>> {
        let (text, bytes) = (self.text.as_str(), self.bytes as usize);
        if !matches!(bytes, 1 | 2 | 4 | 8) {
            let digits = text.strip_prefix("0x").filter(|digits| digits.len() == 2 * bytes && digits.is_ascii())?;
            return (0..bytes).map(|index| u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).ok()).collect();
        }
        if let Some(number) = integer(text) {
            let bits = 8 * bytes as u32;
            let fits = number >= -(1i128 << (bits - 1)) && number < 1i128 << bits;
            return fits.then(|| number.to_le_bytes()[..bytes].to_vec());
        }
        let unsigned = text.trim_start_matches('-');
        if !(unsigned.starts_with(|c: char| c.is_ascii_digit()) || matches!(unsigned, "nan" | "inf")) {
            return None;
        }
        match bytes {
            4 => Some(text.parse::<f32>().ok()?.to_le_bytes().to_vec()),
            8 => Some(text.parse::<f64>().ok()?.to_le_bytes().to_vec()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(line: &str) -> Line {
        parse(line).unwrap_or_else(|problem| panic!("{line}: {problem:?}")).expect("not empty")
    }

    #[test]
    fn both_dialects_are_read() {
        assert_eq!(
            one("CUDA memalloc: dptr: dptr-0, size: 400"),
            Line::Allocate { pointer: "dptr-0".to_owned(), bytes: 400 }
        );
        for line in [
            "CUDA memcpyH2D detected: device_ptr: dptr-0, host_ptr: 0x1000, size: 4096, data_file: a.data, addr: 0x0",
            "CUDA memcpyH2D detected: host_ptr: (nil), data_file: a.data, size: 4096, device_ptr: dptr-0",
            "memcpyH2D:size:4096,device_ptr:dptr-0,data_file:a.data",
        ] {
            let Line::Copy { to_host, pointer, bytes, file } = one(line) else { panic!("{line}") };
            assert_eq!((to_host, pointer.name.as_str(), pointer.offset), (false, "dptr-0", 0), "{line}");
            assert_eq!((bytes, file.as_str()), (4096, "a.data"));
        }
        assert!(matches!(one("CUDA free detected: dptr: dptr-0"), Line::Free { pointer, .. } if pointer == "dptr-0"));
        assert_eq!(parse("  \r"), Ok(None));
    }

    #[test]
    fn names_of_templates_do_not_break_a_launch() {
        let line = "CUDA cu kernel launch detected: name: void ns::scan<int, std::plus<float>, 4>, ptx_name: _Z1kPi, funcptr: 0x55, \
                    gdx: 1, gdy: 2, gdz: 3, bdx: 4, bdy: 5, bdz: 6, sharedBytes: 7, CUstream: (nil), \
                    args: dptr-0/8/dptr-1+64/8/-5/4/2.5/4/0.5/8/9000000000/8/0x010203/3/";
        let Line::Launch(launch) = one(line) else { panic!("a launch") };
        assert_eq!((launch.kernel.as_str(), launch.shared_bytes), ("_Z1kPi", 7));
        assert_eq!((launch.grid, launch.block), ([1, 2, 3], [4, 5, 6]));
        let values: Vec<Option<Vec<u8>>> = launch.arguments.iter().map(Argument::value).collect();
        assert_eq!(values[..2], [None, None]);
        assert_eq!(values[2].as_deref(), Some(&[0xfb, 0xff, 0xff, 0xff][..]));
        assert_eq!(values[3].as_deref(), Some(&2.5f32.to_le_bytes()[..]));
        assert_eq!(values[4].as_deref(), Some(&0.5f64.to_le_bytes()[..]));
        assert_eq!(values[5].as_deref(), Some(&9_000_000_000u64.to_le_bytes()[..]));
        assert_eq!(values[6].as_deref(), Some(&[1, 2, 3][..]));
        let place = launch.arguments[1].place().expect("an offset").expect("a place");
        assert_eq!((place.name.as_str(), place.offset), ("dptr-1", 64));
        // A kernel without parameters.
        let line = line.split_once("dptr-0/8").expect("arguments").0;
        assert!(matches!(one(line), Line::Launch(launch) if launch.arguments.is_empty()));
    }

    #[test]
    fn mistakes_have_a_place() {
        for (line, place, said) in [
            ("no colon here", "no colon here", "expected `kind: key: value, ...`"),
            ("CUDA memset: dptr: a, size: 4", "CUDA memset", "an unknown kind of line, `CUDA memset`"),
            ("memalloc: size: 4", "memalloc: size: 4", "expected a parameter `dptr`"),
            ("memalloc: dptr: a, size: many", "many", "expected a number as `size`, found `many`"),
            ("memalloc: dptr: a, size: -4", "-4", "expected a number as `size`"),
            ("memalloc: dptr: a, size:", "", "expected a value of `size`"),
            ("memalloc: dptr: a, dptr: b, size: 4", "dptr", "`dptr` is given twice"),
            ("memalloc: 4, dptr: a", "4", "expected `key: value`"),
            ("memcpyD2H: device_ptr: a+x, size: 4, data_file: f", "a+x", "expected an offset after `a+`"),
            ("kernel launch: ptx_name: k, gdx: 4294967296", "4294967296", "expected at most"),
        ] {
            let problem = parse(line).expect_err(line);
            if !line.starts_with("kernel") {
                assert_eq!(&line[problem.at.clone()], place, "{problem:?}");
                assert!(problem.text.contains(said), "{line}: {problem:?}");
            }
        }
        let launch =
            "kernel launch: ptx_name: k, gdx: 1, gdy: 1, gdz: 1, bdx: 1, bdy: 1, bdz: 1, sharedBytes: 0, args: ";
        for (arguments, place, said) in [
            ("dptr-0", "dptr-0", "expected `value/bytes/`"),
            ("dptr-0/8", "dptr-0/8", "expected `value/bytes/`"),
            ("1/4/2/x/", "2/x/", "expected the bytes of an argument"),
            ("1/0/", "1/0/", "expected the bytes of an argument"),
        ] {
            let line = format!("{launch}{arguments}");
            let problem = parse(&line).expect_err(&line);
            assert!(line[problem.at.clone()].starts_with(place), "{line}: {problem:?}");
            assert!(problem.text.contains(said), "{line}: {problem:?}");
        }
        for (text, bytes) in [("300", 1), ("-129", 1), ("1.5", 2), ("0x01", 3), ("a", 4)] {
            let argument = Argument { text: text.to_owned(), bytes, at: 0..0 };
            assert_eq!(argument.value(), None, "{text}");
        }
    }
}
