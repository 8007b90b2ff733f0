//! The shape of the contents of traces, in words, and a test that pins it to the version of the format.
//!
//! `schema.txt` has it as it was when the version was raised last: a line for each type, or
//! for each variant of one, that events are made of.

use super::event::Event;
use super::header::FORMAT_VERSION;
use crate::AccessProperty;
use crate::call::{
    ActivityWork, AdviceChange, AllocationKind, ConditionalKind, CopyEnd, CopyPlace, IpcCall, Limit, ManagementCall,
    MemoryAccess, ProfilerCall, VariableKind, VirtualMemoryCall,
};
use crate::{AddressMode, Call, CallResult, ChannelKind, CudaError, Resource};
use serde_reflection::{ContainerFormat, Samples, Tracer, TracerConfig};
use std::fs;
use std::path::Path;

/// Set to 1, it lets the test write `schema.txt`, where the version has been raised.
const UPDATE: &str = "BALAR_UPDATE_TRACE_SCHEMA";

/// The types of all events by name, as serde sees them: fields and variants in their order.
fn schema() -> String {
    let (mut tracer, samples) = (Tracer::new(TracerConfig::default()), Samples::new());
    // All variants of an enumeration are seen where it is asked for by itself; those within others come before these.
    macro_rules! see {
        ($($enumeration:ty),* $(,)?) => {
            $( tracer.trace_type::<$enumeration>(&samples).expect("a type that serde can read"); )*
        };
    }
    see![
        AccessProperty,
        AdviceChange,
        CudaError,
        AddressMode,
        ChannelKind,
        Resource,
        AllocationKind,
        CopyEnd,
        IpcCall,
        Limit,
        MemoryAccess,
        ProfilerCall,
        ManagementCall,
        CopyPlace,
        ActivityWork,
        ConditionalKind,
        VariableKind
    ];
    see![VirtualMemoryCall, Call, CallResult, Event];
    let types = tracer.registry().expect("every enumeration is in the list above");
    let types = types.iter().map(|(name, format)| match format {
        // A variant is a line.
        ContainerFormat::Enum(variants) => {
            let variants = variants.iter().map(|(number, variant)| format!("  {number} {variant:?}\n"));
            format!("{name}: Enum\n{}", variants.collect::<String>())
        }
        other => format!("{name}: {other:?}\n"),
    });
    format!("version {FORMAT_VERSION}\n{}", types.collect::<String>())
}

#[test]
fn another_shape_of_events_has_another_version() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/trace/schema.txt");
    let pinned = fs::read_to_string(&path).unwrap_or_default();
    let (schema, version) = (schema(), format!("version {FORMAT_VERSION}"));
    if std::env::var_os(UPDATE).is_some_and(|value| value == "1") && pinned.lines().next() != Some(&version) {
        fs::write(&path, &schema).expect("the source can be written");
        return;
    }
    let differs = || {
        let (old, new) = (pinned.lines(), schema.lines());
        let gone = old.filter(|line| !schema.contains(line)).map(|line| format!("- {line}\n"));
        gone.chain(new.filter(|line| !pinned.contains(line)).map(|line| format!("+ {line}\n"))).collect::<String>()
    };
    assert!(
        schema == pinned,
        "events have another shape, and older traces would be misread. Raise FORMAT_VERSION (header.rs, docs/traces.md), record the \
         traces in tests/traces again, and run this test with {UPDATE}=1.\n{}",
        differs()
    );
}

#[test]
fn the_schema_names_what_traces_hold() {
    let schema = schema();
    for part in
        ["Event: Enum", "Call: Enum", "GraphLaunch", "CudaError: Enum", "VirtualMemoryCall: Enum", "host_picoseconds"]
    {
        assert!(schema.contains(part), "{part}: {schema}");
    }
}
