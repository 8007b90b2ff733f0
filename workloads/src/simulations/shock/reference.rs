//! The same computation on the host, one element after the other.

use super::mesh::{FREE, Mesh, SYMMETRY};
use super::{HOURGLASS_STRENGTH, LARGEST_STEP, VOLUME_RANGE};

type Vector = [f64; 3];

const FACES: [[usize; 4]; 6] = [[0, 1, 2, 3], [0, 4, 5, 1], [1, 5, 6, 2], [2, 6, 7, 3], [3, 7, 4, 0], [4, 7, 6, 5]];
/// Corners at the low and the high end along xi, eta and zeta.
const ENDS: [[[usize; 4]; 2]; 3] =
    [[[0, 3, 7, 4], [1, 2, 6, 5]], [[0, 1, 5, 4], [3, 2, 6, 7]], [[0, 1, 2, 3], [4, 5, 6, 7]]];
/// Positions of the corners in the reference cube.
const CUBE: [Vector; 8] = [
    [-1.0, -1.0, -1.0],
    [1.0, -1.0, -1.0],
    [1.0, 1.0, -1.0],
    [-1.0, 1.0, -1.0],
    [-1.0, -1.0, 1.0],
    [1.0, -1.0, 1.0],
    [1.0, 1.0, 1.0],
    [-1.0, 1.0, 1.0],
];

