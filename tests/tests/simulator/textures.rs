//! Textures and surfaces from the host program to the texels.

use balar_actors::engine::RunOptions;
use balar_actors::simulation::simulate_program;
use balar_host::{
    AddressMode, ArrayDescription, Call, ChannelFormat, ChannelKind, CudaError, Resource, TextureDescription,
};
use balar_tests::steps::{Argument, Seen, Step, Steps, call, download, launch, read_array, upload, value, write_array};
use balar_tests::{built_in, sum};

const FLOAT: ChannelFormat = ChannelFormat { channels: 1, bits: 32, kind: ChannelKind::Float };

fn run(steps: Vec<Step>) -> (Seen, balar_actors::simulation::RunResult) {
    run_module(("textures.ptx", include_str!("../../device_code/textures.ptx")), steps)
}

fn run_module(ptx: (&str, &str), steps: Vec<Step>) -> (Seen, balar_actors::simulation::RunResult) {
    let (program, seen) = Steps::new(steps);
    let result = simulate_program(&built_in("v100_node"), "textures", ptx, program, RunOptions::default());
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    let seen = seen.lock().expect("the run is over").clone();
    (seen, result)
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn a_picture_is_resized_from_an_array_to_a_surface() {
    const SMALL: usize = 8;
    const LARGE: usize = 16;
    let picture: Vec<f32> = (0..SMALL * SMALL).map(|n| (n * n % 97) as f32).collect();
    let array = |size: usize| {
        let extent = [size as u32, size as u32, 0];
        call(Call::ArrayCreate { description: ArrayDescription { format: FLOAT, extent, layers: 0 } })
    };
    let data = bytes(&picture);
    let (seen, result) = run(vec![
        array(SMALL),
        array(LARGE),
        write_array(0, [4 * SMALL as u64, SMALL as u64, 1], data),
        Box::new(|results| Call::TextureCreate {
            resource: Resource::Array(value(results, 0)),
            description: TextureDescription { is_linear: true, is_normalized: true, ..Default::default() },
        }),
        Box::new(|results| Call::SurfaceCreate { array: value(results, 1) }),
        launch(
            "resize",
            [2, 2],
            [8, 8],
            &[Argument::Value(3), Argument::Value(4), Argument::Word(LARGE as u32), Argument::Word(LARGE as u32)],
        ),
        read_array(1, [4 * LARGE as u64, LARGE as u64, 1]),
        Box::new(|results| Call::ImageDestroy { object: value(results, 3) }),
        Box::new(|results| Call::ArrayDestroy { array: value(results, 0) }),
    ]);
    assert!(result.completed(), "{:?}", result.program);
    // A texel of the result lies a quarter of a texel beside one of the picture: weights 3/4 and 1/4.
    let at = |x: usize, y: usize| picture[y.min(SMALL - 1) * SMALL + x.min(SMALL - 1)];
    let place = |at: usize| {
        let first = at.div_ceil(2);
        // (first texel, second one, the second one's quarters)
        if at.is_multiple_of(2) { (first.saturating_sub(1), first, 3.0) } else { (first - 1, first, 1.0) }
    };
    let words = seen.words(0);
    for y in 0..LARGE {
        for x in 0..LARGE {
            let ((x0, x1, wx), (y0, y1, wy)) = (place(x), place(y));
            let row = |y: usize| (4.0 - wx) * at(x0, y) + wx * at(x1, y);
            let expected = ((4.0 - wy) * row(y0) + wy * row(y1)) / 16.0;
            assert_eq!(f32::from_bits(words[y * LARGE + x]), expected, "({x}, {y})");
        }
    }
    // Eight warps fetch; the texels lie in the lines of an array of 256 bytes.
    assert_eq!(sum(&result, "gpu.sm", "inst_global_loads"), 8);
    assert!(sum(&result, "gpu.sm", "l1_sectors_load") >= 16, "all texels of a blend are asked for");
}

#[test]
fn linear_memory_reads_as_zero_outside_and_layers_are_blended_bytes() {
    let table: Vec<u8> = (0..64i32).flat_map(|n| (n * 5 - 50).to_le_bytes()).collect();
    let format = ChannelFormat { channels: 1, bits: 32, kind: ChannelKind::Signed };
    let (seen, _) = run(vec![
        call(Call::Malloc { bytes: 256 }),
        call(Call::Malloc { bytes: 256 }),
        upload(0, table),
        Box::new(move |results| Call::TextureCreate {
            resource: Resource::Linear { pointer: value(results, 0), bytes: 256, format },
            description: TextureDescription::default(),
        }),
        launch("gather", [2, 1], [32, 1], &[Argument::Value(3), Argument::Value(1), Argument::Word(40)]),
        download(1, 160),
    ]);
    let expected: Vec<u32> = (0..40i32)
        .map(|at| 3 * at - 7)
        .map(|place| if (0..64).contains(&place) { (place * 5 - 50) as u32 } else { 0 })
        .collect();
    assert_eq!(seen.words(0), expected);

    let texels: Vec<u8> = (0..2 * 2 * 4 * 4).map(|n| (n * 3) as u8).collect();
    let format = ChannelFormat { channels: 4, bits: 8, kind: ChannelKind::Unsigned };
    let (seen, _) = run(vec![
        call(Call::ArrayCreate { description: ArrayDescription { format, extent: [2, 2, 0], layers: 4 } }),
        call(Call::Malloc { bytes: 512 }),
        write_array(0, [2 * 4, 2, 4], texels.clone()),
        Box::new(|results| Call::TextureCreate {
            resource: Resource::Array(value(results, 0)),
            description: TextureDescription {
                addressing: [AddressMode::Clamp, AddressMode::Border, AddressMode::Clamp],
                reads_normalized_floats: true,
                ..Default::default()
            },
        }),
        launch("layers", [1, 1], [32, 1], &[Argument::Value(3), Argument::Value(1)]),
        download(1, 512),
    ]);
    for (thread, values) in seen.words(0).chunks(4).enumerate() {
        let (x, y, layer) = ((thread % 4).min(1), thread / 4 % 2, thread / 8);
        for (channel, value) in values.iter().enumerate() {
            let expected = f32::from(texels[(layer * 4 + y * 2 + x) * 4 + channel]) / 255.0;
            assert_eq!(f32::from_bits(*value), expected, "thread {thread}, channel {channel}");
        }
    }
}

#[test]
fn mistakes_of_the_host_and_of_kernels_have_their_errors() {
    let array =
        || call(Call::ArrayCreate { description: ArrayDescription { format: FLOAT, extent: [8, 8, 0], layers: 0 } });
    let (seen, result) = run(vec![
        array(),
        Box::new(|results| Call::SurfaceCreate { array: value(results, 0) }),
        launch("outside", [1, 1], [32, 1], &[Argument::Value(1)]),
        call(Call::DeviceSynchronize),
    ]);
    assert_eq!(seen.error(), Some(CudaError::IllegalAddress));
    let error = result.program.and_then(|program| program.error).expect("the program gave up");
    assert!(error.contains("at [32, 0, 0, 0] (in the instruction's order) outside a surface of 8 x 8 x 1"), "{error}");

    let integers = ChannelFormat { channels: 1, bits: 32, kind: ChannelKind::Signed };
    let three = ChannelFormat { channels: 3, bits: 8, kind: ChannelKind::Unsigned };
    let describe =
        |format| call(Call::ArrayCreate { description: ArrayDescription { format, extent: [4, 0, 0], layers: 0 } });
    let cases: Vec<(Vec<Step>, CudaError)> = vec![
        (vec![describe(three)], CudaError::InvalidChannelDescriptor),
        (
            vec![
                describe(integers),
                Box::new(|results| Call::TextureCreate {
                    resource: Resource::Array(value(results, 0)),
                    description: TextureDescription { is_linear: true, ..Default::default() },
                }),
            ],
            CudaError::InvalidFilterSetting,
        ),
        (vec![call(Call::SurfaceCreate { array: 9 })], CudaError::InvalidResourceHandle),
        (vec![call(Call::ImageDestroy { object: 9 })], CudaError::InvalidValue),
        (
            vec![
                array(),
                Box::new(|results| Call::SurfaceBind { module: 0, name: "none".into(), array: value(results, 0) }),
            ],
            CudaError::InvalidSymbol,
        ),
    ];
    for (steps, expected) in cases {
        let (seen, _) = run(steps);
        assert_eq!(seen.error(), Some(expected));
    }
}

/// References of the module, as CUDA had them before texture objects.
#[test]
fn references_of_the_module_are_bound_by_name() {
    let ptx = "\
.version 6.0
.target sm_60
.address_size 64
.global .texref picture;
.global .surfref result;
.visible .entry negate()
{
    .reg .b32 %r<3>; .reg .f32 %f<5>; .reg .pred %p;
    mov.u32 %r0, %tid.x;
    shl.b32 %r1, %r0, 2;
    tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [picture, {%r0}];
    neg.f32 %f4, %f0;
    mov.b32 %r2, %f4;
    sust.b.1d.b32.trap [result, {%r1}], %r2;
    ret;
}
";
    let array =
        || call(Call::ArrayCreate { description: ArrayDescription { format: FLOAT, extent: [32, 0, 0], layers: 0 } });
    let values: Vec<f32> = (0..32).map(|n| n as f32 * 1.5).collect();
    let data = bytes(&values);
    let steps = |bound: bool| -> Vec<Step> {
        let data = data.clone();
        vec![
            array(),
            array(),
            write_array(0, [32 * 4, 1, 1], data.clone()),
            Box::new(move |results| Call::TextureBind {
                module: 0,
                name: if bound { "picture" } else { "result" }.into(),
                resource: Resource::Array(value(results, 0)),
                description: TextureDescription::default(),
            }),
            Box::new(|results| Call::SurfaceBind { module: 0, name: "result".into(), array: value(results, 1) }),
            launch("negate", [1, 1], [32, 1], &[]),
            read_array(1, [32 * 4, 1, 1]),
        ]
    };
    let (seen, _) = run_module(("negate.ptx", ptx), steps(true));
    let expected: Vec<u32> = values.iter().map(|value| (-value).to_bits()).collect();
    assert_eq!(seen.words(0), expected);
    let (seen, result) = run_module(("negate.ptx", ptx), steps(false));
    assert_eq!(seen.error(), Some(CudaError::IllegalAddress));
    let error = result.program.and_then(|program| program.error).expect("the program gave up");
    assert!(error.contains("is no texture or surface object by kernel negate"), "{error}");
}

#[test]
fn a_kernel_reads_what_a_reference_meant_at_its_launch() {
    // Many turns, so that the first kernel still runs when the reference is bound anew.
    let ptx = "\
.version 6.0
.target sm_60
.address_size 64
.global .texref picture;
.visible .entry copy(.param .u64 to)
{
    .reg .b32 %r<4>; .reg .b64 %d<3>; .reg .f32 %f<5>; .reg .pred %p;
    mov.u32 %r0, %tid.x;
    mov.u32 %r1, 0;
again:
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, 1000;
    @%p bra again;
    tex.1d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [picture, {%r0}];
    ld.param.u64 %d0, [to];
    mul.wide.u32 %d1, %r0, 4;
    add.u64 %d2, %d0, %d1;
    st.global.f32 [%d2], %f0;
    ret;
}
";
    const BYTES: u64 = 32 * 4;
    let values = |factor: f32| (0..32).map(|n| n as f32 * factor).collect::<Vec<f32>>();
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
    let bind = |array: usize| -> Step {
        Box::new(move |results| Call::TextureBind {
            module: 0,
            name: "picture".into(),
            resource: Resource::Array(value(results, array)),
            description: TextureDescription::default(),
        })
    };
    let array =
        || call(Call::ArrayCreate { description: ArrayDescription { format: FLOAT, extent: [32, 0, 0], layers: 0 } });
    let copy = |to: usize| launch("copy", [1, 1], [32, 1], &[Argument::Value(to)]);
    let (seen, result) = run_module(
        ("copy.ptx", ptx),
        vec![
            array(),
            array(),
            call(Call::Malloc { bytes: BYTES }),
            call(Call::Malloc { bytes: BYTES }),
            write_array(0, [BYTES, 1, 1], bytes(&values(1.5))),
            write_array(1, [BYTES, 1, 1], bytes(&values(-2.0))),
            bind(0),
            copy(2),
            bind(1),
            copy(3),
            download(2, BYTES),
            download(3, BYTES),
        ],
    );
    assert!(result.completed(), "{:?}", result.program);
    assert_eq!(seen.words(0), bits(values(1.5)));
    assert_eq!(seen.words(1), bits(values(-2.0)));
}
