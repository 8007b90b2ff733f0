//! Quotients of GPUs over time, as counter tracks of a timeline.

use balar_protocol::SimTime;
use balar_record::sampled::SampledCounter;
use balar_record::series::{Column, Row, Table, Tables};

/// Gathers them. A value is that of the time since the sample before: it is drawn from there.
pub struct TimelineCounters {
    gpus: Vec<String>,
    columns: Vec<Column>,
    tracks: Vec<SampledCounter>,
    /// When the sample before was taken.
    before: SimTime,
    now: SimTime,
}

impl TimelineCounters {
    /// Of GPUs with these paths, in the order of their numbers.
    pub fn new(gpus: Vec<String>) -> TimelineCounters {
        TimelineCounters { gpus, columns: Vec::new(), tracks: Vec::new(), before: SimTime::ZERO, now: SimTime::ZERO }
    }

    /// The run begins.
    pub fn begin(&mut self, tables: &Tables) {
        self.columns = tables.columns(Table::Gpu).to_vec();
    }

    /// A row of the series.
    pub fn row(&mut self, row: &Row<'_>) {
        if row.time > self.now {
            (self.before, self.now) = (self.now, row.time);
        }
        let Some(gpu) = self.gpus.iter().position(|gpu| **gpu == *row.subject.gpu) else { return };
        let place = (gpu, self.gpus[gpu].clone());
        for (column, value) in self.columns.iter().zip(row.values).filter(|(column, _)| !column.is_count) {
            let known = self.tracks.iter().position(|track| track.gpu == place && track.name == column.name);
            let track = known.unwrap_or_else(|| {
                let (name, unit) = (column.name.clone(), column.unit.clone());
                self.tracks.push(SampledCounter { gpu: place.clone(), name, unit, values: Vec::new() });
                self.tracks.len() - 1
            });
            let values = &mut self.tracks[track].values;
            // Where there is no value, the line goes down: a track has one everywhere.
            let value = value.map_or(0.0, |value| value.real());
            if values.last().is_none_or(|(_, last)| *last != value) {
                values.push((self.before, value));
            }
        }
    }

    /// The tracks; the run is over.
    pub fn take(&mut self) -> Vec<SampledCounter> {
        let mut tracks = std::mem::take(&mut self.tracks);
        for track in &mut tracks {
            if track.values.last().is_some_and(|(_, last)| *last != 0.0) {
                track.values.push((self.now, 0.0));
            }
        }
        tracks
    }
}