fn add(a: Vector, b: Vector) -> Vector {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

fn subtract(a: Vector, b: Vector) -> Vector {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn scale(a: Vector, factor: f64) -> Vector {
    a.map(|value| value * factor)
}

fn dot(a: Vector, b: Vector) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: Vector, b: Vector) -> Vector {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn sum(corners: &[Vector; 8], which: [usize; 4]) -> Vector {
    which.iter().fold([0.0; 3], |sum, corner| add(sum, corners[*corner]))
}

/// The volume of a hexahedron with bilinear faces.
fn volume(c: &[Vector; 8]) -> f64 {
    let edge = |a: usize, b: usize| subtract(c[a], c[b]);
    let triple = |a: Vector, b: Vector, d: Vector| dot(a, cross(b, d));
    let parts = triple(add(edge(3, 1), edge(7, 2)), edge(6, 3), edge(2, 0))
        + triple(add(edge(4, 3), edge(5, 7)), edge(6, 4), edge(7, 0))
        + triple(add(edge(1, 4), edge(2, 5)), edge(6, 1), edge(5, 0));
    parts / 12.0
}

/// The derivative of the volume with respect to each corner. The volume is linear in each coordinate of a single corner: the
/// difference quotient is exact, whatever the step.
fn volume_derivatives(c: &[Vector; 8]) -> [Vector; 8] {
    let origin = scale(c.iter().fold([0.0; 3], |sum, place| add(sum, *place)), 0.125);
    let centred = c.map(|place| subtract(place, origin));
    let step = dot(subtract(c[6], c[0]), subtract(c[6], c[0])).sqrt();
    std::array::from_fn(|corner| {
        std::array::from_fn(|axis| {
            let moved = |by: f64| {
                let mut corners = centred;
                corners[corner][axis] += by;
                volume(&corners)
            };
            (moved(step) - moved(-step)) / (2.0 * step)
        })
    })
}

/// The state of the mesh.
pub(super) struct Reference<'mesh> {
    mesh: &'mesh Mesh,
    pub time: f64,
    step: f64,
    steps: u32,
    courant: f64,
    hydro: f64,
    pub places: Vec<Vector>,
    velocities: Vec<Vector>,
    pub energy: Vec<f64>,
    pressure: Vec<f64>,
    viscosity: Vec<f64>,
    pub volume: Vec<f64>,
    sound_speed: Vec<f64>,
}

/// The results of one element's strain that the next phases need.
#[derive(Clone, Copy, Default)]
struct Strain {
    volume: f64,
    change: f64,
    rate: f64,
    length: f64,
    /// Difference of velocity and length along xi, eta and zeta.
    velocity: Vector,
    extent: Vector,
}

impl<'mesh> Reference<'mesh> {
    pub fn new(mesh: &'mesh Mesh) -> Self {
        let zeros = vec![0.0; mesh.elements.len()];
        Reference {
            mesh,
            time: 0.0,
            step: mesh.first_step(),
            steps: 0,
            courant: 1e20,
            hydro: 1e20,
            places: mesh.places.clone(),
            velocities: vec![[0.0; 3]; mesh.places.len()],
            energy: mesh.energies(),
            pressure: zeros.clone(),
            viscosity: zeros.clone(),
            volume: vec![1.0; mesh.elements.len()],
            sound_speed: zeros,
        }
    }

    pub fn step(&mut self) {
        self.advance_time();
        self.move_nodes();
        let strains: Vec<Strain> = (0..self.mesh.elements.len()).map(|element| self.strain(element)).collect();
        (self.courant, self.hydro) = (1e20, 1e20);
        for (element, strain) in strains.iter().enumerate() {
            let (linear, quadratic) = self.viscosity_coefficients(element, &strains);
            self.equation_of_state(element, *strain, linear, quadratic);
            self.volume[element] = if (strain.volume - 1.0).abs() < 1e-10 { 1.0 } else { strain.volume };
            if strain.rate != 0.0 {
                let mut squared = self.sound_speed[element].powi(2);
                if strain.rate < 0.0 {
                    squared += 256.0 * (strain.length * strain.rate).powi(2);
                }
                self.courant = self.courant.min(strain.length / squared.sqrt());
                self.hydro = self.hydro.min(0.1 / (strain.rate.abs() + 1e-20));
            }
        }
    }

    fn advance_time(&mut self) {
        if self.steps != 0 {
            let mut limit = 1e20;
            if self.courant < limit {
                limit = self.courant / 2.0;
            }
            if self.hydro < limit {
                limit = self.hydro * 2.0 / 3.0;
            }
            let ratio = limit / self.step;
            if (1.0..1.1).contains(&ratio) {
                limit = self.step;
            } else if ratio > 1.2 {
                limit = self.step * 1.2;
            }
            self.step = limit.min(LARGEST_STEP);
        }
        self.time += self.step;
        self.steps += 1;
    }

    fn corners(&self, element: usize, values: &[Vector]) -> [Vector; 8] {
        self.mesh.elements[element].map(|node| values[node as usize])
    }

    /// Forces of stress and hourglass damping, and where they take the nodes.
    fn move_nodes(&mut self) {
        let mut forces = vec![[0.0; 3]; self.places.len()];
        for element in 0..self.mesh.elements.len() {
            let own = self.corner_forces(element);
            for (node, force) in self.mesh.elements[element].iter().zip(own) {
                let total = &mut forces[*node as usize];
                *total = add(*total, force);
            }
        }
        let mut accelerations: Vec<Vector> =
            forces.iter().zip(&self.mesh.node_masses).map(|(force, mass)| force.map(|value| value / mass)).collect();
        for (axis, plane) in self.mesh.planes.iter().enumerate() {
            plane.iter().for_each(|node| accelerations[*node as usize][axis] = 0.0);
        }
        for (node, acceleration) in accelerations.into_iter().enumerate() {
            let velocity = add(self.velocities[node], scale(acceleration, self.step));
            let velocity = velocity.map(|value| if value.abs() < 1e-7 { 0.0 } else { value });
            self.velocities[node] = velocity;
            self.places[node] = add(self.places[node], scale(velocity, self.step));
        }
    }

    fn corner_forces(&self, element: usize) -> [Vector; 8] {
        let places = self.corners(element, &self.places);
        let velocities = self.corners(element, &self.velocities);
        let mut forces = [[0.0; 3]; 8];
        let push = self.pressure[element] + self.viscosity[element];
        for [a, b, c, d] in FACES {
            let u = scale(subtract(add(places[d], places[c]), add(places[b], places[a])), 0.5);
            let v = scale(subtract(add(places[c], places[b]), add(places[d], places[a])), 0.5);
            let quarter = scale(cross(u, v), 0.25);
            for corner in [a, b, c, d] {
                forces[corner] = add(forces[corner], scale(quarter, push));
            }
        }
        let derivatives = volume_derivatives(&places);
        let current = self.mesh.volumes[element] * self.volume[element];
        let coefficient =
            -HOURGLASS_STRENGTH * 0.01 * self.sound_speed[element] * self.mesh.volumes[element] / current.cbrt();
        // The modes are products of two or three of the reference cube's coordinates.
        let modes: [fn(Vector) -> f64; 4] = [|c| c[1] * c[2], |c| c[0] * c[2], |c| c[0] * c[1], |c| c[0] * c[1] * c[2]];
        for mode in modes {
            let pattern = CUBE.map(mode);
            let along = (0..8).fold([0.0; 3], |along, corner| add(along, scale(places[corner], pattern[corner])));
            let shape: [f64; 8] =
                std::array::from_fn(|corner| pattern[corner] - dot(derivatives[corner], along) / current);
            let speed = (0..8).fold([0.0; 3], |speed, corner| add(speed, scale(velocities[corner], shape[corner])));
            for corner in 0..8 {
                forces[corner] = add(forces[corner], scale(speed, coefficient * shape[corner]));
            }
        }
        forces
    }

    fn strain(&self, element: usize) -> Strain {
        let places = self.corners(element, &self.places);
        let velocities = self.corners(element, &self.velocities);
        let initial = self.mesh.volumes[element];
        let size = volume(&places);
        let relative = size / initial;
        let area = |[a, b, c, d]: [usize; 4]| {
            let [first, second] = [subtract(places[c], places[a]), subtract(places[d], places[b])];
            let [f, g] = [subtract(first, second), add(first, second)];
            dot(f, f) * dot(g, g) - dot(f, g).powi(2)
        };
        let largest = FACES.into_iter().map(area).fold(0.0, f64::max);

        // The Jacobian of the map from the reference cube, at its centre and half a step ago.
        let earlier: [Vector; 8] =
            std::array::from_fn(|corner| subtract(places[corner], scale(velocities[corner], 0.5 * self.step)));
        let gradient = |values: &[Vector; 8], axis: usize| {
            scale((0..8).fold([0.0; 3], |sum, corner| add(sum, scale(values[corner], CUBE[corner][axis]))), 0.125)
        };
        let columns = [0, 1, 2].map(|axis| gradient(&earlier, axis));
        let determinant = dot(columns[0], cross(columns[1], columns[2]));
        // Rows of the inverse, times the determinant.
        let inverse = [cross(columns[1], columns[2]), cross(columns[2], columns[0]), cross(columns[0], columns[1])];
        let flow = [0, 1, 2].map(|axis| gradient(&velocities, axis));
        let rate = (0..3).map(|axis| dot(flow[axis], inverse[axis])).sum::<f64>() / determinant;

        let extents = ENDS.map(|[low, high]| scale(subtract(sum(&places, high), sum(&places, low)), 0.25));
        let mut strain = Strain {
            volume: relative,
            change: relative - self.volume[element],
            rate,
            length: 4.0 * size / largest.sqrt(),
            ..Strain::default()
        };
        let size = initial * relative;
        for axis in 0..3 {
            let normal = cross(extents[(axis + 1) % 3], extents[(axis + 2) % 3]);
            let [low, high] = ENDS[axis];
            let speed = scale(subtract(sum(&velocities, high), sum(&velocities, low)), 0.25);
            strain.extent[axis] = size / (dot(normal, normal) + 1e-36).sqrt();
            strain.velocity[axis] = dot(normal, speed) / (size + 1e-36);
        }
        strain
    }

    /// Linear and quadratic coefficients of the artificial viscosity.
    fn viscosity_coefficients(&self, element: usize, strains: &[Strain]) -> (f64, f64) {
        let own = strains[element];
        if own.rate > 0.0 {
            return (0.0, 0.0);
        }
        let density = 1.0 / own.volume;
        let (mut linear, mut quadratic) = (0.0, 0.0);
        for axis in 0..3 {
            let side = |face: usize| {
                let border = self.mesh.borders[element] >> (2 * face) & 3;
                let velocity = match border {
                    SYMMETRY => own.velocity[axis],
                    FREE => 0.0,
                    _ => strains[self.mesh.neighbours[element][face] as usize].velocity[axis],
                };
                velocity / (own.velocity[axis] + 1e-36)
            };
            let [low, high] = [side(2 * axis), side(2 * axis + 1)];
            let phi = (0.5 * (low + high)).min(2.0 * low).min(2.0 * high).clamp(0.0, 1.0);
            let speed = (own.velocity[axis] * own.extent[axis]).min(0.0);
            linear -= 0.5 * density * speed * (1.0 - phi);
            quadratic += 2.0 / 3.0 * density * speed * speed * (1.0 - phi * phi);
        }
        (linear, quadratic)
    }

    /// Energy, pressure, viscosity and speed of sound after the step, for an ideal gas with gamma 5/3.
    fn equation_of_state(&mut self, element: usize, strain: Strain, linear: f64, quadratic: f64) {
        const SLOPE: f64 = 2.0 / 3.0;
        let volume = strain.volume.clamp(VOLUME_RANGE[0], VOLUME_RANGE[1]);
        let change = strain.change;
        let (pressure, viscosity) = (self.pressure[element], self.viscosity[element]);
        let half_volume = volume - 0.5 * change;
        let gas = |volume: f64, energy: f64| {
            let pressure = SLOPE / volume * energy;
            if pressure.abs() < 1e-7 { 0.0 } else { pressure.max(0.0) }
        };
        let sound = |volume: f64, bulk_volume: f64, energy: f64, pressure: f64| {
            let squared = SLOPE * energy + volume * volume * (SLOPE / bulk_volume) * pressure;
            if squared <= 0.1111111e-36 { 0.3333333e-18 } else { squared.sqrt() }
        };
        let cut = |energy: f64| if energy.abs() < 1e-7 { 0.0 } else { energy.max(-1e15) };
        let damp = |speed: f64| if change > 0.0 { 0.0 } else { speed * linear + quadratic };

        let mut energy = (self.energy[element] - 0.5 * change * (pressure + viscosity)).max(-1e15);
        let half_pressure = gas(half_volume, energy);
        let mut new_viscosity = damp(sound(half_volume, half_volume, energy, half_pressure));
        energy = cut(energy + 0.5 * change * (3.0 * (pressure + viscosity) - 4.0 * (half_pressure + new_viscosity)));
        let mut new_pressure = gas(volume, energy);
        let trial = damp(sound(volume, volume, energy, new_pressure));
        let push = 7.0 * (pressure + viscosity) - 8.0 * (half_pressure + new_viscosity) + (new_pressure + trial);
        energy = cut(energy - push * change / 6.0);
        new_pressure = gas(volume, energy);
        let speed = sound(volume, volume, energy, new_pressure);
        if change <= 0.0 {
            new_viscosity = damp(speed);
            if new_viscosity.abs() < 1e-7 {
                new_viscosity = 0.0;
            }
        }
        self.energy[element] = energy;
        self.pressure[element] = new_pressure;
        self.viscosity[element] = new_viscosity;
        self.sound_speed[element] = speed;
    }
}
