//! Operands of instructions: registers, immediates, symbols, special registers.

use super::{Decoded, Decoder, Slot};
use crate::interpreter::bodies::{ClusterSpecial, Map, ThreadIndex, UniformSpecial, UniformSpecialWide, functions};
use crate::interpreter::integer::{LaneMask, Move, Resize};
use crate::interpreter::registers::{cluster, special};
use crate::lanes::LANES;
use crate::liveness::Width;
use crate::operation::operand::Row;
use crate::operation::{Kind, counter};
use crate::program::timing::{CountClass, LatencyClass, Pipe};
use crate::ptx::PtxErrorKind;
use crate::ptx::ast::{Instruction, Operand, OperandKind};
use crate::ptx::error::RawError;
use crate::ptx::source::Span;
use crate::ptx::special_register::{SpecialRegister, SpecialRegisterName as S};
use crate::ptx::types::ScalarType as T;

impl Decoder<'_> {
    pub(super) fn bad(&self, operand: &Operand, message: &str) -> RawError {
        RawError::new(PtxErrorKind::BadOperand, operand.span, message.to_string())
    }

    pub(super) fn operand<'b>(&self, instruction: &'b Instruction, index: usize) -> Decoded<&'b Operand> {
        instruction.operands.get(index).ok_or_else(|| {
            RawError::new(PtxErrorKind::OperandCount, instruction.span, format!("operand {} is missing", index + 1))
        })
    }

    /// A constant's rows: two for 64-bit values.
    pub(super) fn constant(&mut self, value: u64, wide: bool) -> Slot {
        let value = if wide { value } else { value & 0xffff_ffff };
        let constants = &mut self.constants;
        let row = *self.known_constants.entry((value, wide)).or_insert_with(|| {
            let row = constants.len() as u16;
            if wide {
                let rows: [Row; 2] = bytemuck::cast([value; LANES]);
                constants.extend(rows);
            } else {
                constants.push(Row([value as u32; LANES]));
            }
            row
        });
        Slot::Constant(row)
    }

    /// An address in the CTA's shared memory: each rank of a cluster has its own.
    pub(super) fn shared_address(&mut self, value: u64, wide: bool) -> Slot {
        if let Some(&row) = self.known_shared.get(&(value, wide)) {
            return Slot::Constant(row);
        }
        let row = self.constants.len() as u16;
        if wide {
            let rows: [Row; 2] = bytemuck::cast([value; LANES]);
            self.constants.extend(rows);
        } else {
            self.constants.push(Row([value as u32; LANES]));
        }
        self.known_shared.insert((value, wide), row);
        Slot::Constant(row)
    }

    /// A row of constants with a value for each lane.
    pub(super) fn constant_row(&mut self, values: [u32; LANES]) -> Slot {
        let constants = &mut self.constants;
        let row = *self.known_rows.entry(values).or_insert_with(|| {
            constants.push(Row(values));
            (constants.len() - 1) as u16
        });
        Slot::Constant(row)
    }

    /// A register that the program does not name.
    pub(super) fn new_register(&mut self, width: Width) -> u32 {
        self.widths.push(width);
        (self.widths.len() - 1) as u32
    }

    /// Where a value of that type is read from. Values that take an instruction of their own get it, without cost.
    pub(super) fn source(&mut self, operand: &Operand, scalar_type: T) -> Decoded<Slot> {
        let wide = scalar_type.bits() == 64;
        match &operand.kind {
            OperandKind::Register(register) => match (self.widths[register.index()], wide) {
                (Width::One, false) | (Width::Two, true) => Ok(Slot::Register(register.0)),
                (Width::Predicate, _) => Err(self.bad(operand, "a predicate where a value is expected")),
                (Width::Two, false) => {
                    let narrow = self.new_register(Width::One);
                    self.helper(operand.span, functions::<Map<Resize<u64, u32>>>(), register.0, narrow);
                    Ok(Slot::Register(narrow))
                }
                (Width::One, true) => {
                    let extended = self.new_register(Width::Two);
                    self.helper(operand.span, functions::<Map<Resize<u32, u64>>>(), register.0, extended);
                    Ok(Slot::Register(extended))
                }
            },
            OperandKind::Special(name) => {
                let width = if wide { Width::Two } else { Width::One };
                let register = self.new_register(width);
                self.start(operand.span, (Pipe::Int, LatencyClass::Integer, CountClass::Other, 1));
                self.special(operand, *name, Slot::Register(register), wide)?;
                Ok(Slot::Register(register))
            }
            OperandKind::Symbol { symbol, offset } if self.frame_place(*symbol).is_some() => {
                let register = self.new_register(if wide { Width::Two } else { Width::One });
                self.frame_address(operand.span, *symbol, *offset, register);
                Ok(Slot::Register(register))
            }
            OperandKind::Symbol { symbol, .. } if self.layout.is_shared(*symbol) && scalar_type.bits() >= 32 => {
                let value = self.immediate(operand, scalar_type)?;
                Ok(self.shared_address(value, wide))
            }
            _ => {
                let value = self.immediate(operand, scalar_type)?;
                Ok(self.constant(value, wide))
            }
        }
    }

    /// Emits a computation on one register that costs nothing.
    pub(super) fn helper(&mut self, span: Span, lanes: [crate::operation::LaneFunction; 2], from: u32, to: u32) {
        self.start(span, (Pipe::Free, LatencyClass::Zero, CountClass::Other, 1));
        let last = self.last();
        last.instruction.functions = lanes;
        last.sources[0] = Slot::Register(from);
        last.destinations[0] = Slot::Register(to);
    }

    /// The bits of an immediate as a value of that type.
    pub(super) fn immediate(&self, operand: &Operand, scalar_type: T) -> Decoded<u64> {
        let bits = match operand.kind {
            OperandKind::Integer(value) => match scalar_type {
                T::F32 => u64::from((value as i64 as f32).to_bits()),
                T::F64 => (value as i64 as f64).to_bits(),
                _ => value,
            },
            OperandKind::Float32(bits) if scalar_type == T::F64 => f64::from(f32::from_bits(bits)).to_bits(),
            OperandKind::Float32(bits) => u64::from(bits),
            OperandKind::Float64(bits) if scalar_type.bits() == 64 => bits,
            OperandKind::Float64(bits) => u64::from((f64::from_bits(bits) as f32).to_bits()),
            OperandKind::Symbol { symbol, offset } => self
                .layout
                .address(symbol)
                .ok_or_else(|| self.unknown_address(operand, symbol))?
                .wrapping_add(offset as u64),
            _ => return Err(self.bad(operand, "this operand is not a register, a literal or a symbol")),
        };
        Ok(match scalar_type.bits() {
            64.. => bits,
            32 => bits & 0xffff_ffff,
            16 => bits & 0xffff,
            _ => bits & 0xff,
        })
    }

    /// A predicate operand and whether it is negated.
    pub(super) fn predicate(&mut self, operand: &Operand) -> Decoded<(Slot, u32)> {
        let (register, flip) = match operand.kind {
            OperandKind::Register(register) => (register, 0),
            OperandKind::NegatedPredicate(register) => (register, u32::MAX),
            // The reserved predicate is true in all lanes.
            OperandKind::Integer(value) => return Ok((Slot::None, if value == 0 { u32::MAX } else { 0 })),
            _ => return Err(self.bad(operand, "a predicate is expected here")),
        };
        if self.widths[register.index()] != Width::Predicate {
            return Err(self.bad(operand, "a predicate is expected here"));
        }
        Ok((Slot::Register(register.0), flip))
    }

    /// A destination that is one register, or none.
    pub(super) fn destination(&mut self, operand: &Operand) -> Decoded<Slot> {
        match operand.kind {
            OperandKind::Register(register) => Ok(Slot::Register(register.0)),
            OperandKind::Sink => Ok(Slot::None),
            _ => Err(self.bad(operand, "a destination register is expected here")),
        }
    }

    /// Whether a destination's register is 64 bits wide.
    pub(super) fn is_wide(&self, slot: Slot) -> bool {
        matches!(slot, Slot::Register(register) if self.widths[register as usize] == Width::Two)
    }

    /// Sets the destination of the last instruction to a register that may be wider than the type: extends the value then.
    pub(super) fn set_destination(&mut self, operand: &Operand, scalar_type: T) -> Decoded<()> {
        let slot = self.destination(operand)?;
        let wide = scalar_type.bits() == 64;
        if let Slot::Register(register) = slot {
            match (self.widths[register as usize], wide) {
                (Width::One, false) | (Width::Two, true) => {}
                (Width::Two, false) => {
                    let narrow = self.new_register(Width::One);
                    self.last().destinations[0] = Slot::Register(narrow);
                    let lanes = if scalar_type.is_signed_integer() {
                        functions::<Map<Resize<i32, i64>>>()
                    } else {
                        functions::<Map<Resize<u32, u64>>>()
                    };
                    self.helper(operand.span, lanes, narrow, register);
                    return Ok(());
                }
                _ => return Err(self.bad(operand, "this register is too narrow for the instruction's type")),
            }
        }
        self.last().destinations[0] = slot;
        Ok(())
    }

    /// Makes the last instruction read a special register.
    pub(super) fn special(&mut self, operand: &Operand, name: SpecialRegister, to: Slot, wide: bool) -> Decoded<()> {
        let axis = name.component.index() as usize;
        if axis > 2 && name.name.is_vector() {
            self.last().instruction.functions = functions::<UniformSpecial>();
            self.last().instruction.immediate = special::ZERO as u32;
            self.last().destinations[0] = to;
            return Ok(());
        }
        let uniform = |place: usize| (functions::<UniformSpecial>(), place as u32);
        let of_cluster = |place: usize| (functions::<ClusterSpecial>(), place as u32);
        let (lanes, immediate) = match name.name {
            S::ThreadIndex => (functions::<ThreadIndex>(), axis as u32),
            S::ThreadCount => uniform(special::BLOCK + axis),
            S::CtaIndex => uniform(special::CTA + axis),
            S::CtaCount => uniform(special::GRID + axis),
            S::ClusterIndex => of_cluster(cluster::INDEX + axis),
            S::ClusterCount => of_cluster(cluster::INDICES + axis),
            S::SmIndex => uniform(special::SM),
            S::SmCount => uniform(special::SM_COUNT),
            S::WarpIndex => uniform(special::WARP),
            S::WarpCount => uniform(special::WARP_COUNT),
            S::ClusterCtaIndex => of_cluster(cluster::CTA + axis),
            S::ClusterCtaRank => of_cluster(cluster::RANK),
            S::ClusterCtaCount => of_cluster(cluster::CTAS + axis),
            S::ClusterCtaRankCount => of_cluster(cluster::SIZE),
            S::DynamicSharedSize => uniform(special::DYNAMIC_SHARED),
            S::TotalSharedSize | S::AggregateSharedSize => uniform(special::TOTAL_SHARED),
            S::PerformanceMonitor => uniform(special::ZERO),
            // No part of shared memory is the system's.
            S::ReservedSharedBegin | S::ReservedSharedEnd | S::ReservedSharedCapacity | S::ReservedSharedOffset => {
                uniform(special::ZERO)
            }
            // No performance counter is set up, and no grid is launched by another on the device.
            S::PerformanceMonitor64 | S::CurrentGraphExec => {
                self.last().sources[0] = self.constant(0, true);
                (functions::<Map<Move<u64>>>(), 0)
            }
            S::WarpSize => {
                let slot = self.constant(32, wide);
                self.last().sources[0] = slot;
                (if wide { functions::<Map<Move<u64>>>() } else { functions::<Map<Move<u32>>>() }, 0)
            }
            S::Environment => match name.number {
                1 | 2 => uniform(special::ENVIRONMENT_1 + name.number as usize - 1),
                _ => uniform(special::ZERO),
            },
            S::GridIndex if wide => (functions::<UniformSpecialWide>(), special::GRID_ID_LOW as u32),
            S::GridIndex => uniform(special::GRID_ID_LOW),
            S::LaneIndex
            | S::LaneMaskEqual
            | S::LaneMaskLess
            | S::LaneMaskLessEqual
            | S::LaneMaskGreater
            | S::LaneMaskGreaterEqual => {
                let row = self.lane_numbers();
                self.last().sources[0] = row;
                match name.name {
                    S::LaneIndex => (functions::<Map<Move<u32>>>(), 0),
                    S::LaneMaskEqual => (functions::<Map<LaneMask>>(), 0),
                    S::LaneMaskLess => (functions::<Map<LaneMask>>(), 1),
                    S::LaneMaskLessEqual => (functions::<Map<LaneMask>>(), 2),
                    S::LaneMaskGreaterEqual => (functions::<Map<LaneMask>>(), 3),
                    _ => (functions::<Map<LaneMask>>(), 4),
                }
            }
            S::Clock | S::ClockHigh | S::Clock64 | S::GlobalTimer | S::GlobalTimerLow | S::GlobalTimerHigh => {
                self.last().instruction.kind = Kind::Counter;
                let which = match name.name {
                    S::Clock => counter::CYCLE_LOW,
                    S::ClockHigh => counter::CYCLE_HIGH,
                    S::Clock64 => counter::CYCLE,
                    S::GlobalTimerLow => counter::TIMER_LOW,
                    S::GlobalTimerHigh => counter::TIMER_HIGH,
                    _ => counter::TIMER,
                };
                (functions::<UniformSpecial>(), which)
            }
            S::IsExplicitCluster => return Err(self.bad(operand, "this special register is a predicate")),
        };
        let gives_wide =
            matches!(name.name, S::Clock64 | S::GlobalTimer | S::PerformanceMonitor64 | S::CurrentGraphExec)
                || (wide && matches!(name.name, S::GridIndex | S::WarpSize));
        if wide != gives_wide {
            return Err(self.bad(operand, "the special register and the instruction's type differ in width"));
        }
        let last = self.last();
        last.instruction.functions = lanes;
        last.instruction.immediate = immediate;
        last.destinations[0] = to;
        Ok(())
    }

    /// A constant row with each lane's number.
    fn lane_numbers(&mut self) -> Slot {
        // No immediate is two rows of this key: the lane numbers are kept apart from the values.
        let constants = &mut self.constants;
        let row = *self.known_constants.entry((u64::MAX, false)).or_insert_with(|| {
            constants.push(Row(std::array::from_fn(|lane| lane as u32)));
            (constants.len() - 1) as u16
        });
        Slot::Constant(row)
    }
}
