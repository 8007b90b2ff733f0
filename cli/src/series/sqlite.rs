//! Series and results as an SQLite database, `run.db`: everything of a run in one file that any language opens.
//!
//! | table or view | a row for |
//! |---|---|
//! | `run` | the run: one row |
//! | `parameter` | a parameter of the workload |
//! | `config` | the topology, written out |
//! | `launch` | a launch, with its counters |
//! | `statistic` | a counter of a unit, at the end |
//! | `counter` | a column of the series: its unit of measure and what it means |
//! | `node_samples`, `gpu_samples`, `launch_samples` | a sample of each |
//! | `sample` | a value of the series: a view of these three |

use super::writer::SeriesWriter;
use balar_protocol::statistics::KernelCounters;
use balar_record::metrics::Value;
use balar_record::result::RunRecord;
use balar_record::series::{Column, Row, Table, Tables};
use balar_record::system::files::WriteError;
use rusqlite::types::{ToSqlOutput, Value as SqlValue};
use rusqlite::{Connection, Statement, ToSql, params_from_iter};
use std::io;
use std::path::{Path, PathBuf};

/// Samples after which what has been written is safe.
const SAMPLES_A_TRANSACTION: u32 = 1000;

/// Writes it.
pub struct Database {
    path: PathBuf,
    connection: Option<Connection>,
    columns: Vec<(Table, Vec<Column>)>,
    samples: u32,
}

impl Database {
    /// Into a file.
    pub fn new(path: PathBuf) -> Database {
        Database { path, connection: None, columns: Vec::new(), samples: 0 }
    }

