//! `--timeline FILE`: what happened when, as a trace for Perfetto (<https://ui.perfetto.dev>), in its own format: packets of protobuf
//! messages. docs/timeline.md says what is in it.
//!
//! - `protobuf`: the wire format
//! - `packets`: packets and their sequences
//! - `tracks`: the tree of tracks
//! - `events`: slices, counters and flows
//!
//! **Invariant:** nothing in the file depends on threads or on real time.

mod events;
mod packets;
mod protobuf;
mod tracks;

use crate::options::simulation::SimulationOptions;
use balar_actors::catalogue::timeline::{Section, TrackGroup, TrackKind, TrackPlace, UnitTimeline};
use balar_record::result::RunRecord;
use balar_record::sampled::SampledCounter;
use balar_record::system::exit::ExitStatus;
use balar_record::system::failure::Failure;
use balar_record::system::files::{self, WriteError};
use flate2::Compression;
use flate2::write::GzEncoder;
use packets::{Packets, Write};
use std::io;
use std::path::Path;
use tracks::Tracks;

/// The ranks of sampled counters begin here, behind those that units tell of themselves.
const FIRST_SERIES: u32 = 1000;

/// The track of a sampled counter.
fn place(counter: &SampledCounter, number: usize) -> TrackPlace {
    let (index, path) = &counter.gpu;
    TrackPlace {
        group: TrackGroup::Gpu(*index, path.clone()),
        path: vec![Section::Counters.name(), (FIRST_SERIES + number as u32, counter.name.clone().into())],
        lane: 0,
        kind: TrackKind::Counter(counter.unit.clone().into()),
    }
}

/// Finds out before the run whether its timeline can be written.
///
/// # Errors
///
/// Where it cannot.
pub fn prepare(options: &SimulationOptions) -> Result<(), Failure> {
    let check = |path: &Path| {
        files::check_writable(path).map_err(|error| {
            Failure::mistake(format_args!("--timeline: {error}"), "name a file in a folder that can be written to")
        })
    };
    options.timeline.as_deref().map_or(Ok(()), check)
}

/// Writes the timeline of a run, where one was asked for.
///
/// # Errors
///
/// Where it cannot be written. The rest of the result is worth printing nevertheless.
pub fn write(record: &RunRecord, options: &SimulationOptions) -> Result<(), Failure> {
    let Some(path) = &options.timeline else { return Ok(()) };
    write_file(path, record).map_err(|error| {
        Failure::sentence(
            ExitStatus::BadInput,
            format_args!("the timeline is missing: {error}"),
            Some("all other results of the run are complete".to_owned()),
        )
    })
}

fn write_file(path: &Path, record: &RunRecord) -> Result<(), WriteError> {
    let is_packed = path.extension().is_some_and(|extension| extension == "gz");
    files::write_with(path, |file| {
        if !is_packed {
            return write_trace(record, file);
        }
        let mut packer = GzEncoder::new(file, Compression::new(3));
        write_trace(record, &mut packer)?;
        packer.finish().map(drop)
    })
}

/// Writes the trace: tracks, the run, what each unit has told, samples.
fn write_trace(record: &RunRecord, file: &mut dyn Write) -> io::Result<()> {
    let nothing: &[UnitTimeline] = &[];
    let units = record.timeline.as_deref().unwrap_or(nothing);
    let series: Vec<(&SampledCounter, TrackPlace)> =
        record.series.iter().enumerate().map(|(number, series)| (series, place(series, number))).collect();
    let of_units = units.iter().flat_map(UnitTimeline::tracks);
    let tracks = Tracks::of(of_units.chain(series.iter().map(|(_, place)| place)).cloned());
    let mut packets = Packets::new(file);
    tracks.write(&mut packets)?;
    events::write_run(&name(record), &facts(record), record.sim_time, &mut packets)?;
    for unit in units {
        events::write_unit(unit, &tracks, record.sim_time, &mut packets)?;
    }
    for (series, place) in &series {
        events::write_series(series, tracks.number(place), &mut packets)?;
    }
    Ok(())
}

/// The name of the run.
fn name(record: &RunRecord) -> String {
    match record.workload.as_str() {
        "" => record.topology.clone(),
        workload => format!("{workload} on {}", record.topology),
    }
}

/// What is said of the run.
fn facts(record: &RunRecord) -> Vec<(&'static str, String)> {
    let parameters = record.parameters.iter().map(|(name, value)| format!("{name}={value}"));
    let mut facts = vec![
        ("program", concat!("balar-actors ", env!("CARGO_PKG_VERSION")).to_owned()),
        ("topology", record.topology.clone()),
        ("workload", record.workload.clone()),
        ("parameters", parameters.collect::<Vec<_>>().join(" ")),
        ("isa", record.isa.clone()),
        ("ended_by", record.ending.name().to_owned()),
        ("sim_time_ps", record.sim_time.0.to_string()),
        ("time_unit", "1 ns of this trace is 1 ns of simulated time".to_owned()),
    ];
    facts.extend(record.problem().map(|problem| ("problem", problem)));
    facts
}
