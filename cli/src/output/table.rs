//! Tables of text: columns that fit a terminal, and no line break inside a word.

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle, Width};

/// Fewest characters that a shortened column keeps.
const SHORTEST: usize = 12;

/// An empty table; folded at `width` where that is known.
pub fn table(header: &[&str], width: Option<u16>) -> Table {
    let mut table = Table::new();
    table.load_style(TableStyle::new().header_separator(LineStyle::none().fill('-')));
    match width {
        Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    table.set_header(header);
    table
}

/// Adds a row; cells are flush right except those of the `left` columns.
pub fn add(table: &mut Table, cells: impl IntoIterator<Item = String>, left: &[usize]) {
    let aligned = cells.into_iter().enumerate().map(|(column, text)| {
        let side = if left.contains(&column) { CellAlignment::Left } else { CellAlignment::Right };
        Cell::new(text).set_alignment(side)
    });
    table.add_row(aligned.collect::<Vec<_>>());
}

/// The lines of a table, without spaces at their ends. Columns are never narrower than their longest word.
pub fn lines(table: Table) -> String {
    let mut table = table;
    if !matches!(table.content_arrangement(), ContentArrangement::Disabled) {
        let rows = table.header().into_iter().chain(table.row_iter());
        let mut words: Vec<usize> = Vec::new();
        for row in rows {
            for (column, cell) in row.cell_iter().enumerate() {
                words.resize(words.len().max(column + 1), 0);
                let text = cell.content();
                let longest = text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
                words[column] = words[column].max(longest);
            }
        }
        // A column has a space at each side.
        let least = words.into_iter().map(|word| Width::Fixed(u16::try_from(word + 2).unwrap_or(u16::MAX)));
        table.set_constraints(least.map(ColumnConstraint::LowerBoundary).collect::<Vec<_>>());
    }
    table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
}

/// A table of one line a row. Where a terminal is too narrow, columns go, and one may be cut.
#[derive(Debug, Default)]
pub struct Lines {
    /// Names of the columns.
    pub header: Vec<&'static str>,
    /// Columns that are flush left.
    pub left: Vec<usize>,
    /// Columns that may go, the first one first.
    pub droppable: Vec<usize>,
    /// The column whose texts may be cut.
    pub elastic: Option<usize>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

impl Lines {
    /// The lines of the table, at most `width` wide where it can be so.
    pub fn text(mut self, width: Option<u16>) -> String {
        if let Some(width) = width {
            self.fit(usize::from(width));
        }
        let mut table = table(&self.header, None);
        for row in self.rows {
            add(&mut table, row, &self.left);
        }
        lines(table)
    }

    fn fit(&mut self, width: usize) {
        while self.width() > width && !self.droppable.is_empty() {
            // The list changes with the columns.
            self.drop_column(self.droppable[0]);
        }
        let excess = self.width().saturating_sub(width);
        if let Some(column) = self.elastic.filter(|_| excess > 0) {
            let most = self.column_width(column).saturating_sub(excess).max(SHORTEST);
            self.rows.iter_mut().for_each(|row| row[column] = shortened(&row[column], most));
        }
    }

    fn drop_column(&mut self, dropped: usize) {
        let moved = |column: usize| if column > dropped { column - 1 } else { column };
        self.header.remove(dropped);
        self.rows.iter_mut().for_each(|row| drop(row.remove(dropped)));
        for columns in [&mut self.left, &mut self.droppable] {
            columns.retain(|column| *column != dropped);
            columns.iter_mut().for_each(|column| *column = moved(*column));
        }
        self.elastic = self.elastic.filter(|column| *column != dropped).map(moved);
    }

    fn column_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].chars().count());
        cells.chain([self.header[column].len()]).max().unwrap_or(0)
    }

    /// A column has a space at each side.
    fn width(&self) -> usize {
        (0..self.header.len()).map(|column| self.column_width(column) + 2).sum()
    }
}

/// `text`, or its beginning and "...", `most` characters in all.
fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most.saturating_sub(3)).chain("...".chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wide() -> Lines {
        Lines {
            header: vec!["what", "sum", "least", "unit"],
            left: vec![0, 3],
            droppable: vec![2, 1],
            elastic: Some(3),
            rows: vec![vec!["inst".into(), "12345".into(), "7".into(), "a_name_of_24_characters_".into()]],
        }
    }

    #[test]
    fn columns_go_before_names_are_cut() {
        let widest = |text: &str| text.lines().map(|line| line.chars().count()).max();
        // Columns of 4, 5, 5 and 24 characters, two spaces each.
        let whole = wide().text(Some(46));
        assert_eq!((widest(&whole), whole.contains("least")), (Some(46), true), "{whole}");
        let narrower = wide().text(Some(45));
        assert_eq!((widest(&narrower), narrower.contains("least")), (Some(39), false), "{narrower}");
        // Without `sum` 32, of which 30 are allowed.
        let cut = wide().text(Some(30));
        assert!(!cut.contains("a_name_of_24_characters_") && cut.contains("a_name_of_24_charac..."), "{cut}");
        assert_eq!(widest(&cut), Some(30), "{cut}");
        assert_eq!(wide().text(None), whole);
    }

    #[test]
    fn folded_columns_break_between_words() {
        let mut folded = table(&["name", "meaning"], Some(20));
        let meaning = "extraordinarily long words of a meaning".to_owned();
        add(&mut folded, ["a_name_of_20_letters".to_owned(), meaning.clone()], &[0, 1]);
        let text = lines(folded);
        assert!(text.contains("a_name_of_20_letters"), "{text}");
        assert!(meaning.split(' ').all(|word| text.contains(word)), "{text}");
    }
}
