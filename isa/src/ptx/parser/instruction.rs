//! Instructions: their words, their guard, their operands, checked against the table.

use smallvec::SmallVec;

use super::super::ast::{
    Address, AddressBase, CallOperands, Guard, Instruction, LabelId, Operand, OperandKind, RegisterId, Statement,
};
use super::super::error::PtxErrorKind;
use super::super::instruction_table::{self, Form, OperandSlot};
use super::super::instruction_types::accepted_types;
use super::super::lexer::{Token, TokenKind};
use super::super::modifier::Modifier;
use super::super::opcode::Opcode;
use super::super::source::Span;
use super::super::types::ScalarType;
use super::super::words::{self, DottedWord};
use super::names::{FunctionScope, LabelSlot, Name};
use super::{Parsed, Parser};

/// The words of an instruction.
struct Words {
    opcode: Opcode,
    modifiers: SmallVec<[Modifier; 8]>,
    types: SmallVec<[ScalarType; 4]>,
    form: &'static Form,
}

impl<'a> Parser<'a> {
    /// `%p1` or `!%p1` after `@`.
    pub(super) fn guard(&mut self, scope: &FunctionScope<'a>) -> Parsed<Guard> {
        let negated = self.accept(b'!');
        let token = self.expect_identifier("a predicate register")?;
        let register = self.predicate_register(scope, token)?;
        Ok(Guard { register, negated })
    }

    /// The register of that name, which must be a predicate.
    pub(super) fn predicate_register(&mut self, scope: &FunctionScope<'a>, token: Token<'a>) -> Parsed<RegisterId> {
        let expected = || Some("expected a register of type `.pred`".to_owned());
        match self.resolve(scope, token.text) {
            Some(Name::Register { first, .. }) => {
                if scope.function.register_types.get(first.index()) != Some(&ScalarType::Pred) {
                    let message = format!("`{}` is no predicate", token.text);
                    return Err(self.error_at(PtxErrorKind::BadOperand, token.span, message, expected()));
                }
                Ok(first)
            }
            Some(Name::Symbol(_)) => {
                let message = format!("`{}` is no register", token.text);
                Err(self.error_at(PtxErrorKind::BadOperand, token.span, message, expected()))
            }
            None => Err(self.unknown_name(scope, token.text, token.span)),
        }
    }

    /// An instruction whose first word has been taken.
    pub(super) fn instruction(
        &mut self,
        word: Token<'a>,
        guard: Option<(Guard, u32)>,
        scope: &mut FunctionScope<'a>,
    ) -> Parsed<()> {
        let words = self.words(word)?;
        let statement = scope.statements.len();
        let mut instruction = Instruction {
            opcode: words.opcode,
            modifiers: words.modifiers,
            types: words.types,
            guard: guard.map(|(guard, _)| guard),
            operands: SmallVec::new(),
            call: None,
            location: scope.location,
            span: word.span,
        };
        if words.opcode == Opcode::Call {
            instruction.call = Some(Box::new(self.call(statement, scope)?));
        } else {
            self.operands(&mut instruction, words.form, word, statement, scope)?;
        }
        self.expect(b';', "after an instruction")?;
        instruction.span = self.span_from(guard.map_or(word.span.start, |(_, start)| start));
        scope.statements.push(Statement::Instruction(instruction));
        Ok(())
    }

