//! The results of instructions, case by case, against references that share no code with the simulator.

mod approximate;
mod asynchronous;
mod atomics;
mod bits;
mod cases;
mod compare;
mod convert;
mod examples;
mod exchange;
mod float_selection;
mod floats;
mod integer;
mod machine;
mod matrix;
mod matrix_groups;
mod member_masks;
mod memory;
mod r#move;
mod programs;
mod reference;
mod refused;
mod sparse;
mod textures;
mod values;
mod video;
