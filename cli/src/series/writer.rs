//! What takes the rows of a series.

use balar_record::metrics::Value;
use balar_record::result::RunRecord;
use balar_record::series::{Row, Table, Tables};
use balar_record::system::files::WriteError;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Takes the rows of a series.
pub trait SeriesWriter: Send {
    /// The run begins.
    ///
    /// # Errors
    ///
    /// If a file cannot be made. It is worth knowing before a long run.
    fn begin(&mut self, tables: &Tables) -> Result<(), WriteError>;

    /// A row.
    ///
    /// # Errors
    ///
    /// If it cannot be written. No other row is given then.
    fn row(&mut self, row: &Row<'_>) -> Result<(), WriteError>;

    /// All rows of a sample have been given.
    ///
    /// # Errors
    ///
    /// As of [`Self::row`].
    fn end_of_sample(&mut self) -> Result<(), WriteError> {
        Ok(())
    }

    /// The run is over.
    ///
    /// # Errors
    ///
    /// If what is left cannot be written.
    fn finish(&mut self, record: &RunRecord, expanded_topology: &str) -> Result<(), WriteError>;
}

/// A text file that is written bit by bit, whose errors name it.
pub struct TextFile {
    path: PathBuf,
    file: BufWriter<File>,
}

impl TextFile {
    /// Makes a file, in place of one that is there, with its folder.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn create(path: &Path) -> Result<TextFile, WriteError> {
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| File::create(path));
        let file = made.map_err(|cause| WriteError { path: path.to_owned(), cause })?;
        Ok(TextFile { path: path.to_owned(), file: BufWriter::with_capacity(1 << 16, file) })
    }

    /// Writes.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn write(&mut self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), WriteError> {
        write(&mut self.file).map_err(|cause| WriteError { path: self.path.clone(), cause })
    }

    /// Leaves nothing in memory.
    ///
    /// # Errors
    ///
    /// If that fails.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.write(Write::flush)
    }
}

/// A text file for each table that has columns, made at the beginning.
#[derive(Default)]
pub struct TableFiles(Vec<(Table, TextFile)>);

impl TableFiles {
    /// Makes the files at these paths.
    ///
    /// # Errors
    ///
    /// The first one that cannot be made.
    pub fn create(tables: &Tables, path: impl Fn(Table) -> PathBuf) -> Result<TableFiles, WriteError> {
        let used = Table::ALL.into_iter().filter(|table| !tables.columns(*table).is_empty());
        used.map(|table| Ok((table, TextFile::create(&path(table))?))).collect::<Result<_, _>>().map(TableFiles)
    }

    /// The file of a table.
    pub fn of(&mut self, table: Table) -> Option<&mut TextFile> {
        self.0.iter_mut().find(|(own, _)| *own == table).map(|(_, file)| file)
    }

    /// The files.
    pub fn all(&mut self) -> impl Iterator<Item = (Table, &mut TextFile)> {
        self.0.iter_mut().map(|(table, file)| (*table, file))
    }

    /// Leaves nothing in memory.
    ///
    /// # Errors
    ///
    /// The first file for which that fails.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.0.iter_mut().try_for_each(|(_, file)| file.flush())
    }
}

/// Writes a number; what there is none of is written as `absent`. One that is no count has a point or an exponent, for there are readers
/// that take the type of a column from its first value.
///
/// # Errors
///
/// If `to` fails.
pub fn write_value(to: &mut impl Write, value: Option<Value>, absent: &str) -> io::Result<()> {
    match value {
        Some(Value::Count(count)) => write!(to, "{count}"),
        Some(Value::Real(real)) if real.is_finite() => write!(to, "{real:?}"),
        _ => to.write_all(absent.as_bytes()),
    }
}
