//! Series as JSON lines: a flat object for each row, whose table is its `schema`. What has no value has no member.
//!
//! Names are those that LDMS takes: letters, digits and underscores. Whoever follows the file sees a sample when it has been taken.
//!
//! There is a form for LDMS's `json_stream_sampler`, tried with one of August 2026. It makes a metric of each member of the first object
//! of a schema, of the type that its value has there, and of no other: so every object has every member, and a quotient that has no value is
//! 0.0 in it.

use super::writer::{SeriesWriter, TextFile, write_value};
use balar_record::result::RunRecord;
use balar_record::series::{Column, Row, Table, Tables};
use balar_record::system::files::WriteError;
use std::io::{self, Write};
use std::path::PathBuf;

/// Writes them.
pub struct JsonLines {
    path: PathBuf,
    node: String,
    /// What stands for a value that there is not; without it, its member is left out.
    absent: Option<&'static str>,
    columns: Vec<(Table, Vec<Column>)>,
    file: Option<TextFile>,
}

impl JsonLines {
    /// Into a file, of the node of this name.
    pub fn new(path: PathBuf, node: &str) -> JsonLines {
        JsonLines { path, node: node.to_owned(), absent: None, columns: Vec::new(), file: None }
    }

    /// As [`Self::new`], in the form for LDMS.
    pub fn for_ldms(path: PathBuf, node: &str) -> JsonLines {
        JsonLines { absent: Some("0.0"), ..JsonLines::new(path, node) }
    }
}

impl SeriesWriter for JsonLines {
    fn begin(&mut self, tables: &Tables) -> Result<(), WriteError> {
        self.columns = Table::ALL.map(|table| (table, tables.columns(table).to_vec())).into();
        self.file = Some(TextFile::create(&self.path)?);
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> Result<(), WriteError> {
        let columns = self.columns.iter().find(|(table, _)| *table == row.table);
        let (Some(file), Some((_, columns))) = (&mut self.file, columns) else { return Ok(()) };
        file.write(|to| write_row(to, &self.node, self.absent, columns, row))
    }

    fn end_of_sample(&mut self) -> Result<(), WriteError> {
        self.file.as_mut().map_or(Ok(()), TextFile::flush)
    }

    fn finish(&mut self, _: &RunRecord, _: &str) -> Result<(), WriteError> {
        self.end_of_sample()
    }
}

fn write_row(
    to: &mut impl Write,
    node: &str,
    absent: Option<&str>,
    columns: &[Column],
    row: &Row<'_>,
) -> io::Result<()> {
    let subject = row.subject;
    write!(to, "{{\"schema\":\"balar_{}\",\"node\":", row.table.name())?;
    serde_json::to_writer(&mut *to, node)?;
    if row.table != Table::Node {
        to.write_all(b",\"gpu\":")?;
        serde_json::to_writer(&mut *to, &*subject.gpu)?;
        write!(to, ",\"context\":{},\"stream\":{},\"launch\":{}", subject.context, subject.stream, subject.launch)?;
        to.write_all(b",\"kernel\":")?;
        serde_json::to_writer(&mut *to, &*subject.kernel)?;
    }
    write!(to, ",\"sim_ps\":{}", row.time.0)?;
    for (column, value) in columns.iter().zip(row.values) {
        if value.is_some() || absent.is_some() {
            write!(to, ",\"{}\":", column.name)?;
            write_value(to, *value, absent.unwrap_or("null"))?;
        }
    }
    to.write_all(b"}\n")
}