    fn words(&mut self, word: Token<'a>) -> Parsed<Words> {
        let Some(opcode) = words::opcode(word.text) else {
            let names = Opcode::ALL.iter().map(|opcode| opcode.name());
            let expected = match words::nearest(word.text, names) {
                Some(near) => format!("the nearest instruction is `{near}`"),
                None => "expected an instruction of PTX".to_owned(),
            };
            let message = format!("unknown instruction {}", word.describe());
            return Err(self.error_at(PtxErrorKind::UnknownInstruction, word.span, message, Some(expected)));
        };
        let mut modifiers = SmallVec::new();
        let mut types: SmallVec<[ScalarType; 4]> = SmallVec::new();
        let mut wrong_type = None;
        // Words that may be wrong, and whose.
        let mut spans: SmallVec<[(&str, Span, Option<Modifier>); 8]> = SmallVec::new();
        while self.current.kind == TokenKind::Dotted {
            let token = self.take();
            match words::dotted(token.text) {
                Some(DottedWord::Type(found)) => {
                    let accepted = accepted_types(opcode, types.len());
                    if !accepted.contains(found) && wrong_type.is_none() {
                        wrong_type = Some((found, token.span, accepted));
                    }
                    types.push(found);
                }
                Some(DottedWord::Modifier(found)) => {
                    // A bank of constant memory, `.const[2]` of PTX before 2.2: there is one bank now.
                    if found == Modifier::Const && self.at(b'[') {
                        self.bank()?;
                    }
                    modifiers.push(found);
                    spans.push((token.text, token.span, Some(found)));
                }
                None => {
                    modifiers.push(Modifier::Other);
                    spans.push((token.text, token.span, None));
                }
            }
        }
        let Some(form) = instruction_table::form(opcode, &modifiers) else {
            let needed: Vec<String> = instruction_table::forms(opcode)
                .iter()
                .map(|form| form.required.iter().map(|modifier| format!(".{modifier}")).collect())
                .collect();
            let expected = Some(format!("expected one of `{}`", needed.join("`, `")));
            let message = format!("`{opcode}` without the word that says what it does");
            return Err(self.error_at(PtxErrorKind::UnknownModifier, word.span, message, expected));
        };
        for (text, span, modifier) in &spans {
            if form.is_open || modifier.is_some_and(|modifier| form.modifiers.contains(modifier)) {
                continue;
            }
            let allowed = Modifier::ALL.iter().filter(|modifier| form.modifiers.contains(**modifier));
            let known_types = accepted_types(opcode, 0).iter().map(ScalarType::name);
            let expected = match words::nearest(text, known_types.chain(allowed.map(|modifier| modifier.name()))) {
                Some(near) => format!("the nearest is `.{near}`"),
                None => allowed_words(form),
            };
            let message = format!("`{opcode}` has no modifier `.{text}`");
            return Err(self.error_at(PtxErrorKind::UnknownModifier, *span, message, Some(expected)));
        }
        let count = types.len();
        if count < usize::from(form.minimum_types) || count > usize::from(form.maximum_types) {
            let message = match count {
                0 => format!("`{opcode}` without its type"),
                _ => format!("`{opcode}` with {}", plural(count, "type")),
            };
            let (least, most) = (usize::from(form.minimum_types), usize::from(form.maximum_types));
            let expected = Some(format!("expected {}", between(least, most, "type")));
            let span = self.span_from(word.span.start);
            return Err(self.error_at(PtxErrorKind::TypeCount, span, message, expected));
        }
        if let Some((found, span, accepted)) = wrong_type.filter(|_| !form.is_open) {
            let message = format!("`{opcode}` of type `.{found}`");
            let types: Vec<String> = accepted.iter().map(|accepted| format!("`.{accepted}`")).collect();
            let expected = Some(format!("expected {}", types.join(", ")));
            return Err(self.error_at(PtxErrorKind::BadType, span, message, expected));
        }
        Ok(Words { opcode, modifiers, types, form })
    }

    fn operands(
        &mut self,
        instruction: &mut Instruction,
        form: &Form,
        word: Token<'a>,
        statement: usize,
        scope: &mut FunctionScope<'a>,
    ) -> Parsed<()> {
        while !self.at(b';') && !self.at_end() {
            if !instruction.operands.is_empty() {
                self.expect(b',', "or `;` after an operand")?;
            }
            let index = instruction.operands.len();
            let Some(slot) = form.slot(index) else {
                // Count the operands that are there, for the message.
                let extra = self.rest_of_operands();
                return Err(self.operand_count(instruction.opcode, form, index + extra, word));
            };
            let mut operand = if slot == OperandSlot::Label {
                let name = self.expect_identifier("a label")?;
                scope.refer_to_label(name.text, name.span, LabelSlot::Operand(statement, index));
                Operand { kind: OperandKind::Label(LabelId(u32::MAX)), span: name.span }
            } else {
                self.operand(scope)?
            };
            // `ld.global.u32 %r1, table[2]` reads the element that brackets around `table+8` would name.
            if slot == OperandSlot::Address
                && let OperandKind::Symbol { symbol, offset } = operand.kind
                && self.lexer.peek_byte(operand.span.end.saturating_sub(1)) == b']'
            {
                operand.kind = OperandKind::Address(Address { base: AddressBase::Symbol(symbol), offset });
            }
            self.check_operand(slot, &operand, scope)?;
            instruction.operands.push(operand);
        }
        let count = instruction.operands.len();
        if count < form.minimum_operands() {
            return Err(self.operand_count(instruction.opcode, form, count, word));
        }
        Ok(())
    }

    /// Passes the text before the `;` and counts the operands in it.
    fn rest_of_operands(&mut self) -> usize {
        let mut count = 1;
        let mut depth = 0u32;
        while !self.at_end() && !self.at(b';') {
            match self.current.kind {
                TokenKind::Punctuation(b'[' | b'(' | b'{') => depth += 1,
                TokenKind::Punctuation(b']' | b')') => depth = depth.saturating_sub(1),
                // A brace that closes nothing ends the function: a `;` was forgotten.
                TokenKind::Punctuation(b'}') if depth == 0 => break,
                TokenKind::Punctuation(b'}') => depth -= 1,
                TokenKind::Punctuation(b',') if depth == 0 => count += 1,
                _ => {}
            }
            self.take();
        }
        count
    }

    fn operand_count(&mut self, opcode: Opcode, form: &Form, count: usize, word: Token<'a>) -> super::Failed {
        let message = format!("`{opcode}` with {}", plural(count, "operand"));
        let expected = format!("expected {}", between(form.minimum_operands(), form.maximum_operands(), "operand"));
        let span = self.span_from(word.span.start);
        self.error_at(PtxErrorKind::OperandCount, span, message, Some(expected))
    }

