//! Products of matrices by groups of four warps, and what waits for them.

use super::operands::Operands;
use super::tensor::element;
use super::{Lowered, NO_SUCH_OPERAND, Pending};
use crate::matrix::Element;
use crate::matrix_group::GroupForm;
use crate::operation::Kind;
use crate::sass::{self, Aspect, Location, Opcode, RegisterOperand};

/// The number in a shape's text: `.64x128` has 128 columns, `x16` a depth of 16.
fn number(text: &str) -> Lowered<u32> {
    let digits = text.rsplit('x').next().unwrap_or_default();
    digits.parse().map_err(|_| format!("a product of the shape {text}"))
}

impl Pending {
    pub(super) fn matrix_group(&mut self, sass: &sass::Instruction, operands: &mut Operands) -> Lowered<()> {
        if sass.has(Aspect::Offsets) {
            return Err("a product with offsets in registers".to_owned());
        }
        // The first matrix is described, too, or comes before the description.
        let first = sass.source(0).ok_or(NO_SUCH_OPERAND)?;
        let a_in_registers = matches!(first.location, Location::Register(RegisterOperand::General(_)));
        let described = usize::from(a_in_registers);
        // Behind the accumulator are the metadata of a sparse matrix, and which lanes have them, where that is not shown the first ones.
        let selector = sass.has(Aspect::Sparse).then(|| {
            let selector = sass.source(described + 3).and_then(|source| source.immediate());
            selector.unwrap_or_default() as u8
        });
        let form = group_form(sass, a_in_registers, first.is_negated, selector)?;
        let Some(Location::Register(RegisterOperand::Uniform(descriptors))) =
            sass.source(described).map(|source| source.location)
        else {
            return Err(NO_SUCH_OPERAND.to_owned());
        };
        // Two registers for each matrix, those of the first one unused where it is in registers.
        if !a_in_registers {
            self.instruction.sources[0] = operands.uniform(descriptors);
        }
        self.instruction.sources[1] = operands.uniform(descriptors.saturating_add(2));
        // Where it is false, the accumulator counts as zero.
        self.condition(sass);
        let register = |number: usize| sass.source(number).and_then(|source| source.register()).ok_or(NO_SUCH_OPERAND);
        let (accumulator, count) = (register(described + 1)?, form.result_registers() as u8);
        let result = match sass.destination(0) {
            Some(RegisterOperand::General(result)) => result,
            _ => return Err(NO_SUCH_OPERAND.to_owned()),
        };
        let distance = result.abs_diff(accumulator);
        if distance != 0 && distance < count && result != sass::ZERO_REGISTER && accumulator != sass::ZERO_REGISTER {
            return Err("a result that takes the place of a part of the accumulator".to_owned());
        }
        let mut list: Vec<u16> = (0..count).map(|further| operands.following_row(result, further)).collect();
        list.extend((0..count).map(|further| operands.following(accumulator, further).0));
        if a_in_registers {
            let factor = register(0)?;
            list.extend((0..form.factor_registers() as u8).map(|further| operands.following(factor, further).0));
        }
        if selector.is_some() {
            list.push(operands.register(register(described + 2)?).0);
        }
        self.instruction.operand_list = operands.list(list);
        self.instruction.memory.pairs = true;
        self.instruction.kind = Kind::GroupProduct;
        self.instruction.immediate = form.pack();
        Ok(())
    }

    /// `WARPGROUP`: an arrival before products waits for the other warps, too: products begin when all four have come to them.
    pub(super) fn group_of_warps(&mut self, sass: &sass::Instruction) -> Lowered<()> {
        let groups = match sass.text(Aspect::Mode) {
            ".ARRIVE" | ".WAIT" => u32::MAX,
            _ if !sass.has(Aspect::Comparison) => return Err("a wait for all but some groups of products".to_owned()),
            _ => sass.source(0).and_then(|source| source.immediate()).ok_or(NO_SUCH_OPERAND)?,
        };
        self.instruction.kind = Kind::ProductWait;
        self.instruction.immediate = groups;
        Ok(())
    }
}

/// The form of a product by its modifiers.
fn group_form(
    sass: &sass::Instruction,
    a_in_registers: bool,
    is_negated: bool,
    selector: Option<u8>,
) -> Lowered<GroupForm> {
    let types = |aspects: [Aspect; 2]| -> Lowered<[Element; 2]> {
        Ok([element(sass.text(aspects[0]))?, element(sass.text(aspects[1]))?])
    };
    let result = || element(sass.text(Aspect::ResultType));
    let ([a, b], d) = match sass.opcode() {
        Opcode::Hgmma => (types([Aspect::SourceType; 2])?, result()?),
        Opcode::Qgmma => (types([Aspect::FirstType, Aspect::SecondType])?, result()?),
        Opcode::Igmma => (types([Aspect::FirstType, Aspect::SecondType])?, Element::S32),
        _ => ([Element::Bits; 2], Element::S32),
    };
    let (columns, depth) = (number(sass.text(Aspect::Shape))?, number(sass.text(Aspect::Depth))?);
    if matches!(a, Element::Bf16 | Element::Tf32) && d == Element::F16 {
        return Err("a product of this type with a result of halves".to_owned());
    }
    let transposes = [sass.has(Aspect::TransposeFirst), sass.has(Aspect::TransposeSecond)];
    if transposes != [false; 2] && a.bits() != 16 {
        return Err("a transposed matrix of this type".to_owned());
    }
    let form = GroupForm {
        a,
        b,
        d,
        columns,
        a_in_registers,
        negates: [is_negated || sass.has(Aspect::NegateFirst), sass.has(Aspect::NegateSecond)],
        transposes,
        saturates: sass.has(Aspect::Saturate),
        ends_group: sass.has(Aspect::Group),
        selector,
    };
    if depth != form.depth() {
        return Err(format!("a product of this type and the depth {depth}"));
    }
    if !form.has_metadata() {
        return Err("metadata of lanes that are not there".to_owned());
    }
    Ok(form)
}
