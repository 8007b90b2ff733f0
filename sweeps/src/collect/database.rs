//! Results as an SQLite database, `sweep.db`.
//!
//! | table | a row for |
//! |---|---|
//! | `sweep` | a fact about the sweep, as name and value |
//! | `point` | a point |
//! | `setting` | a setting of a point; where its value is a number with a unit, also the number and the unit |
//! | `kernel` | a kernel of a point, with its counters |
//! | `statistic` | a counter of a row of units of a point |
//! | `metric` | a metric of a row of units of a point |

use super::figures::{PointResult, Reading};
use crate::SweepError;
use crate::files;
use crate::files::json;
use crate::folder::SweepFolder;
use crate::quantity::Quantity;
use balar_protocol::statistics::KernelCounters;
use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The database while it is written, under another name.
pub(super) struct Database {
    connection: Connection,
    file: NamedTempFile,
    path: PathBuf,
}

fn failed(path: &Path) -> impl Fn(rusqlite::Error) -> SweepError {
    move |error| files::failed("write", path)(io::Error::other(error))
}

fn definitions() -> String {
    let counters = KernelCounters::DEFINITIONS.iter().map(|definition| format!(", \"{}\" INTEGER", definition.name));
    let reading = "location TEXT, instances INTEGER, sum REAL, avg REAL, min REAL, max REAL, unit TEXT";
    format!(
        "CREATE TABLE sweep (name TEXT PRIMARY KEY, value TEXT);
         CREATE TABLE point (point INTEGER PRIMARY KEY, status TEXT, exit_code INTEGER, signal INTEGER, problem TEXT, isa TEXT, \
         ended_by TEXT, verified INTEGER, sim_time_ps INTEGER, configuration_hash TEXT, input_hash TEXT);
         CREATE TABLE setting (point INTEGER, key TEXT, value TEXT, number REAL, unit TEXT, PRIMARY KEY (point, key));
         CREATE TABLE kernel (point INTEGER, kernel TEXT, calls INTEGER, time_ps INTEGER, cycles INTEGER{}, PRIMARY KEY (point, kernel));
         CREATE TABLE statistic (point INTEGER, statistic TEXT, {reading});
         CREATE TABLE metric (point INTEGER, metric TEXT, {reading});\n",
        counters.collect::<String>()
    )
}

impl Database {
    pub(super) fn begin(folder: &SweepFolder) -> Result<Database, SweepError> {
        let path = folder.path.join("sweep.db");
        let file = files::beside(&path).map_err(files::failed("write", &path))?;
        let connection = Connection::open(file.path()).map_err(failed(&path))?;
        let definition = &folder.definition;
        let about = [
            ("program", definition.program.clone()),
            ("version", definition.version.clone()),
            ("schema", definition.schema.to_string()),
            ("options", json(&definition.options)),
            ("command", json(&definition.command)),
            ("inputs", json(&definition.inputs)),
            ("keys", json(&definition.keys)),
            ("points", definition.points.len().to_string()),
        ];
        let begun = || {
            // Until it has its name, it may be lost.
            connection.execute_batch("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN")?;
            connection.execute_batch(&definitions())?;
            for (name, value) in about {
                connection.execute("INSERT INTO sweep VALUES (?, ?)", (name, value))?;
            }
            Ok(())
        };
        begun().map_err(failed(&path))?;
        Ok(Database { connection, file, path })
    }

    pub(super) fn add(&self, folder: &SweepFolder, index: usize, result: &PointResult) -> Result<(), SweepError> {
        self.insert(folder, index, result).map_err(failed(&self.path))
    }

