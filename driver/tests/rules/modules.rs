//! Modules, and the limits and preferences of their kernels' launches.

use super::play::*;
use balar_host::call::{Function, Launch, VariableKind};
use balar_host::memory::MANAGED_BASE;
use balar_host::{Call, CallResult, CudaError};

const TEXT: &str = "
    .version 7.0 .target sm_70 .address_size 64
    .extern .func undefined_function ();
    .visible .global .align 4 .u32 counter = 7;
    .visible .global .attribute(.managed) .align 8 .u64 both;
    .visible .func (.param .b32 r) deep(.param .b32 n) {
        .reg .b32 a, b; .reg .pred p;
        ld.param.u32 a, [n];
        setp.eq.u32 p, a, 0;
        @p bra END;
        sub.u32 a, a, 1;
        { .param .b32 x; .param .b32 y; st.param.b32 [x], a; call (y), deep, (x); ld.param.b32 b, [y]; }
        add.u32 a, a, b;
        END: st.param.b32 [r], a; ret;
    }
    .visible .entry k(.param .u64 a) .maxntid 64, 1, 1 {
        .shared .align 4 .b8 s[1024];
        .reg .b32 r; .reg .u32 t; mov.u32 t, s; ld.shared.u32 r, [t]; ret;
    }
    .visible .entry recursive(.param .u32 n) {
        .reg .b32 a; ld.param.u32 a, [n];
        { .param .b32 x; .param .b32 y; st.param.b32 [x], a; call (y), deep, (x); ld.param.b32 a, [y]; }
        ret;
    }
    .visible .entry refused() { call undefined_function, (); ret; }";

fn load(text: &str) -> Step {
    call(Call::ModuleLoad { images: vec![text.as_bytes().to_vec().into()], name: "app".to_owned() })
}

fn function(name: &str) -> Function {
    Function { module: 1, name: name.into() }
}

fn launch_of(name: &str, threads: u32, shared_memory_bytes: u32, parameter_bytes: usize) -> Step {
    call(Call::Launch(Launch {
        function: function(name),
        grid: [1, 1, 1],
        block: [threads, 1, 1],
        shared_memory_bytes,
        stream: 0,
        parameters: vec![0; parameter_bytes],
        cooperative: false,
        cluster: None,
        non_portable_cluster: false,
        access_policy: None,
    }))
}

fn error(error: CudaError) -> CallResult {
    CallResult::Error(error)
}

#[test]
fn an_image_for_another_gpu_names_the_node_that_could_run_it() {
    let cubin = include_bytes!("../../../isa/tests/cubins/vectoradd.sm_75.cubin");
    let play = run(vec![call(Call::ModuleLoad { images: vec![cubin.to_vec().into()], name: "app".to_owned() })]);
    assert_eq!(play.results(0), [error(CudaError::NoKernelImageForDevice)]);
    let expected =
        "which has machine code for sm_75 alone (a cubin); the GPU is sm_70, and it could run on turing_node\n";
    assert!(play.errors.ends_with(expected), "{}", play.errors);
}

#[test]
fn a_module_has_kernels_and_variables_until_it_is_unloaded() {
    let play = run(vec![
        load(TEXT),
        launch_of("k", 32, 0, 8),
        call(Call::ModuleUnload { module: 1 }),
        launch_of("k", 32, 0, 8),
        call(Call::ModuleUnload { module: 1 }),
        call(Call::MemoryInfo),
    ]);
    let results = play.results(0);
    let CallResult::Module { module, functions, variables } = &results[0] else { panic!("{}", play.errors) };
    let names: Vec<&str> = functions.iter().map(|function| &*function.name).collect();
    assert_eq!((*module, &names[..]), (1, &["k", "recursive", "refused"][..]));
    let places: Vec<_> = variables.iter().map(|variable| (variable.address, variable.kind)).collect();
    assert_eq!(places, [(first(), VariableKind::Global), (MANAGED_BASE, VariableKind::Managed)]);
    assert_eq!(results[1..3], [CallResult::None, CallResult::None]);
    assert_eq!(results[3..5], [error(CudaError::InvalidResourceHandle), error(CudaError::InvalidResourceHandle)]);
    assert_eq!(results[5], CallResult::MemoryInfo { free: 64 << 20, total: 64 << 20 });
    assert!(!play.is_mapped(first()) && !play.is_mapped(MANAGED_BASE));
}

