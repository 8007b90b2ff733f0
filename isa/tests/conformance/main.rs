//! What instructions compute, case by case, against references that share no code with the simulator.

mod cases;
mod examples;
mod machine;
mod matrix;
