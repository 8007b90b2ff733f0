//! Series in the form of LDMS's `store_csv`: a folder with a file for each schema, and beside each its `.KIND`, which has the types of the
//! columns (`typeheader=2`).
//!
//! Seen on an ldmsd of August 2026: one leading `#`, commas without blanks, no quotes. `Time` is `<seconds>.<microseconds>`, and
//! `Time_usec` the microseconds again. There it is the time of sampling on a wall clock; here it is an epoch that the user chooses plus
//! simulated time, whose picoseconds are a metric of their own. A
//! quotient that has no value is `nan`, as C prints a number that is none.

use super::writer::{SeriesWriter, TableFiles, TextFile, write_value};
use balar_record::metrics::Value;
use balar_record::result::RunRecord;
use balar_record::series::{Column, Row, Table, Tables};
use balar_record::system::files::WriteError;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The container: the folder of the files.
const CONTAINER: &str = "balar";
/// Bytes of a producer's name, as LDMS has them.
const PRODUCER_BYTES: usize = 64;
/// Bytes of texts: longer ones are cut.
const TEXT_BYTES: usize = 256;
/// Picoseconds of a microsecond.
const MICROSECOND: u64 = 1_000_000;

/// Writes them.
pub struct LdmsCsv {
    folder: PathBuf,
    producer: String,
    /// Seconds since 1970 at which simulated time begins.
    epoch: u64,
    columns: Vec<(Table, Vec<Column>)>,
    files: TableFiles,
}

impl LdmsCsv {
    /// Into a folder, of the node of this name.
    pub fn new(folder: &Path, node: &str, epoch: u64) -> LdmsCsv {
        let producer = text(node, PRODUCER_BYTES);
        LdmsCsv { folder: folder.to_owned(), producer, epoch, columns: Vec::new(), files: TableFiles::default() }
    }

    /// The folder below the run's.
    pub fn folder(folder: &Path) -> PathBuf {
        folder.join("ldms")
    }

    fn path(folder: &Path, table: Table, ending: &str) -> PathBuf {
        LdmsCsv::folder(folder).join(CONTAINER).join(format!("balar_{}{ending}", table.name()))
    }
}

/// A text without what would end a column, at most so many bytes long with the zero that ends it in C.
fn text(text: &str, bytes: usize) -> String {
    let mut plain = text.replace(',', ";").replace(['\n', '\r'], " ");
    while plain.len() >= bytes {
        plain.pop();
    }
    plain
}

impl SeriesWriter for LdmsCsv {
    fn begin(&mut self, tables: &Tables) -> Result<(), WriteError> {
        self.columns = Table::ALL.map(|table| (table, tables.columns(table).to_vec())).into();
        self.files = TableFiles::create(tables, |table| LdmsCsv::path(&self.folder, table, ""))?;
        for (table, file) in self.files.all() {
            let columns = tables.columns(table);
            file.write(|to| write_header(to, table, columns))?;
            let mut kinds = TextFile::create(&LdmsCsv::path(&self.folder, table, ".KIND"))?;
            kinds.write(|to| write_kinds(to, table, columns))?;
            kinds.flush()?;
        }
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> Result<(), WriteError> {
        let columns = self.columns.iter().find(|(table, _)| *table == row.table);
        let (Some(file), Some((_, columns))) = (self.files.of(row.table), columns) else { return Ok(()) };
        file.write(|to| write_row(to, &self.producer, self.epoch, columns, row))
    }

    fn finish(&mut self, _: &RunRecord, _: &str) -> Result<(), WriteError> {
        self.files.flush()
    }
}

fn write_header(to: &mut impl Write, table: Table, columns: &[Column]) -> io::Result<()> {
    to.write_all(b"#Time,Time_usec,ProducerName,component_id,job_id,app_id")?;
    if table != Table::Node {
        to.write_all(b",gpu,context,stream,launch,kernel")?;
    }
    to.write_all(b",sim_ps")?;
    columns.iter().try_for_each(|column| write!(to, ",{}", column.name))?;
    to.write_all(b"\n")
}

fn write_kinds(to: &mut impl Write, table: Table, columns: &[Column]) -> io::Result<()> {
    write!(to, "#!ldms-array-kinds!timestamp,u64,char[]{PRODUCER_BYTES},u64,u64,u64")?;
    if table != Table::Node {
        write!(to, ",char[]{TEXT_BYTES},s64,s64,s64,char[]{TEXT_BYTES}")?;
    }
    to.write_all(b",u64")?;
    columns.iter().try_for_each(|column| to.write_all(if column.is_count { b",u64" } else { b",d64" }))?;
    to.write_all(b"\n")
}

fn write_row(to: &mut impl Write, producer: &str, epoch: u64, columns: &[Column], row: &Row<'_>) -> io::Result<()> {
    let microseconds = row.time.0 / MICROSECOND;
    let (seconds, rest) = (epoch + microseconds / 1_000_000, microseconds % 1_000_000);
    write!(to, "{seconds}.{rest:06},{rest},{producer},0,0,0")?;
    if row.table != Table::Node {
        let subject = row.subject;
        write!(to, ",{}", text(&subject.gpu, TEXT_BYTES))?;
        write!(to, ",{},{},{}", subject.context, subject.stream, subject.launch)?;
        write!(to, ",{}", text(&subject.kernel, TEXT_BYTES))?;
    }
    write!(to, ",{}", row.time.0)?;
    for (column, value) in columns.iter().zip(row.values) {
        to.write_all(b",")?;
        match value {
            // As C prints a double by "%f".
            Some(Value::Real(real)) if real.is_finite() => write!(to, "{real:.6}")?,
            value => write_value(to, *value, if column.is_count { "" } else { "nan" })?,
        }
    }
    to.write_all(b"\n")
}
