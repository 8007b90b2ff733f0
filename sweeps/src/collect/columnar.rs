//! Tables as Parquet files: counts are 64-bit integers, numbers with fractions doubles, everything else is text. An empty cell is null.

use super::table::{Cell, Table};
use crate::SweepError;
use crate::files;
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// Writes a table.
pub(super) fn write(table: &Table, path: &Path) -> std::result::Result<(), SweepError> {
    let mut bytes = Vec::new();
    to_bytes(table, &mut bytes).map_err(|error| files::failed("write", path)(io::Error::other(error)))?;
    files::write(path, |file| file.write_all(&bytes))
}

fn to_bytes(table: &Table, bytes: &mut (impl Write + Send)) -> Result<()> {
    let kinds: Vec<PhysicalType> = (0..table.header.len()).map(|column| kind(table, column)).collect();
    let fields = table.header.iter().zip(&kinds).map(|(name, kind)| {
        let text = (*kind == PhysicalType::BYTE_ARRAY).then_some(LogicalType::String);
        let field = Type::primitive_type_builder(name, *kind).with_repetition(Repetition::OPTIONAL);
        field.with_logical_type(text).build().map(Arc::new)
    });
    let schema = Type::group_type_builder("schema").with_fields(fields.collect::<Result<_>>()?).build()?;
    // Who wrote the file is told without a version: the same results are the same bytes.
    let properties = WriterProperties::builder().set_created_by("balar-actors".to_owned()).build();
    let mut writer = SerializedFileWriter::new(bytes, Arc::new(schema), Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for (column, kind) in kinds.into_iter().enumerate() {
        let Some(mut writer) = group.next_column()? else { break };
        write_column(table, column, kind, &mut writer)?;
        writer.close()?;
    }
    group.close()?;
    writer.close().map(drop)
}

/// The type of a column's values.
fn kind(table: &Table, column: usize) -> PhysicalType {
    let mut cells = table.rows.iter().map(|row| &row[column]).filter(|cell| **cell != Cell::Empty).peekable();
    if cells.peek().is_none() || cells.clone().any(|cell| matches!(cell, Cell::Text(_))) {
        PhysicalType::BYTE_ARRAY
    } else if cells.all(|cell| matches!(cell, Cell::Count(_))) {
        PhysicalType::INT64
    } else {
        PhysicalType::DOUBLE
    }
}

fn write_column(
    table: &Table,
    column: usize,
    kind: PhysicalType,
    writer: &mut SerializedColumnWriter<'_>,
) -> Result<()> {
    let cells = || table.rows.iter().map(|row| &row[column]);
    let present = || cells().filter(|cell| **cell != Cell::Empty);
    let levels: Vec<i16> = cells().map(|cell| i16::from(*cell != Cell::Empty)).collect();
    let written = match kind {
        PhysicalType::INT64 => {
            let whole =
                |cell: &Cell| if let Cell::Count(count) = cell { i64::try_from(*count).unwrap_or(i64::MAX) } else { 0 };
            let values: Vec<i64> = present().map(whole).collect();
            writer.typed::<Int64Type>().write_batch(&values, Some(&levels), None)
        }
        PhysicalType::DOUBLE => {
            let values: Vec<f64> = present().filter_map(Cell::number).collect();
            writer.typed::<DoubleType>().write_batch(&values, Some(&levels), None)
        }
        _ => {
            let values: Vec<ByteArray> = present().map(|cell| cell.text().into_bytes().into()).collect();
            writer.typed::<ByteArrayType>().write_batch(&values, Some(&levels), None)
        }
    };
    written.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("results.parquet");
        let table = Table {
            header: ["point", "a", "ipc", "nothing"].map(str::to_owned).to_vec(),
            rows: vec![
                vec![Cell::Count(0), Cell::Text("500 MHz".to_owned()), Cell::Real(0.5), Cell::Empty],
                vec![Cell::Count(1), Cell::Empty, Cell::Count(2), Cell::Empty],
            ],
        };
        write(&table, &path).expect("written");
        let reader = SerializedFileReader::new(std::fs::File::open(&path).expect("there")).expect("Parquet");
        let rows: Vec<Vec<Field>> = reader
            .get_row_iter(None)
            .expect("rows")
            .map(|row| row.expect("a row").into_columns().into_iter().map(|(_, field)| field).collect())
            .collect();
        assert_eq!(
            rows,
            [
                [Field::Long(0), Field::Str("500 MHz".to_owned()), Field::Double(0.5), Field::Null],
                [Field::Long(1), Field::Null, Field::Double(2.0), Field::Null],
            ]
        );
    }
}
