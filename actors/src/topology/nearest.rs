//! The right name nearest to a wrong one.

/// Insertions, deletions, substitutions and swaps of neighbours that lead from `a` to `b`; a change of case counts as none.
fn edit_distance(a: &str, b: &str) -> usize {
    strsim::osa_distance(&a.to_lowercase(), &b.to_lowercase())
}

/// The candidate nearest to `name`, if one is near enough to be meant. Of two as near, one with the same first letter.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (name.chars().count() / 2).max(2);
    let rated = candidates.into_iter().map(|candidate| {
        let other_start = name.chars().next() != candidate.chars().next();
        ((edit_distance(name, candidate), other_start), candidate)
    });
    rated
        .filter(|((distance, _), _)| *distance <= limit)
        .min_by_key(|(rating, _)| *rating)
        .map(|(_, candidate)| candidate)
}

/// "the nearest name is `x`" where there is one, else the list of all names.
pub fn suggestion<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    match nearest(name, candidates.iter().copied()) {
        Some(near) => format!("the nearest name is `{near}`"),
        None if candidates.is_empty() => "there is none".to_owned(),
        None => format!("there are: {}", candidates.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (a, b, distance) in
            [("", "abc", 3), ("clock", "clok", 1), ("ways", "wyas", 1), ("L2slice", "L2Slice", 0), ("a", "b", 1)]
        {
            assert_eq!(edit_distance(a, b), distance, "{a} {b}");
            assert_eq!(edit_distance(b, a), distance, "{b} {a}");
        }
        assert_eq!(nearest("clok", ["ways", "clock", "lock"]), Some("clock"));
        assert_eq!(nearest("KB", ["B", "KiB", "MiB"]), Some("KiB"));
        assert_eq!(nearest("bandwidth", ["ways", "clock"]), None);
        assert_eq!(suggestion("zzzzzz", ["a", "b"]), "there are: a, b");
    }
}
