//! The comparison of a replayed call's result with the recorded one.

use crate::call::{Call, CallResult, CopyEnd, Launch};

/// How the result of `call` differs from the recorded one, so that the replay cannot go on: later calls name what it gave. `None` where
/// it does not; the bytes of copies are compared elsewhere. What depends on time and on the node (clocks, queries, free memory, which pages are
/// where, what tools ask) may differ.
pub(super) fn compare(call: &Call, recorded: &CallResult, found: &CallResult) -> Option<String> {
    let is_query = matches!(call, Call::EventQuery { .. } | Call::StreamQuery { .. });
    match (recorded, found) {
        (CallResult::Pointer(recorded), CallResult::Pointer(found)) if recorded != found => Some(format!(
            "expected the address {recorded:#x}, found {found:#x}: device memory is laid out otherwise than on the recorded \
                 topology"
        )),
        (recorded @ CallResult::Module { .. }, found @ CallResult::Module { .. }) => module_difference(recorded, found),
        (CallResult::Data(_), CallResult::Data(_)) => None,
        (CallResult::Time { .. }, CallResult::Time { .. })
        | (CallResult::Elapsed { .. }, CallResult::Elapsed { .. })
        | (CallResult::MemoryInfo { .. }, CallResult::MemoryInfo { .. })
        | (CallResult::Size(_), CallResult::Size(_))
        | (CallResult::Attributes(_), CallResult::Attributes(_))
        | (CallResult::HostPages(_), CallResult::HostPages(_))
        | (CallResult::DeviceState(_), CallResult::DeviceState(_))
        | (CallResult::Activity(_), CallResult::Activity(_)) => None,
        (CallResult::None, CallResult::Error(error)) | (CallResult::Error(error), CallResult::None)
            if is_query && *error == crate::CudaError::NotReady =>
        {
            None
        }
        (CallResult::Error(recorded), CallResult::Error(found)) if recorded == found => None,
        (recorded, CallResult::Error(found)) => Some(format!("expected {}, found {found}", described(recorded))),
        (CallResult::Error(recorded), found) => Some(format!("expected {recorded}, found {}", described(found))),
        (recorded, found) if recorded == found => None,
        (recorded, found) => Some(format!("expected {}, found {}", described(recorded), described(found))),
    }
}

/// Kernels and variables are known by their names: their order, and others beside them, are the code's own.
fn module_difference(recorded: &CallResult, found: &CallResult) -> Option<String> {
    let (
        CallResult::Module { module, functions, variables },
        CallResult::Module { module: m, functions: f, variables: v },
    ) = (recorded, found)
    else {
        return None;
    };
    if module != m {
        return Some(format!("expected the module {module}, found {m}"));
    }
    let moved = variables.iter().find_map(|variable| match v.iter().find(|other| other.name == variable.name) {
        None => Some(format!("expected a variable {}, the module has none", variable.name)),
        Some(other) if other.address != variable.address => Some(format!(
            "expected the variable {} at {:#x}, found it at {:#x}: device memory is laid out otherwise than on the recorded topology",
            variable.name, variable.address, other.address
        )),
        Some(other) if other != variable => Some(format!("the variable {} is another than was recorded", variable.name)),
        Some(_) => None,
    });
    moved.or_else(|| {
        functions.iter().find_map(|function| match f.iter().find(|other| other.name == function.name) {
            None => Some(format!("expected a kernel {}, the module has none", function.name)),
            Some(other) if other != function => {
                Some(format!("the kernel {} is another than was recorded", function.name))
            }
            Some(_) => None,
        })
    })
}

fn described(result: &CallResult) -> String {
    match result {
        CallResult::None => "success".to_owned(),
        CallResult::Error(error) => error.to_string(),
        CallResult::Pointer(address) => format!("the address {address:#x}"),
        CallResult::Data(bytes) => format!("{} bytes", bytes.len()),
        CallResult::Object(number) => format!("the object {number:#x}"),
        CallResult::Stream(number) => format!("the stream {number}"),
        CallResult::Event(number) => format!("the event {number}"),
        CallResult::Module { module, .. } => format!("the module {module}"),
        other => format!("{other:?}"),
    }
}

