//! `shock`: a Lagrangian shock wave on an unstructured mesh of hexahedra, in the manner of LULESH (LLNL-TR-490254).

mod mesh;
mod reference;

use crate::descriptor::{Descriptor, code, cubins, integer};
use crate::numeric::compare_within;
use crate::parameters::{Parameters, WorkloadError};
use crate::script::{Argument, Buffer, Check, Outcome, Queue, Script, ScriptedProgram, Shape, Transfer};
use balar_host::Measurement;
use mesh::Mesh;
use reference::Reference;

/// Threads of a block.
const BLOCK: u32 = 128;
/// Error of a number, as a part of the largest: compilers fuse multiplications and additions as they see fit.
const TOLERANCE: f64 = 1e-9;
const HOURGLASS_STRENGTH: f64 = 3.0;
const LARGEST_STEP: f64 = 1e-2;
const LARGEST_VISCOSITY: f64 = 1e12;
const VOLUME_RANGE: [f64; 2] = [1e-9, 1e9];

pub(crate) const DESCRIPTOR: Descriptor = Descriptor {
    name: "shock",
    summary: "Lagrangian shock hydrodynamics on unstructured hexahedra in double precision; 29 kernels a time step",
    parameters: &[
        integer("edge", 4, 2, 128, "elements along each edge of the cube"),
        integer("iterations", 2, 1, 10_000, "time steps"),
    ],
    code: code!("shock"),
    cubins: cubins!("shock"),
    small: "edge=3,iterations=2",
    build,
};

struct Wave {
    mesh: Mesh,
    iterations: u32,
    energy: Transfer,
    volume: Transfer,
    places: [Transfer; 3],
    clock: Transfer,
    failures: Transfer,
}

/// Device memory of a struct of pointers, in the order of its members.
struct Fields(Vec<Buffer>);

impl Fields {
    fn arguments(&self) -> Vec<Argument> {
        self.0.iter().map(|buffer| Argument::Buffer(*buffer)).collect()
    }
}

/// The device's copy of a mesh and its state.
struct Device {
    nodes: Fields,
    elements: Fields,
    state: Fields,
    clock: Fields,
    planes: [Buffer; 3],
}

impl Device {
    fn new(script: &mut Script, mesh: &Mesh) -> Self {
        let node_count = mesh.places.len();
        let element_count = mesh.elements.len();
        let zeros = |script: &mut Script, count: usize| {
            let bytes = count as u64 * 8;
            let buffer = script.allocate(bytes);
            script.fill(buffer, 0, bytes, Queue::Default);
            buffer
        };
        let mut nodes: Vec<Buffer> = Vec::new();
        for axis in 0..3 {
            let places: Vec<f64> = mesh.places.iter().map(|place| place[axis]).collect();
            nodes.push(script.allocate_with(&places));
        }
        nodes.extend((0..9).map(|_| zeros(script, node_count)));
        nodes.push(script.allocate_with(&mesh.node_masses));
        nodes.push(script.allocate_with(&mesh.corner_starts));
        nodes.push(script.allocate_with(&mesh.corners));

        let mut elements = vec![
            script.allocate_with(mesh.elements.as_flattened()),
            script.allocate_with(mesh.neighbours.as_flattened()),
            script.allocate_with(&mesh.borders),
            script.allocate_with(&mesh.energies()),
        ];
        // Pressure, viscosity and its two coefficients.
        elements.extend((0..4).map(|_| zeros(script, element_count)));
        elements.push(script.allocate_with(&vec![1.0f64; element_count]));
        // New volume, change of volume.
        elements.extend((0..2).map(|_| zeros(script, element_count)));
        // The mass is that of a density of 1.
        elements.extend((0..2).map(|_| script.allocate_with(&mesh.volumes)));
        // Strain rate to the lengths along xi, eta and zeta.
        elements.extend((0..14).map(|_| zeros(script, element_count)));
        elements.extend((0..6).map(|_| zeros(script, 8 * element_count)));

        let state = (0..15).map(|_| zeros(script, element_count)).collect();
        let mut clock = vec![zeros(script, 1), script.allocate_with(&[mesh.first_step()])];
        clock.extend((0..2).map(|_| script.allocate_with(&[1e20f64])));
        clock.extend((0..2).map(|_| zeros(script, 1)));
        let planes = mesh.planes.each_ref().map(|plane| script.allocate_with(plane));
        Device { nodes: Fields(nodes), elements: Fields(elements), state: Fields(state), clock: Fields(clock), planes }
    }

