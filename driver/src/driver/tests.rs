//! A driver as a whole: its state can be saved, and waits of calls come to an end.

use super::*;
use crate::code::tables::{DriverTables, KernelInfo};
use crate::test_support::{gpu_description, program};
use crate::{Caller, Outcome, Wait};
use balar_host::call::{BUILT_IN_MODULE, Function, Launch};
use balar_host::{Call, CallResult, ThreadId};
use balar_isa::program::Resources;
use balar_protocol::cuda::{LaunchId, ProgramId};
use balar_protocol::{ContextId, SimTime};

const CALLER: Caller = Caller { thread: ThreadId(0), context: ContextId::first(0) };

fn tables() -> DriverTables {
    let tables = DriverTables::default();
    let resources = Resources { registers_per_thread: 32, ..Resources::default() };
    let code = tables.programs.add(program());
    let kernel = KernelInfo { name: "k".into(), code, resources, ..KernelInfo::default() };
    tables.kernels.insert(ContextId::first(0), BUILT_IN_MODULE, kernel);
    tables
}

fn driver(tables: &DriverTables) -> Driver {
    let settings = DriverSettings {
        gpus: vec![gpu_description()],
        has_host_window: true,
        queue_depth: 8,
        ..DriverSettings::default()
    };
    Driver::new(settings, tables)
}

fn launch(stream: u32) -> Call {
    Call::Launch(Launch {
        function: Function { module: BUILT_IN_MODULE, name: "k".into() },
        grid: [1; 3],
        block: [32, 1, 1],
        shared_memory_bytes: 0,
        stream,
        parameters: Vec::new(),
        cooperative: false,
        cluster: None,
        non_portable_cluster: false,
        access_policy: None,
    })
}

/// The effects of the driver, in words.
fn wanted(driver: &mut Driver) -> Vec<String> {
    driver.begin(SimTime(7));
    let mut effects = Vec::new();
    driver.take_effects(&mut effects);
    effects.iter().map(|effect| format!("{effect:?}")).collect()
}

/// Makes calls that leave something of every kind; then makes others on these things, and gives their outcomes and effects.
fn before(driver: &mut Driver) {
    let calls = [
        Call::StreamCreate { non_blocking: true, priority: -1 },
        Call::EventCreate { timed: true },
        Call::Malloc { bytes: 5 << 20 },
        Call::MallocManaged { bytes: 4096 },
        launch(1),
        Call::EventRecord { event: 1, stream: 1 },
        Call::HostFunction { stream: 1, function: 9 },
        launch(0),
    ];
    for call in calls {
        let outcome = driver.call(CALLER, call);
        assert!(matches!(outcome, Ok(Outcome::Returns(_))), "{outcome:?}");
    }
    assert_eq!(wanted(driver).iter().filter(|effect| effect.starts_with("Launch")).count(), 2);
}

fn after(driver: &mut Driver) -> Vec<String> {
    let mut seen = vec![format!("{:?}", driver.call(CALLER, Call::EventQuery { event: 1 }))];
    for launch in [LaunchId(1), LaunchId(2)] {
        driver.kernel_completed(launch, None);
        seen.append(&mut wanted(driver));
    }
    let calls = [
        Call::CallbackDone { function: 9 },
        Call::EventElapsed { start: 1, end: 1 },
        Call::Malloc { bytes: 1 },
        Call::DeviceReset,
        Call::StreamQuery { stream: 1 },
        launch(2),
    ];
    for call in calls {
        seen.push(format!("{:?}", driver.call(CALLER, call)));
        seen.append(&mut wanted(driver));
    }
    seen
}

#[test]
fn a_saved_state_goes_on_as_the_driver_would_have() {
    let tables = tables();
    let mut first = driver(&tables);
    before(&mut first);
    let saved = postcard::to_stdvec(first.state()).expect("a state is a plain value");
    let mut second = driver(&tables);
    assert_eq!(second.restore(postcard::from_bytes(&saved).expect("it can be read")), Ok(()));
    assert_eq!(postcard::to_stdvec(second.state()).expect("a plain value"), saved);
    let (expected, seen) = (after(&mut first), after(&mut second));
    assert_eq!(seen, expected);
    assert!(seen.iter().any(|words| words.ends_with("function: 9 }")), "{seen:?}");
    assert!(seen.iter().any(|words| words.contains("Elapsed { picoseconds: 0 }")), "{seen:?}");
}

#[test]
fn a_state_with_code_that_is_not_loaded_is_refused() {
    let tables = tables();
    let mut first = driver(&tables);
    let key = (ProgramId(3), 2048);
    first.state.launches.larger_stacks.insert(key, (tables.programs.add(program()), 64));
    let saved = postcard::to_stdvec(first.state()).expect("a state is a plain value");
    let state = postcard::from_bytes(&saved).expect("it can be read");
    assert_eq!(driver(&DriverTables::default()).restore(state), Err(ProgramId(2)));
    let state = postcard::from_bytes(&saved).expect("it can be read");
    assert_eq!(driver(&tables).restore(state), Ok(()));
}

#[test]
fn a_wait_that_is_over_says_so() {
    let mut driver = driver(&tables());
    assert_eq!(driver.call(CALLER, launch(0)), Ok(Outcome::Returns(CallResult::None)));
    let Ok(Outcome::Waits(Wait { until, .. })) = driver.call(CALLER, Call::DeviceSynchronize) else {
        panic!("a kernel is under way");
    };
    driver.begin(SimTime(0));
    assert!(!driver.is_over(&until));
    driver.kernel_completed(LaunchId(1), None);
    assert!(driver.is_over(&until));
}
