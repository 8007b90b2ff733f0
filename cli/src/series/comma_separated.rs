//! Series as comma-separated values: a file for each table, with a header. What has no value is empty.

use super::writer::{SeriesWriter, TableFiles, write_value};
use balar_record::result::RunRecord;
use balar_record::series::{Row, Table, Tables};
use balar_record::system::files::WriteError;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes them.
pub struct CommaSeparated {
    folder: PathBuf,
    files: TableFiles,
}

impl CommaSeparated {
    /// Into a folder.
    pub fn new(folder: &Path) -> CommaSeparated {
        CommaSeparated { folder: folder.to_owned(), files: TableFiles::default() }
    }

    /// The file of a table.
    pub fn path(folder: &Path, table: Table) -> PathBuf {
        folder.join(format!("{}_samples.csv", table.name()))
    }
}

impl SeriesWriter for CommaSeparated {
    fn begin(&mut self, tables: &Tables) -> Result<(), WriteError> {
        self.files = TableFiles::create(tables, |table| CommaSeparated::path(&self.folder, table))?;
        for (table, file) in self.files.all() {
            file.write(|to| {
                to.write_all(b"sim_ps")?;
                if table != Table::Node {
                    to.write_all(b",gpu,context,stream,launch,kernel")?;
                }
                tables.columns(table).iter().try_for_each(|column| write!(to, ",{}", column.name))?;
                to.write_all(b"\n")
            })?;
        }
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> Result<(), WriteError> {
        let Some(file) = self.files.of(row.table) else { return Ok(()) };
        file.write(|to| {
            write!(to, "{}", row.time.0)?;
            if row.table != Table::Node {
                let subject = row.subject;
                to.write_all(b",")?;
                write_text(to, &subject.gpu)?;
                write!(to, ",{},{},{},", subject.context, subject.stream, subject.launch)?;
                write_text(to, &subject.kernel)?;
            }
            for value in row.values {
                to.write_all(b",")?;
                write_value(to, *value, "")?;
            }
            to.write_all(b"\n")
        })
    }

    fn finish(&mut self, _: &RunRecord, _: &str) -> Result<(), WriteError> {
        self.files.flush()
    }
}

/// A text, in quotes where it needs them.
fn write_text(to: &mut impl Write, text: &str) -> io::Result<()> {
    if text.contains([',', '"', '\n', '\r']) {
        write!(to, "\"{}\"", text.replace('"', "\"\""))
    } else {
        to.write_all(text.as_bytes())
    }
}
