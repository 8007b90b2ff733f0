//! What instructions compute, case by case, against references that share no code with the simulator.

mod approximate;
mod asynchronous;
mod atomics;
mod bits;
mod call_graphs;
mod calls;
mod cases;
mod compare;
mod convert;
mod examples;
mod exchange;
mod float_selection;
mod floats;
mod integer;
mod machine;
mod machine_code;
mod matrix;
mod memory;
mod r#move;
mod pieces;
mod reference;
mod refused;
mod serialization;
mod textures;
mod values;
mod video;