    fn check_operand(&mut self, slot: OperandSlot, operand: &Operand, scope: &FunctionScope<'a>) -> Parsed<()> {
        use OperandKind as K;
        let is_destination = |operand: &Operand| matches!(operand.kind, K::Register(_) | K::Sink);
        let is_predicate =
            |register: &RegisterId| scope.function.register_types.get(register.index()) == Some(&ScalarType::Pred);
        let fits = match slot {
            OperandSlot::Destination => match &operand.kind {
                K::Vector(elements) => elements.iter().all(is_destination),
                _ => is_destination(operand),
            },
            OperandSlot::DestinationPair => is_destination(operand) || matches!(operand.kind, K::Pair(..)),
            OperandSlot::Source => match &operand.kind {
                K::Vector(elements) => elements.iter().all(is_source),
                _ => is_source(operand),
            },
            OperandSlot::Predicate => match &operand.kind {
                K::Register(register) | K::NegatedPredicate(register) => is_predicate(register),
                K::Integer(_) => true,
                _ => false,
            },
            OperandSlot::SourceOrPredicate => is_source(operand) || matches!(operand.kind, K::NegatedPredicate(_)),
            OperandSlot::DestinationResident => match &operand.kind {
                K::Vector(elements) => elements.iter().all(is_destination),
                K::ResidentVector(elements, register) => {
                    elements.iter().all(is_destination) && register.as_ref().is_none_or(is_predicate)
                }
                _ => is_destination(operand),
            },
            OperandSlot::Address => matches!(operand.kind, K::Address(_)),
            OperandSlot::AddressList => matches!(operand.kind, K::Address(_) | K::AddressList(_)),
            OperandSlot::Label => matches!(operand.kind, K::Label(_)),
            OperandSlot::Video => {
                is_source(operand) || matches!(operand.kind, K::Part { .. } | K::NegatedRegister(_) | K::Sink)
            }
            OperandSlot::Any => true,
        };
        if fits {
            return Ok(());
        }
        let message = format!("operand `{}` does not belong here", self.text_of(operand.span));
        let expected = Some(format!("expected {}", slot.describe()));
        Err(self.error_at(PtxErrorKind::BadOperand, operand.span, message, expected))
    }

    /// `(returns), target, (arguments), prototype`
    fn call(&mut self, statement: usize, scope: &mut FunctionScope<'a>) -> Parsed<CallOperands> {
        let mut returns = Vec::new();
        if self.at(b'(') {
            returns = self.call_list(scope)?;
            self.expect(b',', "after a call's return values")?;
        }
        let target = self.operand(scope)?;
        if !matches!(target.kind, OperandKind::Register(_) | OperandKind::Symbol { offset: 0, .. }) {
            let message = format!("`{}` cannot be called", self.text_of(target.span));
            let expected = Some("expected a function, or a register with its address".to_owned());
            return Err(self.error_at(PtxErrorKind::BadOperand, target.span, message, expected));
        }
        let mut call = CallOperands { returns, target, arguments: Vec::new(), prototype: None };
        let mut more = self.accept(b',');
        if more && self.at(b'(') {
            call.arguments = self.call_list(scope)?;
            more = self.accept(b',');
        }
        if more {
            let name = self.expect_identifier("the label of a `.callprototype` or `.calltargets`")?;
            scope.refer_to_label(name.text, name.span, LabelSlot::CallPrototype(statement));
        }
        Ok(call)
    }

    fn call_list(&mut self, scope: &mut FunctionScope<'a>) -> Parsed<Vec<Operand>> {
        self.expect(b'(', "before a list of operands")?;
        let mut operands = Vec::new();
        if self.accept(b')') {
            return Ok(operands);
        }
        loop {
            operands.push(self.operand(scope)?);
            if !self.accept(b',') {
                break;
            }
        }
        self.expect(b')', "after a list of operands")?;
        Ok(operands)
    }
}

fn is_source(operand: &Operand) -> bool {
    use OperandKind as K;
    match &operand.kind {
        // Part of a value that a `mov` packs or a texture access leaves out.
        K::Register(_) | K::Integer(_) | K::Float32(_) | K::Float64(_) | K::Special(_) | K::Symbol { .. } | K::Sink => {
            true
        }
        K::Vector(elements) => elements.iter().all(is_source),
        _ => false,
    }
}

fn plural(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}"),
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

fn between(least: usize, most: usize, what: &str) -> String {
    if least == most { plural(least, what) } else { format!("{least} to {}", plural(most, what)) }
}

/// The words that a form takes, for a message; shortened where they are many.
fn allowed_words(form: &Form) -> String {
    const SHOWN: usize = 12;
    let words: Vec<String> = Modifier::ALL
        .iter()
        .filter(|modifier| form.modifiers.contains(**modifier))
        .map(|modifier| format!("`.{modifier}`"))
        .collect();
    match words.len() {
        0 => "expected its type alone".to_owned(),
        1..=SHOWN => format!("expected {}", words.join(", ")),
        _ => format!("expected {} and others", words[..SHOWN].join(", ")),
    }
}
