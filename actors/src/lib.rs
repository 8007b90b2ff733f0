//! The engine, the topology language and the hardware units.