#[test]
fn launches_are_checked_as_cuda_does() {
    let attributes = || call(Call::FunctionAttributes { function: function("k") });
    let limit = |bytes| call(Call::SetDynamicSharedLimit { function: function("k"), bytes });
    let play = run(vec![
        load(TEXT),
        launch_of("nothing", 32, 0, 0),
        launch_of("refused", 32, 0, 0),
        launch_of("refused", 32, 0, 0),
        launch_of("k", 65, 0, 8),
        launch_of("k", 1025, 0, 8),
        launch_of("k", 0, 0, 8),
        launch_of("k", 32, 0, 4),
        launch_of("k", 32, (47 << 10) + 1, 8),
        limit(95 << 10),
        launch_of("k", 32, 95 << 10, 8),
        limit((95 << 10) + 1),
        attributes(),
    ]);
    use CudaError::{InvalidConfiguration, InvalidDeviceFunction, InvalidValue, NotSupported};
    let results = play.results(0);
    assert_eq!(
        results[1..9],
        [
            InvalidDeviceFunction,
            NotSupported,
            NotSupported,
            InvalidConfiguration,
            InvalidConfiguration,
            InvalidConfiguration,
            InvalidValue,
            InvalidValue
        ]
        .map(error)
    );
    assert_eq!(results[9..12], [CallResult::None, CallResult::None, error(InvalidValue)]);
    let CallResult::Attributes(attributes) = results[12] else { panic!("{results:?}") };
    assert_eq!((attributes.shared_bytes, attributes.maximum_threads), (1024, 64));
    assert_eq!(attributes.maximum_dynamic_shared_bytes, 95 << 10);
    let errors = &play.errors;
    assert_eq!(errors.matches("kernel refused cannot run: ").count(), 1, "told once: {errors}");
    assert!(errors.contains("undefined_function"));
}

#[test]
fn a_preferred_carve_out_is_that_of_later_launches_of_its_kernel() {
    let prefer = |percent| call(Call::SetPreferredCarveOut { function: function("k"), percent });
    let play = run(vec![
        load(TEXT),
        launch_of("k", 32, 0, 8),
        prefer(Some(50)),
        launch_of("k", 32, 0, 8),
        launch_of("recursive", 32, 0, 4),
        prefer(Some(101)),
        prefer(None),
        launch_of("k", 32, 0, 8),
    ]);
    let preferred: Vec<Option<u8>> = play.launches.iter().map(|launch| launch.preferred_carve_out).collect();
    assert_eq!(preferred, [None, Some(50), None, None]);
    assert_eq!(play.results(0)[5], error(CudaError::InvalidValue));
}

#[test]
fn code_that_cannot_be_loaded_is_explained() {
    let play = run(vec![load("not PTX at all"), load("")]);
    assert_eq!(play.results(0), [error(CudaError::InvalidPtx), error(CudaError::InvalidKernelImage)]);
    let errors = &play.errors;
    assert!(errors.contains("app"), "{errors}");
}

#[test]
fn a_larger_stack_is_that_of_recursive_kernels() {
    let limit = balar_host::call::Limit::Stack;
    let play = run(vec![
        load(TEXT),
        launch_of("recursive", 32, 0, 4),
        call(Call::SetLimit { limit, bytes: 64 << 10 }),
        launch_of("recursive", 32, 0, 4),
        launch_of("recursive", 32, 0, 4),
        launch_of("k", 32, 0, 8),
    ]);
    let [own, larger, same, flat] = &play.launches[..] else { panic!("four launches") };
    assert_eq!(larger.local_bytes - own.local_bytes, 48 << 10);
    assert!(own.code.id() != larger.code.id() && larger.code.id() == same.code.id());
    assert_eq!(flat.local_bytes, 0);
}