    /// The launches of one time step.
    fn step(&self, script: &mut Script, mesh: &Mesh) {
        let node_count = mesh.places.len() as u32;
        let element_count = mesh.elements.len() as u32;
        let [nodes, elements, state, clock] =
            [&self.nodes, &self.elements, &self.state, &self.clock].map(Fields::arguments);
        let mut launch = |kernel: &str, count: u32, groups: &[&[Argument]]| {
            let mut arguments = groups.concat();
            arguments.push(Argument::U32(count));
            script.launch(kernel, Shape::linear(count.div_ceil(BLOCK), BLOCK), &arguments);
        };
        let number = |value: f64| [Argument::F64(value)];

        launch("stressTerms", element_count, &[&elements]);
        launch("stressForces", element_count, &[&elements, &nodes]);
        launch("gatherForces", node_count, &[&elements, &nodes]);
        launch("volumeDerivatives", element_count, &[&elements, &nodes, &clock]);
        launch("hourglassForces", element_count, &[&elements, &nodes, &number(HOURGLASS_STRENGTH)]);
        launch("addForces", node_count, &[&elements, &nodes]);
        launch("accelerate", node_count, &[&nodes]);
        for (axis, plane) in self.planes.iter().enumerate() {
            let held = [nodes[6 + axis], Argument::Buffer(*plane)];
            launch("holdPlane", mesh.planes[axis].len() as u32, &[&held]);
        }
        launch("integrateVelocity", node_count, &[&nodes, &clock]);
        launch("integratePosition", node_count, &[&nodes, &clock]);

        launch("kinematics", element_count, &[&elements, &nodes, &clock]);
        launch("strainRates", element_count, &[&elements, &clock]);
        launch("monotonicGradients", element_count, &[&elements, &nodes]);
        launch("monotonicViscosity", element_count, &[&elements]);
        launch("checkViscosity", element_count, &[&elements, &clock, &number(LARGEST_VISCOSITY)]);

        let [_, _, compression, half_compression, ..] = state[..] else { return };
        let [pressure, half_pressure] = [state[10], state[11]];
        launch("clampVolumes", element_count, &[&elements, &state, &VOLUME_RANGE.map(Argument::F64)]);
        launch("copyState", element_count, &[&elements, &state]);
        launch("compress", element_count, &[&state]);
        launch("energyHalf", element_count, &[&state]);
        launch("gasPressure", element_count, &[&state, &[half_compression, half_pressure]]);
        launch("viscosityHalf", element_count, &[&state]);
        launch("gasPressure", element_count, &[&state, &[compression, pressure]]);
        launch("energyWhole", element_count, &[&state]);
        launch("gasPressure", element_count, &[&state, &[compression, pressure]]);
        launch("viscosityWhole", element_count, &[&state]);
        launch("storeState", element_count, &[&elements, &state]);
        launch("soundSpeeds", element_count, &[&elements, &state]);
        launch("updateVolumes", element_count, &[&elements]);
        launch("courantLimit", element_count, &[&elements, &clock]);
        launch("hydroLimit", element_count, &[&elements, &clock]);
    }
}

fn build(parameters: &Parameters) -> Result<ScriptedProgram, WorkloadError> {
    let iterations = parameters.small("iterations");
    let mesh = Mesh::cube(parameters.small("edge"));
    let mut script = Script::default();
    let device = Device::new(&mut script, &mesh);
    for _ in 0..iterations {
        let arguments = [device.clock.arguments(), vec![Argument::F64(LARGEST_STEP)]].concat();
        script.launch("advanceTime", Shape::linear(1, 32), &arguments);
        device.step(&mut script, &mesh);
    }
    let (nodes, elements) = (mesh.places.len() as u64 * 8, mesh.elements.len() as u64 * 8);
    let energy = script.download(device.elements.0[3], elements, Queue::Default);
    let volume = script.download(device.elements.0[8], elements, Queue::Default);
    let places = [0, 1, 2].map(|axis| script.download(device.nodes.0[axis], nodes, Queue::Default));
    let clock = script.download(device.clock.0[0], 8, Queue::Default);
    let failures = script.download(device.clock.0[5], 4, Queue::Default);
    for fields in [&device.nodes, &device.elements, &device.state, &device.clock] {
        fields.0.iter().for_each(|buffer| script.release(*buffer));
    }
    device.planes.iter().for_each(|plane| script.release(*plane));
    script.finish(Wave { mesh, iterations, energy, volume, places, clock, failures })
}

impl Check for Wave {
    fn verify(&self, outcome: &Outcome) -> Result<(), String> {
        let failures = outcome.values::<u32>(self.failures, 1)?[0];
        if failures != 0 {
            return Err(format!("an element's volume or viscosity is out of range (flags {failures:#x})"));
        }
        let mut reference = Reference::new(&self.mesh);
        for _ in 0..self.iterations {
            reference.step();
        }
        let time = outcome.values::<f64>(self.clock, 1)?;
        compare_within(TOLERANCE, &[reference.time], time.iter().copied(), |_| "the time reached".to_owned())?;
        let numbers = [("energy", self.energy, &reference.energy), ("volume", self.volume, &reference.volume)];
        for (name, transfer, expected) in numbers {
            let actual = outcome.values::<f64>(transfer, expected.len())?;
            compare_within(TOLERANCE, expected, actual.iter().copied(), |element| {
                format!("{name} of element {element}")
            })?;
        }
        for (axis, transfer) in self.places.iter().enumerate() {
            let expected: Vec<f64> = reference.places.iter().map(|place| place[axis]).collect();
            let actual = outcome.values::<f64>(*transfer, expected.len())?;
            let name = ["x", "y", "z"][axis];
            compare_within(TOLERANCE, &expected, actual.iter().copied(), |node| format!("{name} of node {node}"))?;
        }
        Ok(())
    }

    fn measurements(&self, outcome: &Outcome) -> Vec<Measurement> {
        let first = |transfer, count: usize| outcome.values::<f64>(transfer, count).map_or(0.0, |values| values[0]);
        vec![
            Measurement { name: "origin_energy", value: first(self.energy, self.mesh.elements.len()), unit: "1" },
            Measurement { name: "time_reached", value: first(self.clock, 1), unit: "1" },
        ]
    }
}
