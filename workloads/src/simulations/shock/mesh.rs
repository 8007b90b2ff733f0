//! A cube of hexahedra as an unstructured mesh, with all its energy in the corner at the origin.

/// Length of the cube's edges.
const LENGTH: f64 = 1.125;
/// Energy of the first element of a mesh with 45 elements along an edge.
const ENERGY: f64 = 3.948746e7;

/// The kinds of neighbours beyond an element's face; two bits of [`Mesh::borders`].
pub(super) const SYMMETRY: u32 = 1;
pub(super) const FREE: u32 = 2;

/// Nodes, elements, and how they hang together.
pub(super) struct Mesh {
    pub places: Vec<[f64; 3]>,
    pub node_masses: Vec<f64>,
    /// Corners of elements (8 times the element, plus the corner) by node: those of node `n` start at `corner_starts[n]`.
    pub corner_starts: Vec<u32>,
    pub corners: Vec<u32>,
    /// Nodes at the corners of each element, counter-clockwise below, then above.
    pub elements: Vec<[u32; 8]>,
    /// Elements below and above along x, y and z; the element itself where there is none.
    pub neighbours: Vec<[u32; 6]>,
    /// The kinds of neighbours beyond each of the 6 faces, two bits each.
    pub borders: Vec<u32>,
    pub volumes: Vec<f64>,
    /// Nodes of the symmetry planes at x = 0, y = 0 and z = 0.
    pub planes: [Vec<u32>; 3],
    edge: u32,
}

impl Mesh {
    pub fn cube(edge: u32) -> Self {
        let side = edge + 1;
        let node = |x: u32, y: u32, z: u32| (z * side + y) * side + x;
        let element = |x: u32, y: u32, z: u32| (z * edge + y) * edge + x;
        let all = |count: u32| {
            (0..count.pow(3)).map(move |index| [index % count, index / count % count, index / count.pow(2)])
        };

        let coordinate = |step: u32| LENGTH * f64::from(step) / f64::from(edge);
        let places: Vec<[f64; 3]> = all(side).map(|place| place.map(coordinate)).collect();
        let mut elements = Vec::new();
        let mut neighbours = Vec::new();
        let mut borders = Vec::new();
        for [x, y, z] in all(edge) {
            let square = |z| [node(x, y, z), node(x + 1, y, z), node(x + 1, y + 1, z), node(x, y + 1, z)];
            let [below, above] = [square(z), square(z + 1)];
            elements.push([below[0], below[1], below[2], below[3], above[0], above[1], above[2], above[3]]);
            let mut around = [element(x, y, z); 6];
            let mut border = 0;
            for axis in 0..3 {
                let moved = |step: u32| {
                    let mut place = [x, y, z];
                    place[axis] = place[axis] + step - 1;
                    element(place[0], place[1], place[2])
                };
                let here = [x, y, z][axis];
                if here > 0 {
                    around[2 * axis] = moved(0);
                } else {
                    border |= SYMMETRY << (4 * axis);
                }
                if here + 1 < edge {
                    around[2 * axis + 1] = moved(2);
                } else {
                    border |= FREE << (4 * axis + 2);
                }
            }
            neighbours.push(around);
            borders.push(border);
        }
        let cell = coordinate(1).powi(3);
        let volumes = vec![cell; elements.len()];
        let mut node_masses = vec![0.0; places.len()];
        let mut around = vec![Vec::new(); places.len()];
        for (index, corners) in elements.iter().enumerate() {
            for (corner, node) in corners.iter().enumerate() {
                node_masses[*node as usize] += volumes[index] / 8.0;
                around[*node as usize].push((8 * index + corner) as u32);
            }
        }
        let mut corner_starts = vec![0];
        let mut corners = Vec::new();
        for list in around {
            corners.extend(list);
            corner_starts.push(corners.len() as u32);
        }
        let planes = [0, 1, 2].map(|axis| {
            let nodes = all(side).filter(|place| place[axis] == 0);
            nodes.map(|[x, y, z]| node(x, y, z)).collect()
        });
        Mesh { places, node_masses, corner_starts, corners, elements, neighbours, borders, volumes, planes, edge }
    }

    /// The energy of each element at the start.
    pub fn energies(&self) -> Vec<f64> {
        let mut energies = vec![0.0; self.elements.len()];
        energies[0] = ENERGY * (f64::from(self.edge) / 45.0).powi(3);
        energies
    }

    /// The length of the first time step.
    pub fn first_step(&self) -> f64 {
        0.5 * self.volumes[0].cbrt() / (2.0 * self.energies()[0]).sqrt()
    }
}