    fn insert(&self, folder: &SweepFolder, index: usize, result: &PointResult) -> rusqlite::Result<()> {
        let PointResult { summary, figures } = result;
        let point = whole(index as u64);
        let figures = figures.as_ref();
        self.connection.prepare_cached("INSERT INTO point VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")?.execute(
            params![
                point,
                summary.as_ref().map_or("not_run", |summary| summary.status.name()),
                summary.as_ref().and_then(|summary| summary.exit_code),
                summary.as_ref().and_then(|summary| summary.signal),
                summary.as_ref().and_then(|summary| summary.problem.as_ref()),
                figures.map(|figures| &figures.isa),
                figures.map(|figures| &figures.ended_by),
                figures.and_then(|figures| figures.verified),
                figures.and_then(|figures| figures.sim_time_ps).map(whole),
                folder.definition.configuration_hash(index),
                summary.as_ref().and_then(|summary| summary.input_hash.as_ref()),
            ],
        )?;
        let mut setting = self.connection.prepare_cached("INSERT INTO setting VALUES (?, ?, ?, ?, ?)")?;
        for (key, value) in folder.definition.keys.iter().zip(&folder.definition.points[index]) {
            let Some(value) = value else { continue };
            let quantity = Quantity::of(value);
            let number = quantity.as_ref().map(|quantity| quantity.number);
            setting.execute(params![point, key, value, number, quantity.map(|quantity| quantity.unit)])?;
        }
        let Some(figures) = figures else { return Ok(()) };
        let places = vec!["?"; 5 + KernelCounters::DEFINITIONS.len()].join(",");
        let mut insert = self.connection.prepare_cached(&format!("INSERT INTO kernel VALUES ({places})"))?;
        for kernel in &figures.kernels {
            let number = |value: Option<u64>| value.map_or(Value::Null, |value| Value::Integer(whole(value)));
            let mut values = vec![Value::Integer(point), Value::Text(kernel.name.clone())];
            values.extend([Some(kernel.calls), kernel.time_ps, kernel.cycles].map(number));
            values.extend(KernelCounters::DEFINITIONS.iter().map(|definition| number(kernel.counter(definition.name))));
            insert.execute(params_from_iter(values))?;
        }
        self.insert_readings("statistic", point, &figures.statistics)?;
        self.insert_readings("metric", point, &figures.metrics)
    }

    fn insert_readings(&self, table: &str, point: i64, readings: &[Reading]) -> rusqlite::Result<()> {
        let mut insert =
            self.connection.prepare_cached(&format!("INSERT INTO {table} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"))?;
        for Reading { name, location, instances, sum, avg, min, max, unit } in readings {
            insert.execute(params![point, name, location, whole(*instances), sum, avg, min, max, unit])?;
        }
        Ok(())
    }

    pub(super) fn end(self) -> Result<(), SweepError> {
        let Database { connection, file, path } = self;
        connection.execute_batch("COMMIT").map_err(failed(&path))?;
        connection.close().map_err(|(_, error)| failed(&path)(error))?;
        let named = file.as_file().sync_all().and_then(|()| file.persist(&path).map_err(|error| error.error));
        named.map(drop).map_err(files::failed("write", &path))
    }
}

/// A count as SQLite has it: a number of 63 bits. A greater count becomes the greatest.
fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::tests::collected;
    use rusqlite::Connection;

    #[test]
    fn the_database_has_all_of_it() {
        let (folder, _) = collected(&["500 MHz", "x", "3"], &[]);
        let database = Connection::open(folder.path().join("sweep.db")).expect("a database");
        let one = |query: &str| database.query_row(query, [], |row| row.get::<_, String>(0)).expect(query);
        assert_eq!(one("SELECT value FROM sweep WHERE name = 'points'"), "3");
        assert_eq!(
            one("SELECT group_concat(status) FROM (SELECT status FROM point ORDER BY point)"),
            "done,not_run,done"
        );
        assert_eq!(one("SELECT number || ' ' || unit FROM setting WHERE point = 0"), "500.0 MHz");
        assert_eq!(one("SELECT value || ifnull(number, '-') FROM setting WHERE point = 1"), "x-");
        assert_eq!(one("SELECT sum(time_ps) || '' FROM kernel WHERE point = 2"), "600");
        assert_eq!(
            one("SELECT group_concat(metric || location) FROM metric WHERE point = 0"),
            "ipcgpu.sm[*],bytesgpu.hbm[*],bytesgpu.l2[*]"
        );
    }
}
