//! The instructions between pinned ones, their registers, and the words that are live while they are put into an order.

use crate::liveness::{LiveSet, Uses, words_of};

/// A register in a region, at one point of an order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Register {
    words: i32,
    /// Holds a value.
    is_live: bool,
    /// Its value is needed after the region.
    stays: bool,
    /// Instructions to come that name it.
    users: u32,
    /// The sum of their places in the region: once one is left, it is this one.
    places: u32,
}

/// A register that an instruction names.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    /// The register's number in its region.
    pub number: u32,
    pub is_read: bool,
    pub is_written: bool,
}

/// Where a region is, and where its parts are in the lists of all regions.
#[derive(Clone, Debug)]
struct Extent {
    start: u32,
    end: u32,
    first_register: u32,
    end_register: u32,
    /// The first of the region's bounds of operands.
    first_bound: u32,
    live: i32,
    pressure: i32,
}

/// All regions of a function. They share lists, so that a region takes no memory of its own.
#[derive(Debug)]
pub(super) struct Regions {
    extents: Vec<Extent>,
    registers: Vec<Register>,
    operands: Vec<Operand>,
    /// For each region, where the operands of each instruction begin, and where the operands of the last end.
    bounds: Vec<u32>,
    /// The registers of the newest region by number.
    names: Vec<u32>,
    /// The number that a register had in the region that named it last.
    numbers: Vec<u32>,
    /// The registers of the newest region on the way through its text.
    states: Vec<Register>,
}

/// One of the regions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region<'r> {
    pub start: u32,
    pub end: u32,
    /// The registers before the first instruction.
    registers: &'r [Register],
    /// The operands of all regions.
    operands: &'r [Operand],
    bounds: &'r [u32],
    /// Words that are live before the first instruction.
    live: i32,
    /// Most words that are live in the order of the text.
    pub pressure: i32,
}

impl Region<'_> {
    /// Instructions.
    pub fn len(&self) -> usize {
        (self.end - self.start) as usize
    }

    /// Operands of all its instructions.
    pub fn operand_count(&self) -> usize {
        (self.bounds[self.len()] - self.bounds[0]) as usize
    }

    /// How many registers its instructions name.
    pub fn register_count(&self) -> usize {
        self.registers.len()
    }

    /// The registers that an instruction names, each once.
    pub fn operands_of(&self, place: usize) -> &[Operand] {
        &self.operands[self.bounds[place] as usize..self.bounds[place + 1] as usize]
    }
}

impl Regions {
    /// No region yet, for a function with so many registers, whose instructions have so many operands.
    pub fn new(registers: usize, operands: usize) -> Self {
        Regions {
            extents: Vec::new(),
            registers: Vec::new(),
            operands: Vec::with_capacity(operands),
            bounds: Vec::new(),
            names: Vec::new(),
            numbers: vec![0; registers],
            states: Vec::new(),
        }
    }

    /// The regions in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = Region<'_>> {
        self.extents.iter().map(|extent| self.region(extent))
    }

    fn region(&self, extent: &Extent) -> Region<'_> {
        let first_bound = extent.first_bound as usize;
        let instructions = (extent.end - extent.start) as usize;
        Region {
            start: extent.start,
            end: extent.end,
            registers: &self.registers[extent.first_register as usize..extent.end_register as usize],
            operands: &self.operands,
            bounds: &self.bounds[first_bound..=first_bound + instructions],
            live: extent.live,
            pressure: extent.pressure,
        }
    }

    /// Adds a region. `live` are the registers that are live after it, and afterwards those that are live before it.
    pub fn add(&mut self, start: u32, end: u32, uses: &[Uses], live: &mut LiveSet) {
        let uses = &uses[start as usize..end as usize];
        let first_register = self.registers.len();
        let first_bound = self.bounds.len() as u32;
        self.bounds.reserve(uses.len() + 1);
        self.names.clear();
        for (place, uses) in uses.iter().enumerate() {
            self.bounds.push(self.operands.len() as u32);
            uses.reads.iter().for_each(|name| self.name(*name, place as u32, first_register, live).is_read = true);
            uses.writes.iter().for_each(|name| self.name(*name, place as u32, first_register, live).is_written = true);
        }
        self.bounds.push(self.operands.len() as u32);
        for instruction in uses.iter().rev() {
            live.step_back(instruction);
        }
        for (register, name) in self.registers[first_register..].iter_mut().zip(&self.names) {
            register.is_live = live.contains(*name);
        }
        let mut extent = Extent {
            start,
            end,
            first_register: first_register as u32,
            end_register: self.registers.len() as u32,
            first_bound,
            live: live.words(),
            pressure: live.words(),
        };
        let mut states = std::mem::take(&mut self.states);
        let region = self.region(&extent);
        let mut pressure = Pressure::new(&region, &mut states);
        for place in 0..uses.len() {
            pressure.issue(region.operands_of(place), place as u32, |_, _| {});
            extent.pressure = extent.pressure.max(pressure.live);
        }
        self.states = states;
        self.extents.push(extent);
    }

    /// The operand by which the newest instruction, at `place` of its region, names a register.
    fn name(&mut self, name: u32, place: u32, first_register: usize, live: &LiveSet) -> &mut Operand {
        // A number of an earlier region says nothing here.
        let mut number = self.numbers[name as usize];
        if self.names.get(number as usize) != Some(&name) {
            number = self.names.len() as u32;
            self.numbers[name as usize] = number;
            self.names.push(name);
            let words = words_of(live.width(name));
            let stays = live.contains(name);
            self.registers.push(Register { words, is_live: false, stays, users: 0, places: 0 });
        }
        let first = self.bounds.last().map_or(0, |first| *first as usize);
        let index = match self.operands[first..].iter().position(|operand| operand.number == number) {
            Some(index) => first + index,
            None => {
                let register = &mut self.registers[first_register + number as usize];
                register.users += 1;
                register.places += place;
                self.operands.push(Operand { number, is_read: false, is_written: false });
                self.operands.len() - 1
            }
        };
        &mut self.operands[index]
    }
}

/// The words that are live while a region is put into an order.
#[derive(Debug)]
pub(super) struct Pressure<'s> {
    registers: &'s mut Vec<Register>,
    /// Words that are live now.
    pub live: i32,
}

impl<'s> Pressure<'s> {
    /// Before the first instruction. `registers` is room for the region's.
    pub fn new(region: &Region, registers: &'s mut Vec<Register>) -> Self {
        registers.clear();
        registers.extend_from_slice(region.registers);
        Pressure { registers, live: region.live }
    }

    /// The change of live words by an instruction that is to come, given its operands.
    pub fn change(&self, operands: &[Operand]) -> i32 {
        let mut change = 0;
        for operand in operands {
            let register = &self.registers[operand.number as usize];
            let stays_live = register.stays || register.users > 1;
            change += (i32::from(stays_live) - i32::from(register.is_live)) * register.words;
        }
        change
    }

    /// Takes an instruction as the next one. Where that leaves one instruction alone to name a register whose value is not needed
    /// later, `last_user` is told that instruction and the register's words: it will free them, as it would not have before.
    pub fn issue(&mut self, operands: &[Operand], place: u32, mut last_user: impl FnMut(u32, i32)) {
        for operand in operands {
            let register = &mut self.registers[operand.number as usize];
            register.users -= 1;
            register.places -= place;
            let is_live = register.stays || register.users > 0;
            self.live += (i32::from(is_live) - i32::from(register.is_live)) * register.words;
            register.is_live = is_live;
            if register.users == 1 && !register.stays {
                last_user(register.places, register.words);
            }
        }
    }
}