/// The first byte that differs, in words; `None` where all are equal.
pub(super) fn compare_bytes(recorded: &[u8], found: &[u8]) -> Option<String> {
    if recorded.len() != found.len() {
        return Some(format!("expected {} bytes, found {}", recorded.len(), found.len()));
    }
    let first = recorded.iter().zip(found).position(|(recorded, found)| recorded != found)?;
    let different = recorded.iter().zip(found).filter(|(recorded, found)| recorded != found).count();
    // The word that the byte is in says more than the byte.
    let start = first & !3;
    let end = (start + 4).min(recorded.len());
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ");
    Some(format!(
        "offset {first}: expected {:#04x}, found {:#04x} (bytes {start} to {}: expected {}, found {}); {different} of {} bytes \
         differ",
        recorded[first],
        found[first],
        end - 1,
        hexadecimal(&recorded[start..end]),
        hexadecimal(&found[start..end]),
        recorded.len()
    ))
}

/// A call in words, with its subject.
pub(super) fn call_in_words(call: &Call) -> String {
    let name = call.name();
    match call {
        Call::Malloc { bytes } | Call::MallocHost { bytes } | Call::MallocManaged { bytes } => {
            format!("{name} of {bytes} bytes")
        }
        Call::WriteManaged { pointer, data } => format!("{name}, {} bytes at {pointer:#x}", data.len()),
        Call::ReadManaged { pointer, bytes } | Call::TouchManaged { pointer, bytes, .. } => {
            format!("{name}, {bytes} bytes at {pointer:#x}")
        }
        Call::Copy { destination, source, shape, .. } => {
            let bytes = shape.bytes();
            let at = |end: &CopyEnd| match end {
                CopyEnd::Memory { address, .. } => Some(format!("{address:#x}")),
                CopyEnd::Array { array, .. } => Some(format!("array {array}")),
                CopyEnd::Bytes(_) => None,
            };
            let from = at(source).map_or_else(String::new, |place| format!(" from {place}"));
            let to = at(destination).map_or_else(String::new, |place| format!(" to {place}"));
            format!("{name} of {bytes} bytes{from}{to}")
        }
        Call::Launch(Launch { function, .. }) => format!("{name} of {}", function.name),
        Call::ModuleLoad { name: module, .. } => format!("{name} of {module}"),
        Call::FunctionAttributes { function } => format!("{name} of {}", function.name),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{ModuleFunction, ModuleVariable, VariableKind};

    fn module(functions: &[(&str, u32)], variables: &[(&str, u64)]) -> CallResult {
        let function =
            |&(name, bytes): &(&str, u32)| ModuleFunction { name: name.into(), parameters: vec![(0, bytes)] };
        let variable = |&(name, address): &(&str, u64)| ModuleVariable {
            name: name.into(),
            address,
            bytes: 4,
            kind: VariableKind::Global,
        };
        CallResult::Module {
            module: 1,
            functions: functions.iter().map(function).collect(),
            variables: variables.iter().map(variable).collect(),
        }
    }

    /// Code for another GPU lists its kernels in another order, and may have more of them.
    #[test]
    fn modules_are_compared_by_names() {
        let recorded = module(&[("a", 4), ("b", 8)], &[("x", 0x100), ("y", 0x200)]);
        let call = Call::ModuleLoad { images: Vec::new(), name: "app".to_owned() };
        let of = |found: CallResult| compare(&call, &recorded, &found);
        assert_eq!(of(module(&[("b", 8), ("c", 4), ("a", 4)], &[("y", 0x200), ("x", 0x100)])), None);
        for (found, said) in [
            (
                module(&[("a", 4), ("b", 8)], &[("x", 0x100), ("y", 0x300)]),
                "expected the variable y at 0x200, found it at 0x300",
            ),
            (module(&[("a", 4), ("b", 8)], &[("x", 0x100)]), "expected a variable y, the module has none"),
            (module(&[("a", 4)], &[("x", 0x100), ("y", 0x200)]), "expected a kernel b, the module has none"),
            (
                module(&[("a", 4), ("b", 16)], &[("x", 0x100), ("y", 0x200)]),
                "the kernel b is another than was recorded",
            ),
        ] {
            let difference = of(found).unwrap_or_default();
            assert!(difference.starts_with(said), "{difference}");
        }
    }
}
