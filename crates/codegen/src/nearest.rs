//! The word that a wrong one was probably meant to be, for the way out of a fault.

/// Longer words are not compared, because the work grows with the square of their length.
const LETTERS_MAX: usize = 64;

/// Of `known` the word that the fewest changes make of `word`: a letter more, less or another, or two neighbours swapped. `None` if
/// that takes more changes than a third of its letters, as in rustc.
pub(crate) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let is_short = |word: &str| word.chars().nth(LETTERS_MAX).is_none();
    let most = word.chars().count().max(3) / 3;
    let near = known.into_iter().filter_map(|other| {
        if other.eq_ignore_ascii_case(word) {
            return Some((0, other));
        }
        let changes = (is_short(word) && is_short(other)).then(|| strsim::osa_distance(word, other))?;
        (changes <= most).then_some((changes, other))
    });
    near.min_by_key(|(changes, _)| *changes).map(|(_, other)| other)
}

/// The way out for a word that is none of those in `known`, a list with commas.
pub(crate) fn help(word: &str, known: &str) -> String {
    match nearest(word, known.split(", ")) {
        Some(meant) => format!("write {meant}; there are {known}"),
        None => format!("there are {known}"),
    }
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn a_slip_of_the_pen_is_recognised_and_another_word_is_not() {
        let known = ["search", "name", "languages", "Goal", "plain"];
        for (word, meant) in [
            ("serach", Some("search")),
            ("language", Some("languages")),
            ("Gaol", Some("Goal")),
            ("goal", Some("Goal")),
            ("plan", Some("plain")),
            ("rate_hz", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(nearest(word, known), meant, "{word}");
        }
        let long = "a".repeat(100_000);
        assert_eq!(nearest(&long, [&long[1..]]), None);
        assert_eq!(nearest(&long, [long.as_str()]), Some(long.as_str()));
    }
}
