//! Lists of values as a command line gives them: `500 MHz,1312 MHz` or `[1, 2],[3, 4]`.

/// Splits a list at its commas, but not within brackets, braces and quotes. Spaces around values go, and so do the quotes of a value that
/// is a string as a whole.
///
/// # Errors
///
/// In words: a value is missing or given twice, or brackets or quotes do not match.
pub fn split(text: &str) -> Result<Vec<String>, String> {
    let mut values: Vec<String> = Vec::new();
    let mut open: Vec<char> = Vec::new();
    let (mut start, mut in_string, mut escaped) = (0, false, false);
    for (at, letter) in text.char_indices() {
        if in_string {
            in_string = escaped || letter != '"';
            escaped = !escaped && letter == '\\';
            continue;
        }
        match letter {
            '"' => in_string = true,
            '(' => open.push(')'),
            '[' => open.push(']'),
            '{' => open.push('}'),
            ')' | ']' | '}' if open.pop() != Some(letter) => {
                return Err(format!("`{letter}` in `{text}` closes nothing"));
            }
            ',' if open.is_empty() => {
                push(&text[start..at], text, &mut values)?;
                start = at + 1;
            }
            _ => {}
        }
    }
    if in_string {
        return Err(format!("`{text}` lacks a closing `\"`"));
    }
    if let Some(missing) = open.pop() {
        return Err(format!("`{text}` lacks a closing `{missing}`"));
    }
    push(&text[start..], text, &mut values)?;
    Ok(values)
}

fn push(value: &str, all: &str, values: &mut Vec<String>) -> Result<(), String> {
    let value = unquoted(value.trim());
    if value.is_empty() {
        return Err(format!("a value is missing in `{all}`"));
    }
    if values.contains(&value) {
        return Err(format!("the value `{value}` is given twice"));
    }
    values.push(value);
    Ok(())
}

/// The text within quotes; any other text as it is.
pub fn unquoted(text: &str) -> String {
    let is_string = text.len() > 1 && text.starts_with('"') && text.ends_with('"');
    let read = is_string.then(|| ron::from_str::<String>(text).ok()).flatten();
    read.unwrap_or_else(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_part_values_outside_brackets_and_quotes() {
        for (text, values) in [
            ("500", &["500"][..]),
            ("500 MHz, 1312 MHz", &["500 MHz", "1312 MHz"]),
            ("[1, 2],[3]", &["[1, 2]", "[3]"]),
            ("(a: [1, 2], b: {1: 2}),x", &["(a: [1, 2], b: {1: 2})", "x"]),
            (r#""a,b",c"#, &["a,b", "c"]),
            (r#""a\",b""#, &[r#"a",b"#]),
            (r#"["a,]", "b"],c"#, &[r#"["a,]", "b"]"#, "c"]),
        ] {
            assert_eq!(split(text).expect(text), values, "{text}");
        }
    }

    #[test]
    fn what_is_no_list_is_refused() {
        for (text, said) in [
            ("", "missing"),
            ("1,,2", "missing"),
            ("1,2,", "missing"),
            ("1,2, 1", "`1` is given twice"),
            ("[1,2", "closing `]`"),
            ("1]", "closes nothing"),
            ("[1)", "closes nothing"),
            ("\"a,b", "closing `\"`"),
        ] {
            let error = split(text).expect_err(text);
            assert!(error.contains(said), "{text}: {error}");
        }
    }
}