    fn act<T>(&self, act: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<Option<T>, WriteError> {
        self.connection.as_ref().map(act).transpose().map_err(|error| failed(&self.path, error))
    }
}

fn failed(path: &Path, error: rusqlite::Error) -> WriteError {
    WriteError { path: path.to_owned(), cause: io::Error::other(error) }
}

impl SeriesWriter for Database {
    fn begin(&mut self, tables: &Tables) -> Result<(), WriteError> {
        let is_absent = |cause: &io::Error| cause.kind() == io::ErrorKind::NotFound;
        if let Err(cause) =
            std::fs::remove_file(&self.path).or_else(|cause| if is_absent(&cause) { Ok(()) } else { Err(cause) })
        {
            return Err(WriteError { path: self.path.clone(), cause });
        }
        let of = |table| (table, tables.columns(table).to_vec());
        self.columns = Table::ALL.map(of).into_iter().filter(|(_, columns)| !columns.is_empty()).collect();
        let connection = Connection::open(&self.path).map_err(|error| failed(&self.path, error))?;
        // Whoever ends the simulator in between finds the last whole transaction, or makes the run again.
        let begun = connection
            .execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN")
            .and_then(|()| connection.execute_batch(&definitions(&self.columns)))
            .and_then(|()| describe(&connection, &self.columns));
        begun.map_err(|error| failed(&self.path, error))?;
        self.connection = Some(connection);
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> Result<(), WriteError> {
        self.act(|connection| insert_row(connection, row)).map(drop)
    }

    fn end_of_sample(&mut self) -> Result<(), WriteError> {
        self.samples += 1;
        if self.samples < SAMPLES_A_TRANSACTION {
            return Ok(());
        }
        self.samples = 0;
        self.act(|connection| connection.execute_batch("COMMIT; BEGIN")).map(drop)
    }

    fn finish(&mut self, record: &RunRecord, expanded_topology: &str) -> Result<(), WriteError> {
        self.act(|connection| {
            write_result(connection, record, expanded_topology)?;
            connection.execute_batch("COMMIT")
        })?;
        let Some(connection) = self.connection.take() else { return Ok(()) };
        connection.close().map_err(|(_, error)| failed(&self.path, error))
    }
}

/// Whether a column is one of numbers with fractions.
fn sql_type(column: &Column) -> &'static str {
    if column.is_count { "INTEGER" } else { "REAL" }
}

/// The tables, and the view of all samples.
fn definitions(columns: &[(Table, Vec<Column>)]) -> String {
    let mut text = String::from(
        "CREATE TABLE run (topology TEXT, workload TEXT, isa TEXT, version TEXT, completed INTEGER, verified INTEGER, ended_by TEXT, \
         problem TEXT, sim_time_ps INTEGER);
         CREATE TABLE parameter (name TEXT, value TEXT);
         CREATE TABLE config (topology TEXT);
         CREATE TABLE statistic (location TEXT, what TEXT, value INTEGER, unit TEXT);
         CREATE TABLE counter (series TEXT, name TEXT, unit TEXT, meaning TEXT, is_count INTEGER);\n",
    );
    let counters = KernelCounters::DEFINITIONS.iter().map(|definition| format!(", \"{}\" INTEGER", definition.name));
    text += &format!(
        "CREATE TABLE launch (launch INTEGER, name TEXT, process INTEGER, stream INTEGER, gpu TEXT, grid_x INTEGER, grid_y INTEGER, \
         grid_z INTEGER, block_x INTEGER, block_y INTEGER, block_z INTEGER, registers_per_thread INTEGER, shared_bytes INTEGER, \
         start_ps INTEGER, end_ps INTEGER, cycles INTEGER, completed INTEGER{}, parent INTEGER, range TEXT);\n",
        counters.collect::<String>()
    );
    let mut views = Vec::new();
    for (table, columns) in columns {
        let own = columns.iter().map(|column| format!(", \"{}\" {}", column.name, sql_type(column)));
        let subject = if *table == Table::Node {
            ""
        } else {
            ", gpu TEXT, context INTEGER, stream INTEGER, launch INTEGER, kernel TEXT"
        };
        text +=
            &format!("CREATE TABLE {}_samples (sim_ps INTEGER{subject}{});\n", table.name(), own.collect::<String>());
        let subject = if *table == Table::Node { "'', -1, -1, -1, ''" } else { "gpu, context, stream, launch, kernel" };
        views.extend(columns.iter().map(|column| {
            format!(
                "SELECT '{table}', sim_ps, {subject}, '{column}', \"{column}\" FROM {table}_samples",
                table = table.name(),
                column = column.name
            )
        }));
    }
    // SQLite takes at most 500 terms in such a select (SQLITE_MAX_COMPOUND_SELECT).
    if (1..=500).contains(&views.len()) {
        let names = "series, sim_ps, gpu, context, stream, launch, kernel, counter, value";
        text += &format!("CREATE VIEW sample ({names}) AS {};\n", views.join("\nUNION ALL "));
    }
    text
}

fn describe(connection: &Connection, columns: &[(Table, Vec<Column>)]) -> rusqlite::Result<()> {
    let mut insert = connection.prepare("INSERT INTO counter VALUES (?, ?, ?, ?, ?)")?;
    for (table, columns) in columns {
        for Column { name, unit, meaning, is_count } in columns {
            insert.execute((table.name(), name, unit, meaning, is_count))?;
        }
    }
    Ok(())
}

fn insert_row(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<()> {
    let values = row.values.len() + if row.table == Table::Node { 1 } else { 6 };
    let places = vec!["?"; values].join(",");
    let mut insert =
        connection.prepare_cached(&format!("INSERT INTO {}_samples VALUES ({places})", row.table.name()))?;
    let mut place = 1;
    let mut bind = |insert: &mut Statement<'_>, value: &dyn ToSql| {
        let bound = insert.raw_bind_parameter(place, value);
        place += 1;
        bound
    };
    bind(&mut insert, &whole(row.time.0))?;
    if row.table != Table::Node {
        let subject = row.subject;
        bind(&mut insert, &&*subject.gpu)?;
        bind(&mut insert, &subject.context)?;
        bind(&mut insert, &subject.stream)?;
        bind(&mut insert, &subject.launch)?;
        bind(&mut insert, &&*subject.kernel)?;
    }
    for value in row.values {
        match value {
            Some(Value::Count(count)) => bind(&mut insert, &whole(*count))?,
            Some(Value::Real(real)) => bind(&mut insert, real)?,
            None => bind(&mut insert, &rusqlite::types::Null)?,
        }
    }
    insert.raw_execute().map(drop)
}

/// A count as SQLite has it: numbers of 63 bits. What is greater is the greatest.
fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn write_result(connection: &Connection, record: &RunRecord, expanded_topology: &str) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT INTO run VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            &record.topology,
            &record.workload,
            &record.isa,
            env!("CARGO_PKG_VERSION"),
            record.completed(),
            record.verified(),
            record.ending.name(),
            record.problem(),
            whole(record.sim_time.picoseconds()),
        ),
    )?;
    let mut parameter = connection.prepare("INSERT INTO parameter VALUES (?, ?)")?;
    for (name, value) in &record.parameters {
        parameter.execute((name, value))?;
    }
    connection.execute("INSERT INTO config VALUES (?)", (expanded_topology,))?;
    let mut statistic = connection.prepare("INSERT INTO statistic VALUES (?, ?, ?, ?)")?;
    for row in &record.statistics.rows {
        statistic.execute((&row.location, row.what, whole(row.value), row.unit))?;
    }
    let places = vec!["?"; 19 + KernelCounters::DEFINITIONS.len()].join(",");
    let mut launch = connection.prepare(&format!("INSERT INTO launch VALUES ({places})"))?;
    for kernel in record.launches().iter() {
        let number = |value: u64| ToSqlOutput::Owned(SqlValue::Integer(whole(value)));
        let text = |value: &str| ToSqlOutput::Owned(SqlValue::Text(value.to_owned()));
        let mut values = vec![
            number(kernel.launch.0.into()),
            text(&kernel.name),
            number(kernel.process.0.into()),
            number(kernel.stream.into()),
            text(&kernel.gpu),
        ];
        values.extend(kernel.grid.iter().chain(&kernel.block).map(|extent| number((*extent).into())));
        values.extend([kernel.registers_per_thread.into(), kernel.shared_bytes.into()].map(number));
        values.extend([kernel.start_ps, kernel.end_ps, kernel.cycles, u64::from(kernel.completed)].map(number));
        values.extend(kernel.counters.values().map(number));
        let parent = kernel.parent.map(|parent| SqlValue::Integer(parent.0.into()));
        values.push(ToSqlOutput::Owned(parent.unwrap_or(SqlValue::Null)));
        let range = kernel.range.as_ref().map(|range| SqlValue::Text(range.to_string()));
        values.push(ToSqlOutput::Owned(range.unwrap_or(SqlValue::Null)));
        launch.execute(params_from_iter(values))?;
    }
    Ok(())
}
