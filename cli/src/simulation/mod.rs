//! A simulation of the command line: the node that is read, the run, who watches it, what ends it early.
//!
//! | room | what it has |
//! |---|---|
//! | `node` | the topology, by file or name |
//! | `misspelt_keys` | what is told of misspelt keys in it |
//! | `simulate` | from options to the record of a run |
//! | `observation`, `progress` | who watches a run while it goes on; the bar |
//! | `recording` | the calls of its program, recorded |
//! | `interrupt`, `interruptible` | what ends it early; work that can be given up |
//! | `launch_limit` | the end after so many launches |
//! | `ptxas` | NVIDIA's assembler as a child process |

pub mod interrupt;
pub mod interruptible;
pub mod launch_limit;
pub mod misspelt_keys;
pub mod node;
pub mod observation;
pub mod progress;
pub mod ptxas;
pub mod recording;
pub mod simulate;
