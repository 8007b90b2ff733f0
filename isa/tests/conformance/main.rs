//! What instructions compute, case by case, against references that share no code with the simulator.

mod bits;
mod cases;
mod compare;
mod convert;
mod examples;
mod exchange;
mod integer;
mod machine;
mod matrix;
mod r#move;
mod refused;
mod values;
mod video;
